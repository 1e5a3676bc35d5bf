"""Markup as platforms read it: what is shown is the text, and what was written of a growing text stays as it is."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.discord.pieces import pieces as discord
from adapters.slack.pieces import pieces as slack
from adapters.telegram.pieces import pieces as telegram
from adapters.text.codefile import CodeFile
from adapters.text.flatten import flatten
from adapters.text.growing import without_open_link
from adapters.text.markup import DISCORD, SLACK, SLACK_MARKDOWN, StyleMarks, render, styled_parts
from adapters.text.parse import parse
from adapters.text.styled import Span, Style, Styled, units
from tests.adapters.text.strategies import SAMPLES, markdowns
from tests.chats.slack_harness import read_markdown
from tests.examples import MANY

LINES = st.lists(st.text("ab1.-+#=*_~`[]()<>&!|\\ é中 \t", min_size=1, max_size=12), min_size=1, max_size=4)


def seen(text: str) -> list[str]:
    """Words, whatever white space is between them."""
    return text.replace("\u00a0", " ").split()


@MANY
@given(LINES)
def test_plain_words_are_shown_as_they_are(lines: list[str]) -> None:
    text = Styled("\n".join(lines)).strip()
    assert seen(read_markdown(render(text, SLACK_MARKDOWN)).text) == seen(text.text)


@pytest.mark.parametrize(
    "markdown",
    [
        "**bold** and `co``de` and *it*",
        "# Head\n\n- one\n- two\n   - three\n\n1. a\n2. b",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "> quoted\n> more\n\nand `x`",
        "```python\nprint(1)\n\nprint('<tag>')\n```\nafter",
        "see [the page](https://example.org/a_(b)?x=1&y=2) now",
    ],
)
def test_what_was_marked_is_read_again(markdown: str) -> None:
    styled = flatten(parse(markdown, growing=False))
    again = read_markdown(render(styled, SLACK_MARKDOWN))
    assert seen(again.text.replace("> ", "")) == seen(styled.text)
    code = [styled.text[s.start : s.end] for s in styled.spans if s.style is Style.PRE]
    assert list(again.code) == code


CODES = [
    "print('```')",
    "echo `date` ``x``",
    "see <@U0123ABC> and <!channel>",
    "```",
    "    deep\n\ttab",
    "<b>&amp;</b>",
]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("style", [Style.CODE, Style.PRE])
@pytest.mark.parametrize("marks", [DISCORD, SLACK, SLACK_MARKDOWN])
def test_nothing_that_is_not_seen_is_put_into_code(code: str, style: Style, marks: StyleMarks) -> None:
    shown = render(Styled(code, (Span(0, len(code), style),)), marks)
    assert not {char for char in shown if unicodedata.category(char) == "Cf"}


@pytest.mark.parametrize(
    ("pieces", "code"), [(discord, "a = '```'"), (slack, "a = '```'"), (slack, "ask('<@U0123ABC>')")]
)
def test_code_that_a_chat_cannot_show_as_it_is_comes_as_a_file(
    pieces: Callable[..., tuple[Styled | CodeFile, ...]], code: str
) -> None:
    markdown = f"Look:\n\n````python\n{code}\n````\n\nThat is it."
    files = [one for one in pieces(markdown, growing=False) if isinstance(one, CodeFile)]
    assert [one.text for one in files] == [code + "\n"]
    growing = [one for one in pieces(markdown, growing=True) if isinstance(one, Styled)]
    assert not {char for one in growing for char in one.text if unicodedata.category(char) == "Cf"}
    assert not any(isinstance(one, CodeFile) for one in telegram(markdown, growing=False)), "there it is a span"


GROWING = [
    "Some **bold words** here, `code` there, and *more*. 1. not a list - nor this",
    "# Head\n\nA line\nanother\n\n- one **b**\n- two\n\n1. a\n2. b\n\n```python\nprint(1)\n\nprint(2)\n```\n\nThe end_of it.",
    "> quoted **text**\n> goes on\n\n~~gone~~ & <tags> stay",
]


TURNS = [
    text for text in SAMPLES if "|--" not in text and "--|" not in text and "=====" not in text and "``code" not in text
]
"""Without tables, whose columns grow, and headings that are marked by the line below: there the stream is finished and edited."""


@pytest.mark.parametrize("markdown", [*GROWING, *TURNS])
def test_what_stands_on_a_stream_is_a_beginning_of_what_stands_there_in_the_end(markdown: str) -> None:
    whole = render(flatten(parse(markdown, growing=False)), SLACK_MARKDOWN)
    for end in range(1, len(markdown)):
        shown = flatten(parse(without_open_link(markdown[:end]), growing=True))
        assert whole.startswith(render(shown, SLACK_MARKDOWN, open_end=True)), markdown[:end]


@MANY
@given(markdowns, st.integers(40, 400), st.sampled_from([SLACK, SLACK_MARKDOWN, DISCORD]))
def test_parts_are_within_the_limit(markdown: str, limit: int, marks: StyleMarks) -> None:
    for part in styled_parts(flatten(parse(markdown, growing=False)), limit, marks):
        assert units(render(part, marks)) <= limit or units(part.text) <= 8


@pytest.mark.parametrize("ping", ["<!channel>", "<!here|here>", "<@U0123ABC>", "<!subteam^S1>", "<#C0123|x>"])
@pytest.mark.parametrize("style", [None, *Style])
@pytest.mark.parametrize("open_end", [False, True])
@pytest.mark.parametrize("marks", [SLACK, SLACK_MARKDOWN])
def test_nobody_is_mentioned(ping: str, style: Style | None, open_end: bool, marks: StyleMarks) -> None:
    text = f"see {ping}"
    value = f"https://example.org/{ping}" if style is Style.LINK else ""
    spans = (Span(0, len(text), style, value),) if style is not None else ()
    assert ping[:3] not in render(Styled(text, spans), marks, open_end=open_end)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("see https://e.org/A_(b)?x_y=1#z_1 and a_b", "see https://e.org/A_(b)?x_y=1#z_1 and a\\_b"),
        ("(https://e.org/a_b), [1]", "(https://e.org/a_b), \\[1\\]"),
        ("**https://e.org/a_b**", "**https://e.org/a_b**"),
        ("<https://e.org/a_b>", "https://e.org/a_b"),
        ("[a_b](https://e.org/a_b)", "[a\\_b](<https://e.org/a_b>)"),
    ],
)
def test_an_address_on_discord_can_be_followed(markdown: str, shown: str) -> None:
    """Discord takes all up to the next white space for the address, also a backslash."""
    assert [one.text for one in discord(markdown, growing=False) if isinstance(one, Styled)] == [shown]
