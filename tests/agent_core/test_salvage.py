"""Of a journal that cannot be read as a whole, what can be read counts: which tools ran, which may have, and what was asked."""

from __future__ import annotations

import pytest

from agent_core.failures.exits import Answered
from agent_core.journal.rows import encode
from agent_core.journal.salvage import ran, readable, told, unreadable_end
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import (
    CallSettled,
    Event,
    Refusal,
    TextArrived,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
)
from tests.agent_core.turns import opened

BAD = ("TextArrived", b"no JSON")


def rows(*events: Event) -> list[tuple[str, bytes]]:
    return [(one.kind, one.body) for one in map(encode, events)]


def named(call: str, tool: str) -> ToolCallNamed:
    return ToolCallNamed(at=1, index=0, call=call, name=tool)


def begun(call: str) -> ToolStarted:
    return ToolStarted(at=2, call=call)


def back(call: str, status: ToolStatus = ToolStatus.OK, refusal: Refusal = Refusal.NONE) -> ToolReturned:
    return ToolReturned(at=3, call=call, status=status, text="", refusal=refusal)


def test_behind_a_row_that_cannot_be_read_others_can() -> None:
    first, last = TextArrived(at=1, text="a"), TextArrived(at=2, text="b")
    assert readable([*rows(first), BAD, ("NoSuchKind", b"{}"), *rows(last)]) == [first, last]


@pytest.mark.parametrize(
    ("tool", "events", "done", "unsure"),
    [
        ("send", (begun("c"), back("c")), True, False),
        ("send", (begun("c"),), False, True),
        ("write", (begun("c"),), False, True),
        ("read", (begun("c"),), False, False),  # whoever only looked has done nothing
        ("send", (), False, False),
        ("send", (begun("c"), back("c", ToolStatus.FAILED)), False, False),
        ("send", (begun("c"), back("c", ToolStatus.TIMED_OUT)), False, True),
        ("read", (begun("c"), back("c", ToolStatus.TIMED_OUT)), False, False),
        ("send", (back("c", ToolStatus.REFUSED, Refusal.UNKNOWN_TOOL),), False, False),
        ("send", (CallSettled(at=3, call="c", words="", unsure=True),), False, True),
        ("send", (begun("c"), CallSettled(at=3, call="c", words="", unsure=True)), False, True),
        ("send", (CallSettled(at=3, call="c", words="no", denied=True),), False, False),
    ],
)
def test_what_ran_and_what_may_have_is_known_by_what_was_begun_and_what_came_back(
    tool: str, events: tuple[Event, ...], done: bool, unsure: bool
) -> None:
    found = ran([opened(), named("c", tool), *events])
    assert (found.done, found.unsure) == ((tool,) if done else (), (tool,) if unsure else ())
    ending = unreadable_end([*rows(opened(), named("c", tool), *events), BAD], "err_1")
    assert (ending.reference, ending.tools_done, ending.tools_unsure) == ("err_1", found.done, found.unsure)


def test_later_turns_are_told_what_was_asked_what_ran_and_that_the_rest_is_lost() -> None:
    events = (opened(), named("c", "send"), begun("c"), back("c"), named("d", "write"), begun("d"))
    asked, said = told([*rows(*events), BAD])
    assert asked["content"] == "hello"
    assert "cannot be read" in str(said["content"])
    assert "Done: send." in str(said["content"])
    assert "May or may not have run: write." in str(said["content"])
    assert told([BAD, *rows(*events[1:])]) == [], "nobody knows what was asked"


def test_an_end_that_can_be_read_is_told_with_its_notice() -> None:
    ended = TurnEnded(at=9, exit=unreadable_end([], "err_2"))
    _, said = told(rows(opened(), ended))
    assert "err_2" in str(said["content"])
    _, plain = told(rows(opened(), TurnEnded(at=9, exit=Answered())))
    assert "cannot be read" in str(plain["content"]), "the answer has no notice"
