"""Texts as Telegram's messages, checked by the rules of the fake Telegram."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.pieces import MOST_ENTITIES, Entity, entities
from adapters.text.flatten import flatten
from adapters.text.parse import parse
from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, is_visible, units
from tests.adapters.text.laws import is_sorted
from tests.adapters.text.strategies import markdowns
from tests.fakes.telegram import entities as judge


def telegram_parts(markdown: str, *, growing: bool = False, limit: int = 4096) -> tuple[Styled, ...]:
    """A text as messages, for any length of these; none if there is nothing to see in it."""
    flat = flatten(parse(markdown, growing=growing))
    return tuple(part for part in split(flat, limit, units, most_spans=MOST_ENTITIES) if is_visible(part.text))


def test_offsets_count_utf16() -> None:
    styled = Styled("👍 a 𝔘", (Span(2, 3, Style.BOLD), Span(4, 5, Style.LINK, "http://a.de")))
    assert entities(styled) == (Entity("bold", 3, 1), Entity("text_link", 5, 2, url="http://a.de"))


def test_every_style_has_a_type() -> None:
    styled = Styled("x", tuple(Span(0, 1, style, "v") for style in Style))
    kinds = [entity.type for entity in entities(styled)]
    assert kinds == ["blockquote", "pre", "code", "text_link", "bold", "italic", "strikethrough"]
    assert all(judge.Kind(kind) for kind in kinds)


@pytest.mark.parametrize(
    "text", ["", "  \n", "\u200b", "\u3164", "\ufe0f\u2060", "&nbsp;\u3164", "```\n\u200b\n```", "# "]
)
def test_what_cannot_be_seen_is_no_message_unless_marks_are_all_that_was_said(text: str) -> None:
    assert bool(telegram_parts(text)) is is_visible(text)
    assert telegram_parts(text, growing=True) == ()


def test_at_most_a_hundred_entities() -> None:
    parts = telegram_parts("**a** `b` " * 300)
    assert len(parts) > 5
    assert all(len(part.spans) <= MOST_ENTITIES for part in parts)
    assert "".join(part.text.replace(" ", "") for part in parts) == "ab" * 300


@given(markdowns, st.sampled_from([16, 40, 4096]), st.booleans())
def test_telegram_takes_every_part_as_it_is(markdown: str, limit: int, growing: bool) -> None:
    for part in telegram_parts(markdown, growing=growing, limit=limit):
        found = entities(part)
        assert units(part.text) <= limit
        assert is_visible(part.text)
        assert is_sorted([entity.offset for entity in found])
        given_ = judge.given([{name: value for name, value in asdict(one).items() if value != ""} for one in found])
        judge.check(part.text, given_)
        assert len(given_) == len(found)
        text, kept = judge.trimmed(part.text, given_)
        assert len(kept) == len(found), "nothing is dropped"
        assert text == part.text.strip()
        part.text.encode()


@given(markdowns)
def test_codes_hold_nothing_and_quotes_hold_no_quotes(markdown: str) -> None:
    for part in telegram_parts(markdown):
        found = entities(part)
        for place, outer in enumerate(found):
            inside = [one for one in found[place + 1 :] if one.offset < outer.offset + outer.length]
            assert not inside or outer.type not in ("pre", "code")
            assert all(one.type != outer.type for one in inside)
