"""What a chat shows of a turn's view."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import ContentKind, Traits
from adapters.delivery.parts import picture
from adapters.text.styled import Styled
from agent_core.turn.view import Bubble, BubbleKind, View

TEXTS = (BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER)
WHILE_OPEN = (*TEXTS, BubbleKind.NOTE, BubbleKind.ACTIVITY, BubbleKind.MENDED, BubbleKind.FILE)
STATUS = Bubble("status", BubbleKind.STATUS, "Waiting for the model, 20 s", final=False)


def pieces(text: str, grows: bool) -> tuple[Styled, ...]:
    return tuple(Styled(text[at : at + 10]) for at in range(0, len(text), 10))


@st.composite
def views(draw: st.DrawFn) -> View:
    kinds = draw(st.lists(st.sampled_from(WHILE_OPEN), max_size=5))
    bubbles = [Bubble(f"b{i}", kind, f"words of {i}", final=True, state="done") for i, kind in enumerate(kinds)]
    if bubbles and bubbles[-1].kind in TEXTS and draw(st.booleans()):
        bubbles[-1] = replace(bubbles[-1], final=False)
    if draw(st.booleans()):
        bubbles.append(STATUS)
    return View(tuple(bubbles), open=True)


def status_of(view: View, *, growing: bool, drafts: bool) -> str:
    shown = picture(view, "t_1", pieces, traits=Traits(drafts=drafts), reply_to="", growing=growing)
    return "".join(one.content.body.text for one in shown.wanted if one.content.kind is ContentKind.STATUS)


@given(views())
def test_the_status_is_that_of_the_view_whatever_was_formatted_this_time(view: View) -> None:
    found = {status_of(view, growing=growing, drafts=drafts) for growing in (True, False) for drafts in (True, False)}
    assert len(found) == 1
    assert (STATUS in view.bubbles) == (STATUS.text in found.pop())
