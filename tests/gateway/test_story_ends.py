"""What a story is told of beside its turn: whoever asked it alone, the nearest message, what comes before and not behind. Without a database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from adapters.contract.callers import Caller
from agent_core.limits.retention import DAY_MS
from agent_core.messages import InputMessage
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.turns.rows import TurnRow, TurnState
from gateway.explain import telling
from gateway.explain.ids import Candidate, IdKind
from gateway.explain.story import NEAR_MS, Explainer, asked_of
from gateway.queues.inbox import encode
from tests.agent_core.turns import gives

ADA, BOB = Caller("laptop", "ada"), Caller("phone", "bob")
NOW = 1_700_000_000_000


def message(number: int, caller: Caller = ADA, at: int = NOW, **more: Any) -> InboxRow:
    said = FromApi(
        account="api", platform_key=f"k{number}", session=SessionKey("api", "key", "c", person=caller.realm), input=(),
        surface="api", memory_scope=f"api/{caller.person}", key=caller.key,
    )  # fmt: skip
    row = InboxRow(number, "api", f"k{number}", "s_1", number, "normal", encode(said), InboxState.TAKEN, None, at)
    return replace(row, **more)


# ---------------------------------------------------------------------- to whom it is told


@pytest.mark.parametrize(
    ("asked", "told"),
    [([ADA], True), ([ADA, ADA], True), ([BOB], False), ([ADA, BOB], False), ([BOB, ADA], False)],
)
async def test_a_story_is_told_to_whoever_asked_all_of_it(
    monkeypatch: pytest.MonkeyPatch, asked: list[Caller], *, told: bool
) -> None:
    async def inputs(turn: str) -> list[InboxRow]:
        assert turn == "t_1"
        return [message(number, caller) for number, caller in enumerate(asked)]

    async def story(*_: object) -> tuple[str, ...]:
        return ("Once.",)

    monkeypatch.setattr(telling, "why_as_then", story)
    store: Any = SimpleNamespace(inbox=SimpleNamespace(inputs=inputs))
    assert await telling.told_to(ADA, "", store, "t_1", gives(NOW)) == (("Once.",) if told else ())


@pytest.mark.parametrize(("owner", "there", "told"), [(ADA, True, True), (BOB, True, False), (ADA, False, False)])
async def test_where_nothing_is_kept_of_what_was_asked_it_is_told_in_its_conversation(
    monkeypatch: pytest.MonkeyPatch, owner: Caller, *, there: bool, told: bool
) -> None:
    row = TurnRow("t_1", "s_1", 1, TurnState.CLOSED, "answered", NOW, NOW, NOW)
    key = SessionKey("api", "key", "c", person=owner.realm).text()

    async def found(what: object) -> object:
        return what if there else None

    async def story(*_: object) -> tuple[str, ...]:
        return ("Once.",)

    monkeypatch.setattr(telling, "why_as_then", story)

    async def asked(_: str) -> list[InboxRow]:
        return []

    async def turn(_: str) -> object:
        return await found(row)

    async def session(_: str) -> object:
        return await found(SessionRow("s_1", key, 1, 1))

    store: Any = SimpleNamespace(
        inbox=SimpleNamespace(inputs=asked), turns=SimpleNamespace(one=turn), sessions=SimpleNamespace(one=session)
    )
    assert await telling.told_to(ADA, "", store, "t_1", gives(NOW)) == (("Once.",) if told else ())


# ---------------------------------------------------------------------- what it is told of


class Reads:
    """Rows of one conversation, in memory."""

    def __init__(self, *rows: InboxRow, turns: tuple[TurnRow, ...] = ()) -> None:
        self.rows, self.all_turns = rows, turns
        self.inbox = self.turns = self.sessions = self.deliveries = self

    async def accounts(self) -> list[str]:
        return ["telegram/1"]

    async def of_place(self, prefix: str) -> list[SessionRow]:
        return [SessionRow("s_1", f"{prefix}/", 1, 1)]

    async def near(self, at: int) -> int:
        return at

    async def between(self, *given: Any) -> list[Any]:
        if isinstance(given[0], str):
            return [one for one in self.all_turns if given[1] <= one.opened_at <= given[2]]
        return [*self.rows]

    async def inputs(self, turn: str) -> list[InboxRow]:
        return [one for one in self.rows if one.turn == turn]

    async def pending(self, session: str) -> list[InboxRow]:
        assert session == "s_1"
        return [one for one in self.rows if one.state is InboxState.NEW]

    async def one(self, name: object) -> Any:
        of = {one.turn: one for one in self.all_turns} if isinstance(name, str) else {one.id: one for one in self.rows}
        return cast("dict[object, Any]", of).get(name)

    async def by_keys(self, *_: object, **__: object) -> list[InboxRow]:
        return []

    async def of(self, _: str) -> list[Any]:
        return []

    async def journal(self, _: str) -> list[Any]:
        return []

    async def adapter_states(self, *_: object) -> list[Any]:
        return []

    async def starts(self, *_: object) -> list[Any]:
        return []


def explainer(reads: Reads, now: int = NOW, kept_days: int = 7) -> Explainer:
    return Explainer(cast("Any", reads), lambda: now, kept_days=kept_days)


@given(st.lists(st.integers(-NEAR_MS, NEAR_MS), min_size=1, max_size=6, unique_by=abs))
def test_of_several_messages_near_a_time_the_nearest_is_told_and_the_others_named(apart: list[int]) -> None:
    rows = [message(number, at=NOW + ms) for number, ms in enumerate(sorted(apart), 1)]
    told = asyncio.run(explainer(Reads(*rows)).chat_at("telegram/7", NOW))
    nearest = min(rows, key=lambda row: abs(row.received_at - NOW))
    assert told.id == str(nearest.id)
    named = [one for one in told.also if one.startswith("message ")]
    assert len(named) == min(4, len(rows) - 1)
    for one in named:
        other = next(row for row in rows if one.startswith(f"message {row.id} came "))
        assert one.endswith("later" if other.received_at > nearest.received_at else "earlier")


@given(st.permutations([3, 5, 7, 9]), st.sampled_from([3, 5, 7, 9]))
def test_a_message_waits_behind_those_that_came_before_it(order: list[int], which: int) -> None:
    rows = [message(number, state=InboxState.NEW) for number in order]
    reads = Reads(*rows)
    mine = next(row for row in rows if row.id == which)
    case = asyncio.run(explainer(reads)._case(None, [mine], which))
    assert case.ahead == sum(number < which for number in order)


@given(st.integers(1, 5))
def test_of_a_turn_are_told_those_before_it_that_its_message_waited_for(number: int) -> None:
    turns = tuple(
        TurnRow(f"t_{n}", "s_1", n, TurnState.CLOSED, "answered", NOW + n, NOW + n + 1, NOW, first_message=n, last_message=n)
        for n in range(1, 6)
    )  # fmt: skip
    row = message(number, at=NOW, turn=f"t_{number}")
    case = asyncio.run(explainer(Reads(row, turns=turns)).case(f"t_{number}"))
    assert case is not None
    assert [one.number for one in case.before] == [*range(1, number)]


@pytest.mark.parametrize(("days", "ago", "forgotten"), [(7, 8, True), (7, 6, False), (0, 8_000, False), (1, 2, True)])
def test_what_is_too_old_to_be_kept_is_told_so_and_nothing_is_where_it_is_kept_for_ever(
    days: int, ago: int, *, forgotten: bool
) -> None:
    told = asyncio.run(explainer(Reads(), kept_days=days).chat_at("telegram/7", NOW - ago * DAY_MS))
    assert not told.found
    words = " ".join(line.words for line in told.lines)
    assert ("may have come then and been forgotten" in words) is forgotten


@given(st.text(max_size=60), st.booleans())
def test_nobodys_words_are_told_unless_they_are_asked_for(words: str, show: bool) -> None:
    said = FromApi(
        account="api", platform_key="k", session=SessionKey("api", "key", "c"), input=(InputMessage(words),), surface="api",
        memory_scope="api",
    )  # fmt: skip
    asked = asked_of(replace(message(1), body=encode(said)), show_text=show)
    assert asked.words == (words if show else "")
    assert asked.chars == len(words)


@pytest.mark.parametrize(("session", "found"), [("s_1", True), ("s_2", False)])
def test_an_answers_id_leads_to_its_message_in_its_own_conversation_alone(session: str, *, found: bool) -> None:
    reads = Reads(message(5))
    told = asyncio.run(explainer(reads)._one(Candidate(IdKind.ANSWER, f"{session}:5")))
    assert (told is not None) is found
