"""The orderly stop, with drivers that do as they are told: who is held and left when, and what a second signal and a waiting person change."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest

from gateway.queues import draining
from gateway.queues.draining import Draining, hold_seconds


class Turn:
    """One that runs until it is left, or for so many seconds."""

    def __init__(self, seconds: float, *, asks: bool = False) -> None:
        self.driver = self
        self.waits_for_person = asks
        self.said: list[str] = []
        self._left = asyncio.Event()
        self.task = asyncio.create_task(self._run(seconds))

    async def _run(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._left.wait()
        except TimeoutError:
            self.said.append("ended")

    def hold(self) -> None:
        self.said.append("hold")

    def leave(self) -> None:
        self.said.append("leave")
        self._left.set()


async def drained(seconds: float, *turns: Turn, hurry: asyncio.Event | None = None) -> float:
    """How long it took."""
    began = time.monotonic()
    tasks = {one.task for one in turns}
    draining = Draining(
        tasks, lambda: cast("Any", [one for one in turns if not one.task.done()]), hurry or asyncio.Event()
    )
    await draining.run(seconds)
    return time.monotonic() - began


async def test_who_does_not_end_is_held_and_then_left_within_the_time() -> None:
    turn = Turn(60)
    took = await drained(1.0, turn)
    assert turn.said == ["hold", "leave"]
    assert took >= 1.0 - 0.05
    assert turn.task.done()


async def test_nothing_takes_longer_than_it_has() -> None:
    """Of the time a part is for what runs, and the rest for its end: not the whole time once more."""
    asked: list[float] = []

    class Watched(Draining):
        async def _over(self, seconds: float) -> bool:
            asked.append(seconds)
            return False

    turn = Turn(60)
    await Watched({turn.task}, lambda: cast("Any", [turn]), asyncio.Event()).run(10.0)
    assert asked == [10.0 - hold_seconds(10.0), hold_seconds(10.0)]


async def test_who_ends_in_time_is_told_nothing() -> None:
    turn = Turn(0.05)
    await drained(30.0, turn)
    assert turn.said == ["ended"]


async def test_who_waits_for_a_person_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "LOOK_SECONDS", 0.02)
    asking, working = Turn(60, asks=True), Turn(0.2)
    await drained(30.0, asking, working)
    assert (asking.said, working.said) == (["leave"], ["ended"])


async def test_a_second_signal_leaves_all() -> None:
    hurry = asyncio.Event()
    turn = Turn(60)
    asyncio.get_running_loop().call_later(0.05, hurry.set)
    async with asyncio.timeout(20):
        await drained(3_600.0, turn, hurry=hurry)
    assert turn.said[-1] == "leave"
