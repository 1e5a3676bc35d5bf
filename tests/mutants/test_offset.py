"""Telegram forgets what a later offset confirms: none is sent before what came is taken in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.telegram.polling import Asking, Polling
from agent_core.ports import SystemClock


async def test_no_offset_goes_beyond_what_was_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int | None] = []
    taken = iter([False, False, True])
    over = asyncio.Event()

    async def ask(_: Polling, asking: Asking) -> list[object]:
        asked.append(asking.offset)
        if asking.offset is not None:
            over.set()
            await asyncio.sleep(60)
        return [{"update_id": 7}]

    async def take(_: object) -> bool:
        return next(taken)

    async def introduce() -> None: ...

    async def ours() -> None: ...

    monkeypatch.setattr(Polling, "_ask", ask)
    settings = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=1))
    running = asyncio.create_task(Polling(settings, cast("Any", None), SystemClock(), take, introduce, ours).run())
    try:
        await asyncio.wait_for(over.wait(), 20)
    finally:
        running.cancel()
    assert asked == [None, None, None, 8]
