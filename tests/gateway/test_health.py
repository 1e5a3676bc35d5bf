"""What supervisors are told: the decision, the watch over the store, and both in a gateway that starts, serves and drains."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.chat import AdapterSight
from agent_core.ports import SystemClock
from agent_core.signals import Committed
from agent_core.store.store import StorageUnavailable
from gateway.health import Phase, problems
from gateway.storewatch import StoreWatch
from gateway.supervisor import State
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import telegram_harness

SECRET = "12345:token"  # what an adapter's words might quote


@given(
    st.sampled_from(Phase), st.lists(st.sampled_from(State), max_size=3), st.booleans(), st.booleans()
)  # fmt: skip
def test_ready_is_only_who_serves_stores_owns_and_is_connected_everywhere(
    phase: Phase, states: list[State], works: bool, owns: bool
) -> None:
    sights = [AdapterSight(f"p{n}/{SECRET}", state.value, f"because of {SECRET}") for n, state in enumerate(states)]
    found = problems(phase, sights, store_works=works, owns=owns)
    ready = phase is Phase.SERVING and works and owns and all(state is State.UP for state in states)
    assert (found == []) is ready
    assert len(found) == (phase is not Phase.SERVING) + (not works) + (not owns) + sum(
        s is not State.UP for s in states
    )
    assert not [words for words in found if SECRET in words or not words.endswith((".", "what."))]


class Flaky:
    """A store that works or not, and counts how often it is tried."""

    def __init__(self) -> None:
        self.broken = False
        self.tried = 0

    async def check(self, timeout_seconds: float = 5.0) -> None:
        self.tried += 1
        await asyncio.sleep(0.01)
        if self.broken:
            raise StorageUnavailable("The disk is full.")


async def test_however_many_ask_the_store_is_tried_once_and_not_at_all_after_a_commit() -> None:
    store = Flaky()
    watch = StoreWatch(store, SystemClock())
    assert all(await asyncio.gather(*(watch.works(60) for _ in range(20))))
    assert store.tried == 1
    watch.on(Committed(3, 0.01, stored=True))
    assert await watch.works(60)
    assert store.tried == 1


async def test_what_fails_is_known_with_its_words_and_since_when_until_something_is_stored() -> None:
    store = Flaky()
    watch = StoreWatch(store, SystemClock())
    store.broken = True
    assert not await watch.works(0)
    assert watch.words == "The disk is full."
    since = watch.failing_since
    assert since
    watch.on(Committed(1, 1.0, stored=False))
    assert (watch.words, watch.failing_since) == ("The disk is full.", since)
    watch.on(Committed(1, 0.01, stored=True))
    assert (watch.words, watch.failing_since) == ("", 0)


async def test_why_a_commit_failed_is_found_out_by_whoever_asks_next_and_the_log_says_it() -> None:
    store = Flaky()
    watch = StoreWatch(store, SystemClock())
    store.broken = True
    with capture_logs() as logs:
        watch.on(Committed(1, 1.0, stored=False))
        since = watch.failing_since
        assert not await watch.works(60)
        assert not await watch.works(60)
    assert (watch.words, watch.failing_since, store.tried) == ("The disk is full.", since, 1)
    assert [one["error"] for one in logs] == ["The last write failed.", "The disk is full."]


async def ask(url: str) -> tuple[int, dict[str, object]]:
    async with aiohttp.ClientSession() as http, http.get(url) as response:
        return response.status, await response.json()


async def until(url: str, words: str) -> int:
    """Ask until one of the problems has these words; the status of that answer."""
    async with asyncio.timeout(20):
        while True:
            status, body = await ask(f"{url}/readyz")
            if words in str(body["problems"]):
                return status
            await asyncio.sleep(0.05)


async def test_a_gateway_is_ready_while_it_serves_and_not_while_it_drains_nor_without_its_platform(
    tmp_path: Path,
) -> None:
    async with telegram_harness(tmp_path) as telegram:
        chat = telegram.private(eve := telegram.person("Eve"))
        stop, there = asyncio.Event(), asyncio.get_running_loop().create_future()

        async def live() -> None:
            async with running(telegram) as up:
                there.set_result(up.url)
                await stop.wait()

        life = asyncio.create_task(live())
        url: str = await there
        telegram.say(chat, eve, "say hello")
        await answer(telegram, chat, "hello")
        ready: dict[str, object] = {"status": "ready", "phase": "serving", "problems": [], "laws_broken": 0}
        assert await ask(f"{url}/readyz") == (200, ready)
        telegram.say(chat, eve, "hold on")
        await telegram.model.holding.wait()
        status, body = await ask(f"{url}/status")
        assert {
            "version", "uptime_seconds", "ready", "problems", "adapters", "running_turns", "waiting_messages", "unsent_parts",
            "oldest_unsent_seconds", "incidents", "alerts", "spend", "free_disk_bytes", "open_turns", "failed_parts", "storage",
        } <= body.keys()  # fmt: skip
        assert (status, body["ready"], body["running_turns"]) == (200, True, 1)
        stop.set()
        assert await until(url, "shutting down") == 503
        telegram.model.release()
        await life
        async with running(telegram, **telegram.wrong_token()) as up:
            assert await until(up.url, "telegram needs somebody to do something") == 503
            assert (await ask(f"{up.url}/healthz"))[0] == 200
