"""What supervisors are told: the decision, the watch over the store, and both in a gateway that starts, serves and drains."""

from __future__ import annotations

import asyncio
import http.server
import socket
import threading
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from adapters.checks.probe import Question
from adapters.contract.chat import AdapterSight
from adapters.terminal.operator import all_well, status_lines
from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.signals import CANCELLED, Committed, ModelCalled
from agent_core.store.store import StorageFull, StorageUnavailable
from gateway.chats.supervisor import AdapterState
from gateway.limits.alerts import AlertKind, Condition
from gateway.observe.health import LifePhase, ModelWatch, Vitals, judge
from gateway.storage.storewatch import MIB, StoreStanding, StoreWatch
from tests.chats.harness import answer, running, starting
from tests.chats.telegram_harness import telegram_harness
from tests.gateway.test_process import daemon, environment, outspoken
from tests.ports import free_port
from tests.serving import served

SECRET = "12345:token"  # what an adapter's words might quote


ALERTS = st.builds(
    Condition, key=st.sampled_from(["disk", "queue"]), kind=st.sampled_from([AlertKind.DISK, AlertKind.QUEUE]), words=st.just("It is tight.")
)  # fmt: skip
SIGHTS = st.lists(st.sampled_from(AdapterState), max_size=3).map(
    lambda states: tuple(
        AdapterSight(f"p{n}/{SECRET}", state.value, f"because of {SECRET}") for n, state in enumerate(states)
    )
)
FACTS = st.builds(
    Vitals,
    phase=st.sampled_from(LifePhase),
    store_works=st.booleans(),
    owns=st.booleans(),
    adapters=SIGHTS,
    model_answers=st.sampled_from([True, False, None]),
    unclaimed=st.sampled_from(["", "Something is left."]),
    damage=st.sampled_from(["", "A page is torn."]),
    folder=st.sampled_from(["", "The folder is away."]),
    alerts=st.lists(ALERTS, max_size=2),
    incidents=st.integers(0, 2),
)


@given(FACTS)
def test_ready_is_who_serves_stores_and_owns_and_well_is_whoever_misses_nothing_besides(facts: Vitals) -> None:
    found = judge(facts)
    assert found.ready is (facts.phase is LifePhase.SERVING and facts.store_works and facts.owns)
    connected = all(sight.state == AdapterState.UP.value for sight in facts.adapters)
    odd = facts.unclaimed or facts.damage or facts.folder or facts.alerts or facts.incidents
    rest = connected and facts.model_answers is not False and not odd
    assert found.well is (found.ready and rest)
    assert found.well is (found.unwell == ())
    for_anybody = [*found.not_ready, *found.not_well]
    assert not [words for words in for_anybody if SECRET in words or not words.endswith((".", "what.", "why."))]


@given(FACTS)
def test_the_status_names_what_to_do_and_never_itself(facts: Vitals) -> None:
    shown = status_lines({"unwell": list(judge(facts).unwell)})
    assert not [line for line in shown if "outspoken status" in line]
    assert any("outspoken triage says what to do" in line for line in shown) >= bool(facts.incidents)
    waits = "Something has waited for 5 min to be delivered on telegram: outspoken status."
    assert "⚠️ Something has waited for 5 min to be delivered on telegram." in status_lines(
        {"alerts": [{"words": waits}]}
    )


@given(FACTS, SIGHTS, st.booleans())
def test_no_platform_and_no_model_makes_a_gateway_unready(
    facts: Vitals, others: tuple[AdapterSight, ...], answers: bool
) -> None:
    assert judge(facts).not_ready == judge(replace(facts, adapters=others, model_answers=answers)).not_ready


def test_a_platform_that_is_away_is_said_once_also_when_its_alert_is_open() -> None:
    down = AdapterSight("telegram/bot", AdapterState.DOWN.value, "no network")
    alert = Condition("adapter:telegram/bot", AlertKind.ADAPTER, "telegram is not connected: no network")
    note = Condition("adapter:telegram/bot:note", AlertKind.ADAPTER, "telegram: its privacy is on")
    found = judge(Vitals(LifePhase.SERVING, store_works=True, owns=True, adapters=(down,), alerts=(alert, note)))
    assert found.unwell == ("telegram is not connected; it is tried again. The log says why.", note.words)


def call(turn: str, error: str, content_at: int = 0) -> ModelCalled:
    return ModelCalled(
        turn=turn, session="s", name="1", endpoint="e", model="m", began_at=1, ended_at=9, content_at=content_at, error=error
    )  # fmt: skip


def test_a_model_that_gives_several_turns_nothing_does_not_answer_until_it_does() -> None:
    watch = ModelWatch()
    for _ in range(5):
        watch.on(call("t1", "refused"))
    assert watch.answers is None, "one turn may break off by its own doing"
    watch.on(call("t2", CANCELLED))
    assert watch.answers is None
    watch.on(call("t2", "refused"))
    assert watch.answers is False
    watch.on(call("t3", "stalled", content_at=5))
    assert watch.answers is True
    watch.on(call("t4", "refused"))
    assert watch.answers is True


class Flaky:
    """A store that works or not, and counts how often it is tried."""

    def __init__(self) -> None:
        self.broken = False
        self.tried = 0

    async def check(self, timeout_seconds: float = 5.0, room_bytes: int = 0) -> None:
        self.tried += 1
        await asyncio.sleep(0.01)
        if self.broken:
            raise StorageUnavailable("The disk is full.")

    def astray(self) -> bool:
        return False


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
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        return response.status, await response.json()


async def until(url: str, words: str) -> tuple[int, dict[str, object]]:
    """Ask until the answer has these words."""
    async with asyncio.timeout(60):
        while True:
            status, body = await ask(url)
            if words in str(body):
                return status, body
            await asyncio.sleep(0.05)


async def test_a_gateway_that_drains_is_alive_and_not_ready(tmp_path: Path) -> None:
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
        well: dict[str, object] = {"status": "well", "ready": True, "phase": "serving", "problems": []}
        assert await ask(f"{url}/wellz") == (200, well)
        telegram.say(chat, eve, "hold on")
        await telegram.model.holding.wait()
        status, body = await ask(f"{url}/status")
        assert {
            "version", "uptime_seconds", "ready", "problems", "well", "unwell", "adapters", "running_turns", "waiting_messages",
            "unsent_parts", "oldest_unsent_seconds", "incidents", "alerts", "spend", "free_disk_bytes", "open_turns", "failed_parts",
            "oldest_turn", "storage",
        } <= body.keys()  # fmt: skip
        assert (status, body["ready"], body["well"], body["running_turns"]) == (200, True, True, 1)
        stop.set()
        assert (await until(f"{url}/readyz", "shutting down"))[0] == 503
        assert (await ask(f"{url}/healthz"))[0] == 200
        assert (await ask(f"{url}/wellz"))[0] == 503
        telegram.model.release()
        await life


async def test_a_gateway_whose_platform_is_away_is_ready_and_not_well(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram, starting(telegram, **telegram.wrong_token()) as up:
        words = "telegram needs somebody to do something"
        status, body = await until(f"{up.url}/readyz", words)
        assert (status, body["status"], body["problems"]) == (200, "ready", [])
        status, body = await ask(f"{up.url}/wellz")
        assert (status, body["ready"]) == (503, True)
        assert words in str(body["problems"])
        assert (await ask(f"{up.url}/healthz"))[0] == 200
        async with aiohttp.ClientSession() as client, client.get(f"{up.url}/metrics") as response:
            text = await response.text()
        assert ("\noutspoken_ready 1.0\n" in text, "\noutspoken_well 0.0\n" in text) == (True, True)


async def test_whether_it_is_well_is_told_to_operators_only(tmp_path: Path) -> None:
    keys = {"OUTSPOKEN_SERVER__API_KEY": "k" * 20, "OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 20}
    async with served(tmp_path, keys) as up, aiohttp.ClientSession() as client:
        for key, expected in (("", 401), ("k" * 20, 401), ("o" * 20, 200)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            async with client.get(f"{up.url}/wellz", headers=headers) as response:
                assert response.status == expected, key
        for path in ("/healthz", "/readyz"):
            assert (await ask(up.url + path))[0] == 200


# ---------------------------------------------------------------------- outspoken health


@pytest.mark.parametrize(("host", "asked"), [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("127.0.0.1", "127.0.0.1")])
def test_the_command_asks_where_the_configuration_says_that_it_listens(tmp_path: Path, host: str, asked: str) -> None:
    """The file, the host and the port of a container, and no key: the first two questions need none."""
    port = free_port()
    (tmp_path / "outspoken.toml").write_text(f'[server]\nhost = "{host}"\nport = {port}\n', "utf-8")
    env = environment(tmp_path, port, OUTSPOKEN_SERVER__API_KEY="k" * 20)
    del env["OUTSPOKEN_SERVER__PORT"]
    before = outspoken(env, "health")
    assert (before.returncode, before.stdout) == (1, "")
    assert "No gateway answers at" in before.stderr
    with daemon({**env, "OUTSPOKEN_SERVER__PORT": str(port)}, tmp_path / "log", asked):
        for question in Question:
            found = outspoken(env, "health", question.value)
            assert (found.returncode, found.stdout) == (0, f"{question.value}: yes\n"), found.stderr
        assert outspoken(env, "health").stdout == "alive: yes\n"


def test_the_command_says_no_in_time_where_nobody_answers_and_where_somebody_else_does(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        env = environment(tmp_path, deaf.getsockname()[1])
        found = outspoken(env, "health", "--timeout", "0.3")
        assert (found.returncode, "does not answer within 0.3 s" in found.stderr) == (1, True)
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    with server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        found = outspoken(environment(tmp_path, server.server_port), "health")
        server.shutdown()
    assert (found.returncode, "is no gateway" in found.stderr or "No gateway answers" in found.stderr) == (1, True)


@given(st.lists(st.sampled_from(["stored", "failed", "tried", "full", "much", "enough", "little"]), max_size=30))
def test_what_fails_for_want_of_room_is_over_only_by_a_write_that_needs_room_and_with_a_margin(
    events: list[str],
) -> None:
    least, standing = 64 * MIB, StoreStanding()
    room = {"much": 200 * MIB, "enough": 70 * MIB, "little": 10 * MIB}
    for event in events:
        before = standing
        match event:
            case "stored" | "failed":
                standing = standing.committed(stored=event == "stored")
            case "tried" | "full":
                standing = standing.tried(StorageFull("There is no room.") if event == "full" else None)
            case _:
                standing = standing.looked(room[event], least)
        if before.full and not standing.words:
            assert event == "tried"
        if before.low and not standing.low:
            assert event == "much"
        if event in ("failed", "full", "little"):
            assert standing.words
        if event == "enough":
            # within the margin nothing changes but the figure that is told
            assert (standing.full, standing.low, bool(standing.words)) == (before.full, before.low, bool(before.words))


def test_the_status_names_the_turn_that_has_been_open_for_long() -> None:
    def told(seconds: int) -> str:
        shown = status_lines(
            {"open_turns": 3, "waiting_sessions": 1, "oldest_turn": {"turn": "t_1", "seconds": seconds}}
        )
        return next(line for line in shown if line.startswith("Open turns"))

    assert told(480) == "Open turns: 3, the oldest for 8 min (outspoken explain t_1); chats with waiting messages: 1"
    assert told(20) == "Open turns: 3; chats with waiting messages: 1"


def test_the_status_begins_with_what_runs_since_when_where_and_with_which_model() -> None:
    body: dict[str, Json] = {"version": "1.2.3", "uptime_seconds": 7500, "address": "http://127.0.0.1:8787"}
    asked: Json = [{"endpoint": "api.example.org", "models": ["large"]}, {"endpoint": "other", "models": []}]
    head, model, *_ = status_lines({**body, "models": asked})
    assert head == "outspoken 1.2.3, up for 2 h 5 min, at http://127.0.0.1:8787"
    assert model == "Model: large at api.example.org, then what is offered at other"
    assert "rehearsal" in status_lines({**body, "rehearsal": True})[1]
    both: Json = [{"endpoint": "one", "models": ["large"]}, {"endpoint": "one small", "models": ["small"]}]
    assert status_lines({**body, "models": both})[1] == "Model: large at one, then small at one"


@pytest.mark.parametrize(("ready", "well"), [(True, True), (True, False), (False, False)])
def test_the_status_exits_with_zero_only_if_all_is_well(ready: bool, well: bool) -> None:
    assert all_well({"ready": ready, "well": well}) is (ready and well)
