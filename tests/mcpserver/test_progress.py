"""How a call goes is told at a pace, counted up, and nothing twice; what somebody has to know is told at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from adapters.mcpserver import serving
from adapters.mcpserver.doing import CUT_OFF, INTERRUPTED
from adapters.mcpserver.serving import PROGRESS_SECONDS, _Progress


async def test_it_is_told_at_a_pace_and_what_is_pressing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, told = [100.0], list[tuple[float, str]]()

    async def report_progress(count: float, total: object, words: str) -> None:
        assert total is None
        told.append((count, words))

    monkeypatch.setattr(
        serving, "asyncio", SimpleNamespace(get_running_loop=lambda: SimpleNamespace(time=lambda: now[0]))
    )
    context: Any = SimpleNamespace(session=SimpleNamespace(report_progress=report_progress))
    progress = _Progress(context)
    await progress.heard("first")
    await progress.heard("too soon")
    await progress.heard(INTERRUPTED)
    await progress.heard(INTERRUPTED)
    await progress.heard(CUT_OFF)
    now[0] += PROGRESS_SECONDS - 0.01
    await progress.heard("still too soon")
    now[0] += 0.01
    await progress.heard("later")
    now[0] += 10 * PROGRESS_SECONDS
    await progress.heard("later")
    assert told == [(1, "first"), (2, INTERRUPTED), (3, CUT_OFF), (4, "later")]
