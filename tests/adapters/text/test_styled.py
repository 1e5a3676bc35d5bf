"""Slicing, stripping, joining and measuring of styled text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.text.flatten import flatten
from adapters.text.parse import parse
from adapters.text.styled import Span, Style, Styled, joined, units
from tests.adapters.text.laws import check, per_letter
from tests.adapters.text.strategies import markdowns


def test_slices_cut_spans() -> None:
    styled = Styled("one two three", (Span(4, 7, Style.BOLD), Span(4, 13, Style.LINK, "u")))
    assert styled.slice(5, 9) == Styled("wo t", (Span(0, 4, Style.LINK, "u"), Span(0, 2, Style.BOLD)))
    assert styled.slice(0, 4) == Styled("one ", ())


def test_stripping_moves_and_shrinks_spans() -> None:
    assert Styled("  a b  ", (Span(1, 7, Style.BOLD),)).strip() == Styled("a b", (Span(0, 3, Style.BOLD),))
    assert Styled(" \n", (Span(0, 2, Style.BOLD),)).strip() == Styled()


def test_code_keeps_its_indentation() -> None:
    assert Styled("\n\n  a\n b ", (Span(0, 9, Style.PRE, "py"),)).strip() == Styled(
        "  a\n b", (Span(0, 6, Style.PRE, "py"),)
    )


def test_joining() -> None:
    bold = Styled("a", (Span(0, 1, Style.BOLD),))
    assert bold + Styled("b") + bold == Styled("aba", (Span(0, 1, Style.BOLD), Span(2, 3, Style.BOLD)))


@given(st.text())
def test_units_are_those_of_utf16(text: str) -> None:
    assert units(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2


@given(markdowns, st.integers(0, 200), st.integers(0, 200))
def test_slices_joined_have_every_letter_in_its_styles(markdown: str, one: int, other: int) -> None:
    whole = flatten(parse(markdown))
    one, other = sorted((one, other))
    parts = (whole.slice(0, one), whole.slice(one, other), whole.slice(other, len(whole.text)))
    assert per_letter(joined(parts)) == per_letter(whole)
    for part in parts:
        check(part.strip())
        assert per_letter(part.strip()) == per_letter(part)
