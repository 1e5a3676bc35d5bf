"""An adapter that cannot begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from adapters.contract.supervision import AdapterDown
from agent_core.ports import SystemClock
from agent_core.retry import ADAPTER
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import StorageUnavailable
from gateway.chats import supervisor
from gateway.chats.supervisor import FATAL_PAUSE_SECONDS, SOUND_SECONDS, Deaf, Supervisor
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


async def test_pauses_grow_until_it_was_sound_and_are_as_long_as_the_platform_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lives: list[tuple[float, Exception]] = [
        (1.0, OSError("gone")), (1.0, OSError("gone")), (1.0, OSError("gone")), (SOUND_SECONDS + 1, OSError("gone")),
        (1.0, AdapterDown("too fast", wait_seconds=7_777.0)), (1.0, AdapterDown("a token", fatal=True)),
    ]  # fmt: skip
    adapter, slept = Falls(FakeClock(), lives), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not adapter.lives:
            raise Over

    names = SimpleNamespace(sleep=sleep, ensure_future=asyncio.ensure_future, wait=asyncio.wait)
    monkeypatch.setattr(supervisor, "asyncio", names)
    one = Supervisor(cast("Any", adapter), adapter.clock, lambda: None, _no_share, lambda _: None)
    with capture_logs(), pytest.raises(Over):
        await one._run()
    assert slept == [*(ADAPTER.seconds(n, 1.0) for n in (1, 2, 3, 1)), 7_777.0, FATAL_PAUSE_SECONDS]


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
