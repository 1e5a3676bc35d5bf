"""An adapter that cannot begin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from adapters.contract.chat import AdapterSight
from adapters.contract.supervision import AdapterDown
from agent_core.ports import SystemClock
from agent_core.retry import ADAPTER
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import StorageUnavailable
from gateway.chats import supervisor
from gateway.chats.platforms import started
from gateway.chats.supervisor import FATAL_PAUSE_SECONDS, SOUND_SECONDS, AdapterState, Deaf, Supervisor
from gateway.sharing.portion import Portion
from tests.store.support import FakeClock


class Begins:
    """Reads where it was, from a storage that is away the first time."""

    name = "toy/1"
    silent_seconds, deaf_after_seconds = 0.0, 60.0

    def __init__(self) -> None:
        self.begun = 0
        self.up = asyncio.Event()

    async def run(self, up: Callable[[], None]) -> None:
        self.begun += 1
        if self.begun == 1:
            raise StorageUnavailable("the database is away")
        up()
        self.up.set()
        await asyncio.sleep(60)

    def sight(self, state: str, words: str, _outbound: float | None) -> Any:
        return state, words


async def test_a_storage_that_is_away_is_no_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, noted = Begins(), list[AdapterStateRow]()
    one = Supervisor(cast("Any", adapter), SystemClock(), lambda: None, lambda: 0.0, noted.append)
    with capture_logs() as logs:
        running = asyncio.create_task(one.run())
        await asyncio.wait_for(adapter.up.wait(), 20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [line["event"] for line in logs] == ["adapter.storage_away", "adapter.up"]
    assert "storage of the gateway does not answer" in next(row.words for row in noted if row.state == "down")


class Over(Exception):
    """Enough was seen."""


class Seen(Begins):
    """Says of itself what its supervisor says."""

    def sight(self, state: str, words: str, _outbound: float | None) -> Any:
        return SimpleNamespace(state=state, words=words)


class Falls(Seen):
    """Lives for so many seconds by a clock that nobody waits for, and comes to an end each time."""

    def __init__(self, clock: FakeClock, lives: Sequence[tuple[float, Exception]]) -> None:
        super().__init__()
        self.clock, self.lives = clock, list(lives)

    async def run(self, up: Callable[[], None]) -> None:
        up()
        seconds, error = self.lives.pop(0)
        self.clock.now += round(1000 * seconds)
        raise error


def _no_share() -> float:
    return 1.0


class NeverUp(Falls):
    """It takes long until that is known."""

    async def run(self, up: Callable[[], None]) -> None:
        del up
        await super().run(lambda: None)


@pytest.mark.parametrize("kind", [Falls, NeverUp])
async def test_pauses_grow_until_it_was_sound_and_are_as_long_as_the_platform_wants(
    monkeypatch: pytest.MonkeyPatch, kind: type[Falls]
) -> None:
    lives: list[tuple[float, Exception]] = [
        (1.0, OSError("gone")), (1.0, OSError("gone")), (1.0, OSError("gone")), (SOUND_SECONDS + 1, OSError("gone")),
        (1.0, AdapterDown("too fast", wait_seconds=7_777.0)), (1.0, AdapterDown("a token", fatal=True)),
    ]  # fmt: skip
    adapter, slept = kind(FakeClock(), lives), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not adapter.lives:
            raise Over

    names = SimpleNamespace(sleep=sleep, ensure_future=asyncio.ensure_future, wait=asyncio.wait, Event=asyncio.Event)
    monkeypatch.setattr(supervisor, "asyncio", names)
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, _no_share, lambda _: None)
    with capture_logs(), pytest.raises(Over):
        await one._run()
    growing = (1, 2, 3, 1 if kind is Falls else 4)
    assert slept == [*(ADAPTER.seconds(n, 1.0) for n in growing), 7_777.0, FATAL_PAUSE_SECONDS]


async def test_that_a_person_is_needed_is_logged_at_once_however_often_it_failed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    away, token = AdapterDown("away"), AdapterDown("a token", fatal=True)
    lives: list[tuple[float, Exception]] = [(1.0, one) for one in (away, away, token, token, token, away, token)]
    adapter = NeverUp(FakeClock(), lives)

    async def sleep(_: float) -> None:
        if not adapter.lives:
            raise Over

    names = SimpleNamespace(sleep=sleep, ensure_future=asyncio.ensure_future, wait=asyncio.wait, Event=asyncio.Event)
    monkeypatch.setattr(supervisor, "asyncio", names)
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, _no_share, lambda _: None)
    with capture_logs() as logs, pytest.raises(Over):
        await one._run()
    said = [(line["times"], line["log_level"]) for line in logs if line["event"] == "adapter.down"]
    assert said == [(1, "warning"), (2, "warning"), (3, "error"), (4, "error"), (7, "error")]


async def test_who_is_deaf_is_ended_before_another_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    ended: list[str] = []

    class Silent(Seen):
        silent_seconds = 61.0

        async def run(self, up: Callable[[], None]) -> None:
            up()
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(self.name)

    one = Supervisor(cast("Any", Silent()), SystemClock(), lambda: None, lambda: 0.0, lambda _: None)
    with capture_logs(), pytest.raises(Deaf):
        await one._watched()
    assert ended == ["toy/1"]


async def test_who_stood_still_with_the_whole_process_is_not_deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came meanwhile lies in its sockets, and is read behind the look that comes too late."""
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)

    class Held(Seen):
        deaf_after_seconds, last_life = 0.2, time.monotonic()

        @property
        def silent_seconds(self) -> float:
            return time.monotonic() - self.last_life

        async def run(self, up: Callable[[], None]) -> None:
            up()
            self.last_life = time.monotonic()
            time.sleep(0.3)  # all of the process stands still
            await asyncio.sleep(0.005)  # sooner than the next look
            self.last_life = time.monotonic()

    one = Supervisor(cast("Any", Held()), SystemClock(), lambda: None, lambda: 0.0, lambda _: None)
    await one._watched()


class Stands(Seen):
    """Its platform answers, or does not, and its connection is there, or is not."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock
        self.away = self.hangs = False
        self.state = ""
        self.asked = 0

    async def run(self, up: Callable[[], None]) -> None:
        up()
        await asyncio.Event().wait()

    def sight(self, state: str, words: str, _outbound: float | None) -> Any:
        return SimpleNamespace(state=self.state or state, words=words)

    async def stand(self) -> None:
        self.asked += 1
        self.clock.now += 1_000
        if self.hangs:
            await asyncio.Event().wait()
        if self.away:
            raise AdapterDown("There is no route to the platform.")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_SECONDS", "STAND_SECONDS", "ANSWER_SECONDS"):
        monkeypatch.setattr(supervisor, name, 0.01)
    monkeypatch.setattr(supervisor, "ADAPTER", supervisor.ADAPTER.__class__(0.01))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["run_watched", "stand"])
@pytest.mark.parametrize("what", ["away", "hangs"])
async def test_it_is_known_for_how_long_the_platform_is_not_reached_with_a_connection_or_without(
    how: str, what: str
) -> None:
    adapter = Stands(FakeClock())
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, lambda: 0.0, lambda _: None)

    async def until(failing: bool) -> None:
        async with asyncio.timeout(20):
            while bool(one.failing_seconds) is not failing:
                await asyncio.sleep(0.005)

    with capture_logs():
        working = asyncio.create_task(getattr(one, how)())
        async with asyncio.timeout(20):
            while adapter.asked < 2:
                await asyncio.sleep(0.005)
        assert not one.failing_seconds
        setattr(adapter, what, True)
        await until(failing=True)
        before, asked = one.failing_seconds, adapter.asked
        async with asyncio.timeout(20):
            while adapter.asked < asked + 3:
                await asyncio.sleep(0.005)
        assert one.failing_seconds >= before + 2
        setattr(adapter, what, False)
        await until(failing=False)
        if how == "run_watched":
            adapter.state = "down"  # its connection, although it answers
            await until(failing=True)
            adapter.state = ""
            await until(failing=False)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_call_that_failed_has_the_platform_asked_soon_and_begins_the_time_for_which_it_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever does not have the connection learns it by what it sends, not by asking each half minute."""
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.01)
    adapter = Stands(FakeClock())
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, lambda: 0.0, lambda _: None)
    with capture_logs():
        working = asyncio.create_task(one.stand())
        async with asyncio.timeout(10):
            for asked in (1, 2):
                while adapter.asked < asked:
                    await asyncio.sleep(0.005)
                one.missed()
            while adapter.asked < 3:
                await asyncio.sleep(0.005)
        assert not one.failing_seconds, "it answers: the calls failed for themselves"
        adapter.away = True
        one.missed()
        adapter.clock.now += 4_000
        one.missed()
        async with asyncio.timeout(10):
            while not one.failing_seconds:
                await asyncio.sleep(0.005)
        assert one.failing_seconds > 4, "of several calls the first counts"
        adapter.away = False
        async with asyncio.timeout(10):
            while one.failing_seconds:
                await asyncio.sleep(0.005)
        adapter.clock.now += 600_000
        adapter.away = True
        one.missed()
        async with asyncio.timeout(10):
            while not one.failing_seconds:
                await asyncio.sleep(0.005)
        assert one.failing_seconds < 100, "it was reached meanwhile"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


@pytest.mark.usefixtures("quick")
async def test_a_connection_that_failed_counts_as_well_again_as_soon_as_the_platform_answers_whoever_has_none() -> None:
    adapter = Stands(FakeClock())
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, lambda: 0.0, lambda _: None)
    one._fails(supervisor.CONNECTION)
    with capture_logs():
        standing = asyncio.create_task(one.stand())
        async with asyncio.timeout(20):
            while one.failing_seconds:
                await asyncio.sleep(0.005)
        standing.cancel()
        await asyncio.gather(standing, return_exceptions=True)


@pytest.mark.parametrize("state", AdapterState)
async def test_that_we_are_strangers_is_told_while_the_connection_stands_and_else_what_became_of_that(
    state: AdapterState,
) -> None:
    def sight(state: str, words: str, _: float | None) -> AdapterSight:
        return AdapterSight("toy/1", state, words)

    adapter = SimpleNamespace(name="toy/1", sight=sight)
    one = Supervisor(cast("Any", adapter), FakeClock(), lambda: None, lambda: 0.0, lambda _: None)
    one._fails(supervisor.CONNECTION)
    one._up()
    assert not one.failing_seconds, "it is there"
    one.state, one.words, one._stranger = state, "own words", "The token is not accepted."
    up = state is AdapterState.UP
    told = (AdapterState.NEEDS_A_PERSON.value, "The token is not accepted.") if up else (state.value, "own words")
    assert (one.sight().state, one.sight().words) == told


def test_what_an_adapter_says_of_its_connection_is_noted_with_why_it_is_gone() -> None:
    said, noted = [""], list[AdapterStateRow]()

    def sight(*_: object) -> AdapterSight:
        return AdapterSight("toy/1", said[-1], f"It is {said[-1]}.")

    adapter: Any = SimpleNamespace(name="toy/1", sight=sight)
    one = Supervisor(adapter, FakeClock(), lambda: None, lambda: 0.0, noted.append)
    one.state = AdapterState.UP
    for state in ("down", "down", "up"):
        said.append(state)
        one._look()
    assert [(row.state, row.words) for row in noted] == [("down", "It is down."), ("up", "")]


async def test_who_stops_listening_goes_on_when_all_adapters_have_ended() -> None:
    began, ended = asyncio.Event(), list[str]()

    async def run() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.append("adapter")

    one = SimpleNamespace(slices=(), run=run, run_watched=run, stand=run, adapter=SimpleNamespace(name="toy/1"))
    running: Any = SimpleNamespace(
        states=SimpleNamespace(kept=nullcontext), tries=SimpleNamespace(running=nullcontext), supervisors=(one,),
        scheduler=SimpleNamespace(run=asyncio.Event().wait),
    )  # fmt: skip
    async with started(running, Portion()):
        await asyncio.wait_for(began.wait(), 10)
    assert ended == ["adapter"]
