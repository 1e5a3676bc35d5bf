"""What marks the gateway's words, and that no model's text has it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import Piece, Traits
from adapters.delivery.parts import picture
from adapters.text.styled import Styled
from agent_core.text.ours import CHAT_MARKS, MARK, GrowingText, imitates, ours
from agent_core.turn.view import Bubble, BubbleKind, View

pieces = st.lists(
    st.sampled_from(
        [
            MARK,
            MARK.upper(),
            "[outspo",
            "ken]",
            "[",
            "]",
            "\n",
            " ",
            "⚠️ ",
            "> ",
            "**",
            "word",
            "x" * 50,
            "| --- |",
            "\u200b",
        ]
    ),
    max_size=12,
).map("".join)


def said(text: str, cuts: list[int]) -> str:
    one = GrowingText()
    ends = sorted({min(cut, len(text)) for cut in cuts})
    return "".join(one.new(text[:end], final=False) for end in ends) + one.new(text, final=True)


@given(pieces, st.lists(st.integers(0, 200), max_size=20))
def test_however_a_text_is_cut_it_is_said_alike_and_no_line_begins_with_the_mark(text: str, cuts: list[int]):
    whole = said(text, [])
    assert said(text, cuts) == whole
    for line in whole.split("\n"):
        assert re.match(r"[^\w\n“]{0,12}\[outspoken\]", line.lower()) is None


@given(st.text(max_size=80), st.lists(st.integers(0, 80), max_size=10))
def test_a_text_without_the_mark_is_said_as_it_is(text: str, cuts: list[int]):
    if MARK not in text.lower():
        assert said(text, cuts) == text


@given(st.text(max_size=60))
def test_text_is_held_back_for_a_moment_only(text: str):
    one = GrowingText()
    assert len(text) - len(one.new(text + "word", final=False)) <= 0 or MARK in text.lower()


def test_a_models_imitation_is_put_in_quotation_marks():
    assert said(f"Fine.\n\n{ours('The provider is down.')}", []) == "Fine.\n\n“[outspoken]” The provider is down."


@pytest.mark.parametrize("mark", CHAT_MARKS)
@pytest.mark.parametrize(
    "words", ["\ufe0f The model did not reply.", " The model did not reply.", "The model did not reply."]
)
def test_in_a_chat_a_models_message_does_not_begin_like_ours(mark: str, words: str):
    def plainly(text: str, _: bool) -> tuple[Piece, ...]:
        return (Styled(text),)

    text = f"{mark}{words}"
    shown = view_of(BubbleKind.ANSWER, text)
    (wanted,) = picture(shown, "t", plainly, traits=Traits(drafts=False), reply_to="").wanted
    assert not imitates(wanted.content.body.text)
    assert len(wanted.content.body.text) <= len(text) + (words[0] == "T")
    (own,) = picture(
        view_of(BubbleKind.NOTICE, "The model did not reply."), "t", plainly, traits=Traits(drafts=False), reply_to=""
    ).wanted
    assert imitates(own.content.body.text)


def view_of(kind: BubbleKind, text: str) -> View:
    return View((Bubble("b", kind, text, final=True),), open=False)
