"""Trees as styled text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.clusters import columns, padded
from adapters.text.flatten import can_follow, flatten
from adapters.text.parse import parse
from adapters.text.styled import Style
from tests.adapters.text.laws import bare, check
from tests.adapters.text.seen import letters
from tests.adapters.text.strategies import SAMPLES, markdowns


def flat(markdown: str) -> tuple[str, list[tuple[str, Style, str]]]:
    styled = flatten(parse(markdown))
    return styled.text, [(styled.text[one.start : one.end], one.style, one.value) for one in styled.spans]


LOOKS = {
    "# A *b*\ntext": "A b\n\ntext",
    "a\nb  \nc": "a\nb\nc",
    "- a\n- b\n  - c\n    d\n- e": "• a\n• b\n   • c\n      d\n• e",
    "- a\n\n  b\n- c": "• a\n\n   b\n\n• c",
    "9. a\n10. b": "9. a\n10. b",
    "- [ ] a\n- [x] b": "☐ a\n☑ b",
    "1. [x] a": "1. ☑ a",
    "a\n\n---\nb": "a\n\n⸻\n\nb",
    "- a\n  ```\n  x\n   y\n  ```\n- b": "• a\nx\n y\n• b",
    "a\n\n```\n\n```\n\nb": "a\n\nb",
    "|a|b|\n|-|-:|\n|你好|1|\n|👍🏽|22|": "a    |  b\n-----+---\n你好 |  1\n👍🏽   | 22",
    "[a](x) [b](javascript:c) ![](http://d.de)": "a (x) b (javascript:c) http://d.de",
    "<b>x</b>": "<b>x</b>",
}


@pytest.mark.parametrize("markdown", LOOKS)
def test_looks(markdown: str) -> None:
    assert flat(markdown)[0] == LOOKS[markdown]


def test_styles() -> None:
    text, spans = flat("# T\n**a `b` c** [x `y`](http://a.de) > \n\n> q `r`\n> > s\n\n```py\nz\n```")
    assert text == "T\n\na b c x y >\n\nq r\n\ns\n\nz"
    assert spans == [
        ("T", Style.BOLD, ""),
        ("a", Style.BOLD, ""),
        ("b", Style.CODE, ""),
        ("c", Style.BOLD, ""),
        ("x y", Style.LINK, "http://a.de"),
        ("q r\n\ns", Style.QUOTE, ""),
        ("r", Style.CODE, ""),
        ("z", Style.PRE, "py"),
    ]


def test_a_wide_table_is_a_list_of_its_rows() -> None:
    wide = "value " * 9
    text, spans = flat(f"| name | **what** |\n|--|--|\n| a | {wide}|\n| b |  |")
    assert text == f"name: a\nwhat: {wide.strip()}\n\nname: b"
    assert [one[0] for one in spans] == ["name", "what", "name"]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.de",
        "https://a.de:80/x?y#z",
        "HTTPS://A.de",
        "http://1.2.3.4/",
        "mailto:a@b.de",
        "tg://resolve?domain=x",
    ],
)
def test_what_can_be_followed(url: str) -> None:
    assert can_follow(url)


@pytest.mark.parametrize(
    "url",
    ["", "x", "/x", "javascript:a", "data:text/html,x", "http://localhost/", "http://u@a.de", "http://a b.de", "ftp://a.de",
     "http://a.de/" + "x" * 2048, "file:///etc/x", "tg:x", "http://", "http://a..de:x"],
)  # fmt: skip
def test_what_cannot_be_followed(url: str) -> None:
    assert not can_follow(url)


@given(markdowns)
def test_spans_are_as_the_strictest_platform_wants_them(markdown: str) -> None:
    for growing in (False, True):
        styled = flatten(parse(markdown, growing=growing))
        check(styled)
        assert styled.text == styled.text.rstrip()


@given(markdowns)
def test_nothing_of_the_tree_is_lost(markdown: str) -> None:
    blocks = parse(markdown)
    shown = iter(bare(flatten(blocks, width=0).text))
    if "|" not in markdown:  # a wide table repeats its header
        assert all(letter in shown for letter in letters(blocks))


@pytest.mark.parametrize("sample", SAMPLES)
def test_plain_text_names_every_address(sample: str) -> None:
    text = flatten(parse(sample), links=False).text
    assert ("https://example.com/a_b?c=d" in text) == ("https://example.com/a_b?c=d" in sample)
    assert "**" not in text


def test_plain_text() -> None:
    assert flatten(parse("**a** [b](http://c.de) <http://d.de>"), links=False).text == "a b (http://c.de) http://d.de"


WIDTHS = {
    "abc": 3,
    "你好": 4,
    "e\u0301": 1,
    "👨‍👩‍👧‍👦": 2,
    "🇩🇪": 2,
    "👍🏽": 2,
    "❤️": 2,
    "1️⃣": 2,
    "ｱ": 1,
    "": 0,
    "\u200b": 0,
}


@pytest.mark.parametrize("text", WIDTHS)
def test_columns(text: str) -> None:
    assert columns(text) == WIDTHS[text]


@given(st.text(max_size=20), st.integers(0, 50), st.sampled_from([0.0, 0.5, 1.0]))
def test_padding_reaches_the_width(text: str, width: int, before: float) -> None:
    result = padded(text, width, before)
    assert text in result
    assert len(result) - len(text) == max(0, width - columns(text))


@pytest.mark.parametrize("cell", ["[docs](http://a.bc)", "**[docs](http://a.bc)**", "![docs](http://a.bc)"])
def test_a_table_with_links_is_not_laid_out_in_columns_where_nobody_could_follow_them(cell: str) -> None:
    styled = flatten(parse(f"| a | b |\n|---|---|\n| 1 | {cell} |"))
    assert styled.text == "a: 1\nb: docs"
    assert [span.value for span in styled.spans if span.style is Style.LINK] == ["http://a.bc"]
    plain = flatten(parse("| a | b |\n|---|---|\n| 1 | <http://a.bc> |"))
    assert plain.text.startswith("a | b")
