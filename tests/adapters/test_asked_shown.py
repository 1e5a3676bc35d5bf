"""What people are asked has its buttons as long as somebody can answer, and what was decided has none: whoever presses later would be told nothing."""

from __future__ import annotations

import pytest

from adapters.contract.chat import ContentKind, TaskState, Traits
from adapters.delivery.parts import cards_at, picture
from adapters.text.styled import Styled
from agent_core.turn.state import ActivityState
from agent_core.turn.view import Action, Bubble, BubbleKind, View


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("kind", "buttons"), [(BubbleKind.APPROVAL, True), (BubbleKind.QUESTION, True), (BubbleKind.DECIDED, False)]
)
def test_what_is_asked_can_be_pressed_until_it_is_decided(kind: BubbleKind, is_open: bool, buttons: bool) -> None:
    bubble = Bubble(
        "c1.asked", kind, "May I?", final=not buttons, call="c1", actions=tuple(Action)[:2], options=("yes", "no")
    )
    shown = picture(
        View((bubble,), open=is_open),
        "t1",
        lambda text, _: (Styled(text),),
        traits=Traits(drafts=False),
        reply_to="",
    )
    contents = [one.content for one in shown.wanted if not one.fleeting]
    assert any(one.kind is ContentKind.APPROVAL for one in contents)
    assert any(one.buttons for one in contents) is buttons


RUNS = {
    ActivityState.WAITING: TaskState.WAITING,
    ActivityState.RUNNING: TaskState.RUNNING,
    ActivityState.DONE: TaskState.DONE,
}


@pytest.mark.parametrize("state", ActivityState)
def test_the_card_of_a_tool_goes_round_only_while_that_runs(state: ActivityState) -> None:
    bubble = Bubble("c1", BubbleKind.ACTIVITY, "look", final=state not in RUNS, state=state.value, call="c1")
    cards = cards_at(View((bubble,), open=True), 0)
    assert cards is not None
    assert [one.state for one in cards.content.tasks] == [RUNS.get(state, TaskState.FAILED)]


@pytest.mark.parametrize("growing", [True, False])
def test_what_stands_behind_a_text_that_was_not_looked_at_answers_nobody(growing: bool) -> None:
    """The first part answers the person, and the text before it is that, looked at or not."""
    bubbles = (
        Bubble("a", BubbleKind.PARTIAL, "I look.", final=False),
        Bubble("f", BubbleKind.FILE, "a.csv", final=True),
    )
    shown = picture(
        View(bubbles, open=True), "t1", lambda text, _: (Styled(text),),
        traits=Traits(drafts=False), reply_to="5", growing=growing,
    )  # fmt: skip
    replies = {one.bubble: one.content.reply_to for one in shown.wanted}
    assert replies == ({"a": "5", "f": ""} if growing else {"f": ""})
