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

    async def ours() -> bool:
        return True

    monkeypatch.setattr(Polling, "_ask", ask)
    settings = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=1))
    running = asyncio.create_task(Polling(settings, cast("Any", None), SystemClock(), take, introduce, ours).run())
    try:
        await asyncio.wait_for(over.wait(), 20)
    finally:
        running.cancel()
    assert asked == [None, None, None, 8]


def made(monkeypatch: pytest.MonkeyPatch, slept: list[float], bot: object = None) -> Polling:
    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def nothing(*_: object) -> bool:
        return True

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    settings, none = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=1)), cast("Any", nothing)
    return Polling(settings, cast("Any", bot), SystemClock(), none, none, none)


@pytest.mark.parametrize(("fate", "least"), [(Fate.TOO_FAST, 77.0), (Fate.UNKNOWN, 1.0)])
async def test_what_telegram_asks_to_wait_is_waited_before_the_next_poll(
    fate: Fate, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    await made(monkeypatch, slept)._pause(CallFailed(fate, "no", retry_after=77.0))
    assert slept == [least]


@pytest.mark.parametrize(("seconds", "told"), [(3.0, False), (3_600.0, True)])
async def test_a_pause_in_which_nothing_comes_in_for_long_is_told_the_first_time(
    seconds: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = made(monkeypatch, [])
    poll._failed = 1
    await poll._pause(CallFailed(Fate.TOO_FAST, f"Telegram asks to wait {seconds:g} s", retry_after=seconds))
    assert (f"asks to wait {seconds:g} s" in poll.words) is told


async def test_whoever_polls_beside_us_is_given_way_to_for_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    poll = made(monkeypatch, slept)
    for _ in range(3):
        await poll._pause(CallFailed(Fate.REFUSED, "Conflict: terminated by other getUpdates request"))
    assert slept == [1.0, 30.0, 30.0]


async def test_one_failure_between_polls_that_went_well_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    polls = iter([False, True, False, True, False, False])
    seen: list[str] = []

    async def ask(running: Polling, _: Asking) -> list[object]:
        seen.append(running.words)
        if next(polls):
            return []
        raise CallFailed(Fate.UNKNOWN, "no")

    monkeypatch.setattr(Polling, "_ask", ask)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await made(monkeypatch, []).run()
    assert [bool(words) for words in seen] == [False] * 6 + [True]


async def test_an_answer_that_is_no_list_of_updates_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def do_api_request(*_: object) -> object:
        return {"ok": "not at all"}

    poll = made(monkeypatch, [], SimpleNamespace(do_api_request=do_api_request))
    with pytest.raises(CallFailed, match="no list"):
        await poll._ask(Asking())
