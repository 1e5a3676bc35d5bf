"""Styled text in parts within a limit."""

from __future__ import annotations

import time

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.text.clusters import clusters
from adapters.text.flatten import flatten
from adapters.text.parse import parse
from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, units
from tests.adapters.text.laws import check_no_torn_cluster, check_parts
from tests.adapters.text.strategies import markdowns, words


def texts(text: str, limit: int) -> list[str]:
    return [part.text for part in split(Styled(text), limit)]


def test_better_breaks_are_preferred() -> None:
    assert texts("one two. three\nfour five\n\nsix seven", 30) == ["one two. three\nfour five", "six seven"]
    assert texts("one two. three\nfour five six seven", 20) == ["one two. three", "four five six seven"]
    assert texts("one two. three four five", 14) == ["one two.", "three four", "five"]
    assert texts("one two three", 9) == ["one two", "three"]
    assert texts("你好。再见再见", 5) == ["你好。", "再见再见"]


def test_a_good_break_too_early_is_passed_over() -> None:
    assert texts("a\n\nlorem ipsum dolor sit", 20) == ["a\n\nlorem ipsum dolor", "sit"]


def test_words_and_clusters() -> None:
    assert texts("abcdefgh", 3) == ["abc", "def", "gh"]
    assert texts("👍🏽👍🏽👍🏽", 9) == ["👍🏽👍🏽", "👍🏽"]
    assert texts("🇩🇪🇫🇷", 7) == ["🇩🇪", "🇫🇷"]
    assert texts("你好。\u0301再见", 3) == ["你好", "。\u0301再", "见"]
    assert texts("👨‍👩‍👧‍👦", 4) == ["👨‍", "👩‍", "👧‍", "👦"]


def test_nothing_but_white_space_gives_nothing() -> None:
    assert split(Styled(" \n\t "), 10) == ()
    assert split(Styled(), 10) == ()


def test_a_limit_needs_room_for_any_character() -> None:
    with pytest.raises(ValueError, match="no room"):
        split(Styled("a"), 1)


def test_torn_code_goes_on_as_code() -> None:
    parts = split(flatten(parse("```py\n" + "    line\n" * 9 + "```")), 40)
    assert {part.spans for part in parts[:-1]} == {(Span(0, 35, Style.PRE, "py"),)}
    assert all(part.text.startswith("    line") for part in parts)


def test_code_that_fits_is_moved_whole() -> None:
    code = "x = 1\n" * 5
    parts = split(flatten(parse("word " * 6 + f"\n\n```\n{code}```")), 50)
    assert [part.text for part in parts] == [("word " * 6).strip(), code.strip()]
    parts = split(flatten(parse(f"word\n\n```\n{code}{code}```")), 50)
    assert parts[0].text.startswith("word\n\nx = 1")
    parts = split(flatten(parse(f"word\n\n```\n{code}{code[:18]}```")), 50)
    assert parts[0].text.startswith("word\n\nx = 1"), "it would fit, but little stands before it"


@given(markdowns, st.integers(2, 60))
@example("[a\u0301](http://a.de)", 2)
@example("xab。\u0301cd", 4)
def test_the_laws_of_parts(markdown: str, limit: int) -> None:
    whole = flatten(parse(markdown))
    parts = split(whole, limit)
    check_parts(whole, parts)
    assert all(units(part.text) <= limit for part in parts)
    check_no_torn_cluster(whole, parts, limit)


@given(markdowns, st.integers(8, 60), st.integers(8, 12))
@example("**a** `b` " * 12, 60, 8)
def test_spans_have_a_limit_too(markdown: str, limit: int, most: int) -> None:
    whole = flatten(parse(markdown))
    parts = split(whole, limit, most_spans=most)
    check_parts(whole, parts)
    assert all(len(part.spans) <= most for part in parts)


@given(words, st.integers(4, 30))
def test_any_measure(text: str, limit: int) -> None:
    def measure(piece: str) -> int:
        return len(piece.encode())

    whole = Styled(text)
    parts = split(whole, limit, measure)
    check_parts(whole, parts)
    assert all(measure(part.text) <= limit for part in parts)


@given(st.text(st.sampled_from("a \r\n\u0301\u200d\ufe0f👍🏽🇩🇪👩\u0600\u0903각\u1100\u1161\u0e33"), max_size=12))
def test_clusters_are_the_librarys_own(text: str) -> None:
    assert list(clusters(text)) == regex.findall(r"\X", text)


LONG = {
    "words": "lorem ipsum dolor. ",
    "one word": "x",
    "one cluster": "\u0301",
    "faces": "👍🏽",
    "flags": "🇩",
    "blanks": " ",
    "lines": "\n\na",
    "cjk": "你好",
}


@pytest.mark.parametrize("unit", LONG.values(), ids=LONG.keys())
def test_time_is_linear(unit: str) -> None:
    def spent(size: int) -> float:
        text = "a" + unit * (size // len(unit)) + "b"
        styled = Styled(text, (Span(0, len(text), Style.PRE),))
        begin = time.process_time()
        split(styled, 4096)
        return time.process_time() - begin

    small, large = spent(100_000), spent(1_000_000)
    assert large < 30 * max(small, 0.01)


def test_many_spans_take_linear_time() -> None:
    def spent(count: int) -> float:
        styled = Styled("ab " * count, tuple(Span(3 * n, 3 * n + 2, Style.BOLD) for n in range(count)))
        begin = time.process_time()
        split(styled, 4096, most_spans=100)
        return time.process_time() - begin

    small, large = spent(10_000), spent(100_000)
    assert large < 30 * max(small, 0.01)
