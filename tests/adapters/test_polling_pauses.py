"""A pause that Telegram asks for is none in which the adapter counts as deaf, however long it is; one that nobody asked for is short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import CallFailed, Fate
from adapters.telegram import polling
from adapters.telegram.polling import Polling
from tests.store.support import FakeClock


async def nothing(*_: object) -> Any:
    """Nobody is asked."""


@pytest.mark.parametrize("fate", [Fate.TOO_FAST, Fate.UNKNOWN])
@pytest.mark.parametrize("seconds", [0.0, 1.0, 30.0, 300.0, 3_600.0])
async def test_a_pause_is_as_long_as_was_asked_for_and_no_silence(
    monkeypatch: pytest.MonkeyPatch, seconds: float, fate: Fate
) -> None:
    clock, silences = FakeClock(), list[float]()
    settings = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=25))
    one = Polling(settings, cast("Any", None), clock, nothing, cast("Any", nothing), nothing)

    async def sleep(pause: float) -> None:
        for _ in range(4):
            clock.now += round(pause * 250)
            silences.append(one.silent_seconds)

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    begun = clock.now
    await one._pause(CallFailed(fate, "no", retry_after=seconds))
    assert clock.now - begun == (max(1.0, seconds) if fate is Fate.TOO_FAST else 1.0) * 1000
    assert max(silences) < one.deaf_after_seconds
