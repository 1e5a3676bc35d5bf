"""What a running call asks people: each answer is put down before anybody is told of it, and who answers is told at once what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from agent_core.driver.asking import OpenQuestions
from agent_core.driver.watcher import STORAGE_AWAY
from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.tools.asking import (
    AnswerAction,
    AskedField,
    AskedStep,
    FieldKind,
    PersonAsked,
    ToolAnswer,
    ToolQuestion,
    steps_of,
)

FIELDS = tuple(AskedField(name, name, FieldKind.WHOLE, needed=True) for name in ("seats", "rows"))
QUESTION = ToolQuestion("desk", "How many?", FIELDS)


@dataclass
class Desk:
    """A call that asks, and where what is asked and said of it is put down."""

    questions: OpenQuestions = field(default_factory=OpenQuestions)
    asking: PersonAsked = field(default_factory=lambda: PersonAsked(QUESTION, []))
    stored: list[tuple[AskedStep, ...]] = field(default_factory=list[tuple[AskedStep, ...]])
    may_store: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_store.set()

    async def intend(self, intention: Json) -> None:
        await self.may_store.wait()
        self.stored.append(steps_of(intention))

    def asks(self, seconds: float = 60.0) -> asyncio.Task[ToolAnswer]:
        return asyncio.create_task(self.questions.ask("c1", self.asking, seconds, self.intend))

    def answers(self, words: str, call: str = "c1") -> asyncio.Task[str | None]:
        return asyncio.create_task(self.questions.answer(call, words, "ada"))

    async def comes(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not what():
                await asyncio.sleep(0)


async def soon(work: Awaitable[str | None]) -> str | None:
    """What somebody is told, who does not wait for the end of a limit."""
    async with asyncio.timeout(5):
        return await work


async def test_an_answer_is_put_down_before_it_is_told_and_before_the_call_goes_on() -> None:
    desk = Desk()
    call = desk.asks()
    await desk.comes(lambda: desk.stored)
    assert await soon(desk.answers("many")) == "It must be a whole number."
    assert await soon(desk.answers("3", "")) == "", "whichever asks"
    desk.may_store.clear()
    told = desk.answers("4")
    await desk.comes(lambda: desk.asking.action)
    await asyncio.sleep(0)
    assert (told.done(), call.done()) == (False, False)
    desk.may_store.set()
    assert await soon(told) == "Thank you."
    assert (await call).content == {"seats": 3, "rows": 4}
    assert [one.answer for one in desk.stored[-1]] == ["3", "4"]
    assert (desk.questions.asked, desk.questions.asks("c1")) == (False, False)
    assert await soon(desk.answers("5")) is None


async def test_who_answers_twice_what_they_see_has_not_answered_what_nobody_has_seen_yet() -> None:
    desk = Desk()
    call = desk.asks()
    await desk.comes(lambda: desk.stored)
    desk.may_store.clear()
    twice = [desk.answers("3"), desk.answers("3")]
    await desk.comes(lambda: desk.asking.content)
    await asyncio.sleep(0)
    again = desk.answers("3")  # the second question is not put down yet, and so not seen
    await asyncio.sleep(0)
    desk.may_store.set()
    assert [await soon(one) for one in (*twice, again)] == [
        "",
        "That was answered already.",
        "That was answered already.",
    ]
    assert not call.done()
    assert await soon(desk.answers("4")) == "Thank you."
    assert (await call).content == {"seats": 3, "rows": 4}


async def test_who_answers_while_nothing_can_be_stored_is_not_told_that_nothing_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent_core.driver.asking.KEEP_SECONDS", 0.01)
    desk = Desk()
    call = desk.asks()
    await desk.comes(lambda: desk.stored)
    desk.may_store.clear()
    assert await soon(desk.answers("decline")) == STORAGE_AWAY
    desk.may_store.set()
    assert (await call).action is AnswerAction.DECLINE, "it counts as soon as it can be stored"


async def test_it_is_open_for_its_time_however_many_answers_do_not_fit_and_that_it_was_over_is_put_down() -> None:
    desk = Desk()
    call = desk.asks(0.05)

    async def keep_on() -> None:
        while await desk.questions.answer("c1", "many", "ada") is not None:
            pass

    async with asyncio.timeout(20):
        await asyncio.gather(keep_on(), call)
    assert (await call).action is AnswerAction.CANCEL
    assert "in time" in (await call).why
    assert desk.stored[-1][-1].answer == ""


async def test_an_answer_that_came_in_time_counts_however_long_it_takes_to_put_it_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[Limit] = []

    def made(seconds: float) -> Limit:
        limits.append(Limit(seconds))
        return limits[-1]

    monkeypatch.setattr("agent_core.driver.asking.Limit", made)
    desk = Desk(asking=PersonAsked(ToolQuestion("desk", "Shall I?"), []))
    call = desk.asks()
    await desk.comes(lambda: desk.stored)
    desk.may_store.clear()
    told = desk.answers("yes")
    await desk.comes(lambda: desk.asking.action)
    limits[0].move(0)
    await asyncio.sleep(0.01)
    desk.may_store.set()
    assert (await call).action is AnswerAction.ACCEPT
    assert await soon(told) == "Thank you."


@pytest.mark.parametrize("over", ["answered", "stopped"])
async def test_who_answers_too_late_is_told_so_and_waits_for_nothing(over: str) -> None:
    desk = Desk()
    call = desk.asks()
    await desk.comes(lambda: desk.stored)
    desk.may_store.clear()
    heard = desk.answers("decline")
    await desk.comes(lambda: desk.asking.action)
    late = [desk.answers(words) for words in ("3", "decline")]
    await asyncio.sleep(0)
    if over == "stopped":
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
    desk.may_store.set()
    assert await soon(heard) == ("It is told that you decline." if over == "answered" else None)
    assert [await soon(one) for one in late] == [None, None]
    assert not desk.questions.asked
