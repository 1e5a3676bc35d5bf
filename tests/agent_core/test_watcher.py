"""Who looks at a running turn: each is told of what is new as often as it is, and of nothing once it has left; what changes no more says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_core.bell import Bell
from agent_core.driver.watcher import TurnSeen, Watcher, kept_back, with_progress
from agent_core.ports import SystemClock
from agent_core.tools.asking import AskedStep, kept
from agent_core.turn.effects import RunTool
from agent_core.turn.events import StopRequested, ToolStarted
from agent_core.turn.view import BubbleKind
from tests.agent_core.turns import Rig


class Bells(Bell):
    """Counts."""

    def __init__(self) -> None:
        super().__init__()
        self.rung = 0

    def ring(self) -> None:
        self.rung += 1


def acting() -> tuple[Rig, str]:
    """A turn whose tool runs, and its call."""
    rig = Rig()
    rig.calls_tool("send")
    (call,) = [one.call for one in rig.wanted if isinstance(one, RunTool)]
    rig.feed(ToolStarted(at=rig.tick(), call=call))
    return rig, call


def test_how_far_a_call_is_stands_beside_it_as_long_as_the_turn_goes_on() -> None:
    rig, call = acting()
    shown = with_progress(rig.view(), {call: "half of it", "another": "nothing"})
    assert [one.text.endswith("– half of it") for one in shown.bubbles if one.call == call] == [True]
    assert not any("nothing" in one.text for one in shown.bubbles)
    rig.feed(StopRequested(at=rig.tick()))
    assert with_progress(rig.view(), {call: "half of it"}) == rig.view(), "nothing of it changes any more"
    assert kept_back(rig.view()) == rig.view()


def test_what_a_call_asks_is_not_touched_by_how_far_it_is() -> None:
    rig, call = acting()
    steps = [AskedStep("a", "Seats?", answer="3", by="ada"), AskedStep("b", "Rows?")]
    rig.feed(ToolStarted(at=rig.tick(), call=call, intention=kept(steps)))
    before, shown = rig.view(), with_progress(rig.view(), {call: "half of it"})
    assert [one.kind for one in before.bubbles].count(BubbleKind.QUESTION) == 2
    changed = [was.kind for was, one in zip(before.bubbles, shown.bubbles, strict=True) if was != one]
    assert changed == [BubbleKind.ACTIVITY]


def test_of_a_turn_of_which_nothing_new_can_be_known_that_is_its_status() -> None:
    rig, _ = acting()
    rig.tick(60_000)
    assert [one.kind for one in rig.view().bubbles].count(BubbleKind.STATUS) == 1
    shown = kept_back(rig.view())
    (status,) = [one for one in shown.bubbles if one.kind is BubbleKind.STATUS]
    assert "cannot store" in status.text
    assert replace(shown, bubbles=()) == replace(rig.view(), bubbles=())


@pytest.mark.parametrize("of_the_end", [False, True])
async def test_who_waits_for_the_end_alone_is_rung_at_the_end_alone(of_the_end: bool) -> None:
    seen, bell = TurnSeen(SystemClock()), Bells()
    (seen.subscribe_to_end if of_the_end else seen.subscribe)(bell)
    seen.wake()
    assert bell.rung == (0 if of_the_end else 1)
    seen.hold()
    seen.wake()
    seen.wake_for_text()
    assert bell.rung == (0 if of_the_end else 1), "it is being committed"
    seen.release()
    seen.over = True
    before = bell.rung
    seen.wake()
    assert bell.rung == before + 1
    seen.unsubscribe(bell)
    seen.ring()
    assert bell.rung == before + 1, "it has left"


async def test_who_looks_twice_is_told_once_and_leaves_once() -> None:
    seen, bell = TurnSeen(SystemClock()), Bells()
    seen.subscribe(bell)
    seen.subscribe(bell)
    seen.ring()
    assert bell.rung == 1
    seen.unsubscribe(bell)
    seen.ring()
    assert bell.rung == 1


async def test_a_watcher_sees_what_there_is_at_once_and_knows_the_last_of_it() -> None:
    rig, seen = Rig(), TurnSeen(SystemClock())
    seen.turn = rig.turn
    with Watcher(seen) as watcher:
        assert await watcher.next(5) is not None
        assert not watcher.ended
        assert await watcher.next(0) is None, "nothing is new"
        rig.says("Hello.")
        seen.over = True
        asyncio.get_running_loop().call_soon(seen.wake)
        last = await watcher.next(5)
        assert last is not None
        assert (last.text, watcher.ended) == ("Hello.", True)
