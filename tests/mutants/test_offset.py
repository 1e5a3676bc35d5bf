"""Telegram forgets what a later offset confirms: none is sent before what came is taken in."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import CallFailed, Fate
from adapters.telegram import polling
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


@pytest.mark.parametrize(("fate", "least"), [(Fate.TOO_FAST, 77.0), (Fate.UNKNOWN, 1.0)])
async def test_what_telegram_asks_to_wait_is_waited_before_the_next_poll(
    fate: Fate, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def nothing(*_: object) -> bool:
        return True

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    settings, none = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=1)), cast("Any", nothing)
    made = Polling(settings, cast("Any", None), SystemClock(), none, none, none)
    await made._pause(CallFailed(fate, "no", retry_after=77.0))
    assert slept == [least]
