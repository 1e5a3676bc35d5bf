"""Work beside a block: begun anew after a mistake, never silent about it, gone with its block."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from agent_core.beside import MOST_PAUSE_SECONDS, beside, kept_up


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was rested; nobody waits for it."""
    asked: list[float] = []
    wait = asyncio.sleep

    async def rest(seconds: float) -> None:
        asked.append(seconds)
        await wait(0)

    monkeypatch.setattr(asyncio, "sleep", rest)
    return asked


async def test_what_fails_by_a_mistake_is_logged_and_begun_anew_after_ever_longer_rests(rests: list[float]) -> None:
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs <= 9:
            raise LookupError(runs)

    with capture_logs() as said:
        await kept_up(work, "upkeep")
    assert runs == 10
    assert rests == [1, 2, 4, 8, 16, 32, MOST_PAUSE_SECONDS, MOST_PAUSE_SECONDS, MOST_PAUSE_SECONDS]
    assert [(one["event"], one["work"], one["again_in_seconds"]) for one in said] == [
        ("work.failed", "upkeep", rest) for rest in rests
    ]


async def test_what_has_run_for_long_before_it_failed_is_begun_anew_soon(
    rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    lives = iter([0, 0, 0, 3600, 0])

    async def work() -> None:
        nonlocal now
        if (lived := next(lives, None)) is not None:
            now += lived
            raise LookupError

    with capture_logs():
        await kept_up(work, "upkeep")
    assert rests == [1, 2, 4, 1, 2]


async def test_a_block_neither_ends_by_what_is_beside_it_nor_is_outlived_by_it(rests: list[float]) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        if not rests:
            raise LookupError
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with capture_logs():
        async with beside(work, "upkeep"):
            await begun.wait()
            assert not ended.is_set()
    assert ended.is_set()
