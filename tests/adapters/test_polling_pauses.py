"""A pause that Telegram asks for is none in which the adapter counts as deaf, however long it is; one that nobody asked for is short."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.telegram import polling
from adapters.telegram.polling import (
    CONFLICT,
    CONFLICT_SECONDS,
    DISTURBED_SECONDS,
    FIRST_SECONDS,
    PAUSE_SECONDS,
    QUICK_SECONDS,
    SEVERAL_HARMLESS,
    UPDATES,
    Asking,
    Polling,
)
from tests.store.support import FakeClock

SETTINGS = cast("Any", SimpleNamespace(account="telegram/1", poll_seconds=25))
TWO_POLL = CallFailed(Fate.REFUSED, "Conflict: terminated by other getUpdates request")


async def nothing(*_: object) -> Any:
    """Nobody is asked."""


async def ours() -> bool:
    """No other gateway may have the poll."""
    return True


@pytest.mark.parametrize("fate", [Fate.TOO_FAST, Fate.UNKNOWN])
@pytest.mark.parametrize("seconds", [0.0, 1.0, 30.0, 300.0, 3_600.0])
async def test_a_pause_is_as_long_as_was_asked_for_and_no_silence(
    monkeypatch: pytest.MonkeyPatch, seconds: float, fate: Fate
) -> None:
    clock, silences = FakeClock(), list[float]()
    one = Polling(SETTINGS, cast("Any", None), clock, nothing, cast("Any", nothing), ours)

    async def sleep(pause: float) -> None:
        for _ in range(4):
            clock.now += round(pause * 250)
            silences.append(one.silent_seconds)

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    begun = clock.now
    await one._pause(CallFailed(fate, "no", retry_after=seconds))
    assert clock.now - begun == (max(1.0, seconds) if fate is Fate.TOO_FAST else 1.0) * 1000
    assert max(silences) < one.deaf_after_seconds


@pytest.mark.parametrize("apart", [0.0, DISTURBED_SECONDS - CONFLICT_SECONDS - 1, DISTURBED_SECONDS, 3_600.0])
async def test_that_two_poll_is_said_when_that_happens_again_before_long(
    monkeypatch: pytest.MonkeyPatch, apart: float
) -> None:
    clock, pauses = FakeClock(), list[float]()
    one = Polling(SETTINGS, cast("Any", None), clock, nothing, cast("Any", nothing), ours)

    async def sleep(pause: float) -> None:
        pauses.append(pause)
        clock.now += round(pause * 1000)

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    for _ in range(3):
        await one._pause(TWO_POLL)
        clock.now += round(apart * 1000)
    again = [CONFLICT_SECONDS] * 2 if apart + FIRST_SECONDS < DISTURBED_SECONDS else [FIRST_SECONDS] * 2
    assert pauses == [FIRST_SECONDS, *again]
    assert one.words == (CONFLICT if CONFLICT_SECONDS in pauses else "")


async def test_one_of_several_that_has_the_poll_asks_again_at_once_when_another_one_that_lost_the_database_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What people say meanwhile would be heard by nobody; and nobody is told to stop one of two. Who disturbs for longer is another program."""
    pauses, told = list[float](), list[str]()
    one = Polling(SETTINGS, cast("Any", None), FakeClock(), nothing, cast("Any", nothing), ours, several=True)

    async def sleep(pause: float) -> None:
        pauses.append(pause)
        told.append(one.words)

    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    for _ in range(SEVERAL_HARMLESS + 1):
        await one._pause(TWO_POLL)
    assert pauses == [FIRST_SECONDS] * SEVERAL_HARMLESS + [CONFLICT_SECONDS]
    assert told == [""] * SEVERAL_HARMLESS + [CONFLICT]


async def test_what_could_not_be_taken_and_is_gone_was_taken_by_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then that one has the poll. What is there still nobody has taken: the database is away for all, and who writes is told."""
    known = [False, False, False, False, False, True]
    answers: list[list[object]] = [[{"update_id": 7}], [{"update_id": 7}, {"update_id": 8}], [{"update_id": 9}], []]
    offered: list[int] = []

    async def knows() -> bool:
        return known.pop(0)

    async def ask(_: object) -> list[object]:
        if len(answers) == 1:
            assert not known, "it asks again when it knows"
            raise KeyboardInterrupt
        return answers.pop(0)

    async def away(updates: Any) -> bool:
        offered.append(len(updates))
        return False

    one = Polling(SETTINGS, cast("Any", None), FakeClock(), away, cast("Any", nothing), knows)
    monkeypatch.setattr(one, "_ask", ask)
    with pytest.raises(KeyboardInterrupt):
        await one.run()
    assert offered == [1, 2], "and nobody is told a second time of what the other one answers"


@pytest.mark.parametrize("stored", [True, False])
async def test_what_could_not_be_stored_is_asked_for_once_more_at_once(
    monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    asked, wanted = list[tuple[int | None, int]](), list[object]()

    class Bot:
        async def do_api_request(self, endpoint: str, kwargs: dict[str, Any]) -> object:
            assert endpoint == "getUpdates"
            asked.append((kwargs.get("offset"), kwargs["timeout"]))
            wanted.append(kwargs.get("allowed_updates"))
            if len(asked) == 2:
                raise LookupError
            return [{"update_id": 7}]

    async def take(_: object) -> bool:
        return stored

    one = Polling(SETTINGS, cast("Any", Bot()), FakeClock(), take, cast("Any", nothing), ours)
    with pytest.raises(LookupError):
        await one.run()
    assert asked == [(None, 25), (8 if stored else None, 0)]
    assert wanted == [UPDATES] * 2, "the server remembers what somebody has asked for last"


async def test_that_somebody_else_polls_is_told_until_nobody_was_met_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A poll that went well does not mean that the other is gone; and whoever had the connection before us is nobody else."""
    clock = FakeClock()
    conflict = TWO_POLL
    met: list[tuple[int, CallFailed | None]] = [
        (0, conflict), (5, None), (5, conflict), (5, None), (round(DISTURBED_SECONDS), None), (1, conflict), (1, None),
    ]  # fmt: skip
    told: list[bool] = []
    introduced: list[object] = []

    async def ask(_: object) -> list[object]:
        if not met:
            raise KeyboardInterrupt
        seconds, error = met.pop(0)
        clock.now += seconds * 1000
        if error is not None:
            raise error
        return []

    async def taken(_: object) -> bool:
        told.append(bool(one.words))
        return True

    async def introduce() -> None:
        introduced.append(one)

    one = Polling(SETTINGS, cast("Any", None), clock, taken, introduce, ours)
    monkeypatch.setattr(one, "_ask", ask)
    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=nothing))
    with pytest.raises(KeyboardInterrupt):
        await one.run()
    assert told == [False, True, False, False]
    assert introduced == []
    for words, cause in (
        ("Conflict: can't use getUpdates while webhook is active", Cause.OTHER),
        ("no", Cause.NOT_LET_IN),
    ):
        await one._pause(CallFailed(Fate.REFUSED, words, cause=cause))
    assert len(introduced) == 2, "who took our place by a webhook, or our name, is looked at"


async def test_one_that_does_not_know_whether_the_poll_is_its_own_disturbs_whoever_has_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It asks by a poll that waits, so that it is told of the other one; then it leaves the poll to it, until it knows better."""
    known = [True, False, *[False] * 5, True, True]
    asked: list[bool] = []

    async def knows() -> bool:
        return known.pop(0)

    async def ask(asking: Asking) -> list[object]:
        asked.append(asking.waits)
        if len(asked) == 2:
            raise TWO_POLL
        if not known:
            raise KeyboardInterrupt
        return [{"update_id": 7}]

    async def away(_: object) -> bool:
        return False

    clock = FakeClock()
    one = Polling(SETTINGS, cast("Any", None), clock, away, cast("Any", nothing), knows)
    monkeypatch.setattr(one, "_ask", ask)
    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=nothing))
    with pytest.raises(KeyboardInterrupt):
        await one.run()
    assert asked == [True, True, True, False], (
        "not known: it waits; ended by the other: it asks no more until it is known again"
    )


@pytest.mark.parametrize("took_seconds", [0.0, 0.2, 0.3, 25.0])
@pytest.mark.parametrize("updates", [[], [{"update_id": 7}], [{"no": "id"}]])
async def test_an_answer_without_anything_new_that_comes_at_once_is_followed_by_a_pause(
    monkeypatch: pytest.MonkeyPatch, took_seconds: float, updates: list[object]
) -> None:
    """A server, or something before it, that waits for nothing would be asked thousands of times a minute."""
    clock, slept = FakeClock(), list[float]()
    answers = [updates]

    async def ask(_: object) -> list[object]:
        if not answers:
            raise KeyboardInterrupt
        clock.now += round(took_seconds * 1000)
        return answers.pop()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def taken(_: object) -> bool:
        return True

    one = Polling(SETTINGS, cast("Any", None), clock, taken, cast("Any", nothing), ours)
    monkeypatch.setattr(one, "_ask", ask)
    monkeypatch.setattr(polling, "asyncio", SimpleNamespace(sleep=sleep))
    with pytest.raises(KeyboardInterrupt):
        await one.run()
    stuck, quick = updates == [{"no": "id"}], not updates and took_seconds < QUICK_SECONDS
    assert slept == ([2 * PAUSE_SECONDS] if stuck else [PAUSE_SECONDS] if quick else [])
