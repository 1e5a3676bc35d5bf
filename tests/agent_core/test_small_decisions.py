"""Decisions of one line, each with what stands on its other side."""

from __future__ import annotations

import pytest

from agent_core.limits.budgets import Price
from agent_core.limits.retention import SessionAge, needed
from agent_core.signals import LawBroken, Signal, Signals
from agent_core.store.slices.rows import ANYBODY, Right
from agent_core.store.slices.sql import _right
from agent_core.text.redaction import MASK, SHORTEST_SECRET, Redactor
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import RunTool
from agent_core.turn.events import ToolReturned, ToolStarted
from agent_core.turn.view import BubbleKind, view
from tests.agent_core.turns import Rig

ME, OTHER = 3, 4


@pytest.mark.parametrize(
    ("owner", "dead", "right"),
    [
        (ME, (), Right(ours=True)),
        (ME, (ME,), Right(ours=True)),
        (None, (), ANYBODY),
        (OTHER, (), Right(other=OTHER)),
        (OTHER, (OTHER,), ANYBODY),
    ],
)
def test_a_conversation_is_taken_by_who_has_its_slice_or_from_whom_is_dead(
    owner: int | None, dead: tuple[int, ...], right: Right
) -> None:
    assert _right(owner, ME, frozenset(dead)) == right


@pytest.mark.parametrize(
    ("last_at", "number", "undone", "kept"),
    [
        (100, 5, False, True),
        (100, 5, True, False),
        (99, 5, False, False),
        (100, 3, False, False),
        (100, 4, False, True),
    ],
)
def test_a_turn_is_needed_that_a_living_conversation_still_tells(
    last_at: int, number: int, undone: bool, kept: bool
) -> None:
    assert needed(SessionAge(last_at, 2, 4), number, 100, undone=undone) is kept


@pytest.mark.parametrize("cached", [0, 5, 10, 11, 1_000])
def test_no_more_of_a_prompt_comes_from_a_cache_than_there_is(cached: int) -> None:
    price = Price(input=3_000, output=0, cached=1_000)
    assert price.nanos(10, 0, cached) == 3 * 10 - 2 * min(cached, 10)


def test_how_long_a_call_took_is_told_when_it_is_back_and_grows_no_more() -> None:
    rig = Rig()
    rig.calls_tool("read")
    (call,) = [one.call for one in rig.wanted if isinstance(one, RunTool)]
    rig.feed(ToolStarted(at=rig.tick(), call=call))
    started = rig.now

    def told(now: int) -> list[int]:
        return [one.seconds for one in view(rig.turn, now).bubbles if one.kind is BubbleKind.ACTIVITY]

    assert told(started + 7_000) == [7]
    rig.feed(ToolReturned(at=rig.tick(), call=call, status=ToolStatus.OK, text="done", seconds=2.4))
    assert told(rig.now) == told(rig.now + 60_000) == [2]


def test_of_a_secret_in_a_secret_nothing_is_left_and_short_ones_are_none() -> None:
    outer, inner = "zq7-outer-and-inner-4xk", "outer-and-inner"
    assert Redactor.of([inner, outer]).redact(f"say {outer} now") == f"say {MASK} now"
    assert Redactor.of([inner, outer]).hide(f"say {outer} now") == f"say {MASK} now"
    short = "ab1c2"
    assert len(short) < SHORTEST_SECRET
    assert Redactor.of([short]).redact(f"x{short}y") == f"x{short}y"


def test_whoever_begins_to_listen_hears_what_comes_from_then_on_also_of_kinds_that_were_told_before() -> None:
    told, first, second = Signals(), list[Signal](), list[Signal]()
    told.listen(first.append, LawBroken)
    told.tell(LawBroken())
    told.listen(second.append)
    told.tell(LawBroken())
    assert (len(first), len(second)) == (2, 1)
