"""Text that turns out to have been a thought goes from the screen, from the answer and from what later turns are told."""

from __future__ import annotations

from dataclasses import replace

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.turn.events import ReasoningArrived, TextArrived, TextTakenBack
from agent_core.turn.state import AssistantItem
from agent_core.turn.transcript import closed_turn_messages
from agent_core.turn.view import BubbleKind
from tests.agent_core.turns import ROUTE, SETTINGS, Rig

TEXTS = (BubbleKind.PARTIAL, BubbleKind.INTERIM, BubbleKind.ANSWER)


def shown(rig: Rig) -> list[str]:
    return [bubble.text for bubble in rig.view().bubbles if bubble.kind in TEXTS]


def test_the_answer_is_what_follows_the_end_of_the_thought():
    rig = Rig()
    rig.text("They want a number. ")
    first = [bubble.key for bubble in rig.view().bubbles if bubble.kind in TEXTS]
    rig.feed(TextTakenBack(at=rig.tick()))
    assert shown(rig) == []
    rig.says("Four.")
    assert shown(rig) == ["Four."]
    assert first != [bubble.key for bubble in rig.view().bubbles if bubble.kind in TEXTS]
    assert rig.code is ExitCode.ANSWERED
    assert "number" not in str(closed_turn_messages(rig.turn))


def test_a_reply_that_is_nothing_but_such_a_thought_is_thinking_only():
    rig = Rig()
    rig.text("Hm.")
    rig.feed(TextTakenBack(at=rig.tick()))
    rig.finish("stop")
    assert shown(rig) == []
    assert rig.turn.exit is None


def test_a_tool_call_behind_it_keeps_nothing_of_it():
    rig = Rig()
    rig.text("I need the file.")
    rig.feed(TextTakenBack(at=rig.tick()))
    rig.begins_call("read", "{}")
    rig.finish("tool_calls")
    assert shown(rig) == []
    assert [item.text for item in rig.turn.items if isinstance(item, AssistantItem)] == [""]


def test_what_an_earlier_call_had_said_stays():
    rig = Rig()
    rig.text("The first half of a long answer, ")
    rig.breaks(BreakCause.STALLED)
    assert rig.last_call.partial
    rig.feed(TextArrived(at=rig.tick(), text="I go on now."))
    rig.feed(TextTakenBack(at=rig.tick()))
    assert shown(rig) == ["The first half of a long answer, "], "it stays in sight meanwhile"
    rig.says("and the second half.")
    assert shown(rig) == ["The first half of a long answer, and the second half."]


def test_a_thought_that_was_cut_and_gone_on_with_goes_as_a_whole():
    rig = Rig()
    rig.text("They want a number. ")
    rig.breaks(BreakCause.DROPPED)
    rig.text("It has to be four.")
    rig.feed(TextTakenBack(at=rig.tick(), earlier=True))
    assert shown(rig) == []
    rig.says("Four.")
    assert shown(rig) == ["Four."]
    assert rig.code is ExitCode.ANSWERED
    assert "number" not in str(closed_turn_messages(rig.turn))


def test_a_thought_that_was_cut_twice_goes_as_a_whole():
    rig = Rig()
    for text in ("They want ", "a number. "):
        rig.text(text)
        rig.breaks(BreakCause.DROPPED)
    rig.text("Four.")
    rig.feed(TextTakenBack(at=rig.tick(), earlier=True))
    rig.says("It is four.")
    assert shown(rig) == ["It is four."]


def test_what_came_behind_a_thought_that_was_told_apart_is_none():
    rig = Rig()
    rig.feed(ReasoningArrived(at=rig.tick(), text="Hm."))
    rig.text("The first half of a long answer, ")
    rig.breaks(BreakCause.DROPPED)
    rig.text("I go on now.")
    rig.feed(TextTakenBack(at=rig.tick(), earlier=True))
    assert shown(rig) == ["The first half of a long answer, "]
    rig.says("and the second half.")
    assert shown(rig) == ["The first half of a long answer, and the second half."]


def test_what_another_model_had_said_is_no_thought_of_this_one():
    rig = Rig(settings=replace(SETTINGS, routes=(ROUTE, replace(ROUTE, model="m2"))))
    rig.text("The first half of a long answer, ")
    while rig.calls[-1].route == ROUTE:
        rig.breaks(BreakCause.DROPPED)
    rig.text("I go on now.")
    rig.feed(TextTakenBack(at=rig.tick(), earlier=True))
    assert shown(rig) == ["The first half of a long answer, "]
    rig.says("and the second half.")
    assert shown(rig) == ["The first half of a long answer, and the second half."]
