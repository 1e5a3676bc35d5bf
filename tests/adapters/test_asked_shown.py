"""What people are asked has its buttons as long as somebody can answer, and what was decided has none: whoever presses later would be told nothing."""

from __future__ import annotations

import pytest

from adapters.contract.chat import ContentKind, Traits
from adapters.delivery.parts import picture
from adapters.text.styled import Styled
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
