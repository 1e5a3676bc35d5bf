"""Markup and entities of the stand-in for Telegram: what is read, what is refused and with which words, and what holds for any text."""

from __future__ import annotations

import html
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.telegram.entities import (
    Entity,
    Kind,
    check,
    found,
    good_url,
    in_order,
    trimmed,
    utf16_length,
    utf16_slice,
)
from tests.fakes.telegram.errors import ApiError
from tests.fakes.telegram.markup import parse

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


def read(text: str, mode: str) -> tuple[str, list[tuple[str, str]]]:
    """The plain text, and each entity as its kind and what it covers."""
    plain, entities = parse(text, mode)
    check(plain, entities)
    return plain, [(entity.kind.value, entity.of(plain)) for entity in in_order(entities)]


def complaint(text: str, mode: str) -> str:
    """What the server says to broken markup."""
    with pytest.raises(ApiError) as caught:
        parse(text, mode)
    assert caught.value.code == 400
    return caught.value.description.removeprefix("Bad Request: can't parse entities: ")


@pytest.mark.parametrize(
    ("text", "plain", "entities"),
    [
        ("<b>a</b> <strong>b</strong>", "a b", [("bold", "a"), ("bold", "b")]),
        ("<B>a</B >", "a", [("bold", "a")]),
        ("<i>a<u>b</u></i>", "ab", [("italic", "ab"), ("underline", "b")]),
        ("<s>a</s><del>b</del><strike>c</strike>", "abc", [("strikethrough", one) for one in "abc"]),
        ('<tg-spoiler>a</tg-spoiler><span class="tg-spoiler">b</span>', "ab", [("spoiler", "a"), ("spoiler", "b")]),
        ('<a href="https://example.org/?a=1&amp;b">x</a>', "x", [("text_link", "x")]),
        ("<a>example.org</a> <a href='nowhere'>y</a>", "example.org y", [("text_link", "example.org")]),
        ('<a href="tg://user?id=42">Ada</a>', "Ada", [("text_mention", "Ada")]),
        ("<pre>a &lt; b</pre>", "a < b", [("pre", "a < b")]),
        ('<pre><code class="language-py">x</code></pre>', "x", [("pre", "x")]),
        ("<code><b>x</b></code>", "x", [("code", "x")]),
        ("<blockquote>a</blockquote>", "a", [("blockquote", "a")]),
        ("<blockquote expandable>a\nb</blockquote>", "a\nb", [("expandable_blockquote", "a\nb")]),
        ('<tg-emoji emoji-id="5368324170671202286">👍</tg-emoji>', "👍", [("custom_emoji", "👍")]),
        ("&lt;&gt;&amp;&quot;&#33;&#x1F600;&laquo; a & b > c", '<>&"!😀&laquo; a & b > c', []),
        ("<b></b>x", "x", []),
    ],
)
def test_html_is_read(text: str, plain: str, entities: list[tuple[str, str]]) -> None:
    assert read(text, "HTML") == (plain, entities)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("é<p>", 'Unsupported start tag "p" at byte offset 2'),
        ("a <b", "Unclosed start tag at byte offset 2"),
        ("a < b", 'Unsupported start tag "" at byte offset 2'),
        ('<a href="x', 'Unclosed start tag "a" at byte offset 0'),
        ("<b>x", 'Can\'t find end tag corresponding to start tag "b"'),
        ("x</b>", "Unexpected end tag at byte offset 1"),
        ("<b><i>x</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("<b>x</b", "Unclosed end tag at byte offset 4"),
        ("<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("<br>", 'Unsupported start tag "br" at byte offset 0'),
    ],
)
def test_broken_html_is_refused(text: str, words: str) -> None:
    assert complaint(text, "HTML") == words


@pytest.mark.parametrize(
    ("text", "plain", "entities"),
    [
        (
            "*a* _b_ __c__ ~d~ ||e||",
            "a b c d e",
            [*zip(("bold", "italic", "underline", "strikethrough", "spoiler"), "abcde", strict=True)],
        ),
        ("*a _b_ __c__*", "a b c", [("bold", "a b c"), ("italic", "b"), ("underline", "c")]),
        ("_a __b___", "a b", [("italic", "a b"), ("underline", "b")]),
        ("`a*_[b`", "a*_[b", [("code", "a*_[b")]),
        ("`a\\`b\\\\`", "a`b\\", [("code", "a`b\\")]),
        ("```py\nx = 1\n```", "x = 1\n", [("pre", "x = 1\n")]),
        ("```\nx\n```", "x\n", [("pre", "x\n")]),
        ("[a*b*](https://example.org/x\\))", "ab", [("text_link", "ab"), ("bold", "b")]),
        ("[Ada](tg://user?id=42)", "Ada", [("text_mention", "Ada")]),
        ("[a](nowhere)", "a", []),
        ("![👍](tg://emoji?id=5368324170671202286)", "👍", [("custom_emoji", "👍")]),
        (">a\n>b\nc", "a\nb\nc", [("blockquote", "a\nb\n")]),
        ("x\n>a\n>b||", "x\na\nb", [("expandable_blockquote", "a\nb")]),
        (">a\n**>b", "a\nb", [("blockquote", "a\n"), ("blockquote", "b")]),
        ("1\\.5 \\- \\_x\\_ \\\\", "1.5 - _x_ \\", []),
        ("**", "", []),
    ],
)
def test_markdown_v2_is_read(text: str, plain: str, entities: list[tuple[str, str]]) -> None:
    assert read(text, "MarkdownV2") == (plain, entities)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("é *a", "Can't find end of Bold entity at byte offset 3"),
        ("*a _b* c_", "Can't find end of Italic entity at byte offset 8"),
        ("`a", "Can't find end of Code entity at byte offset 0"),
        ("```a", "Can't find end of Pre entity at byte offset 0"),
        ("```py a", "Can't find end of PreCode entity at byte offset 0"),
        ("||a", "Can't find end of Spoiler entity at byte offset 0"),
        ("[a", "Can't find end of TextUrl entity at byte offset 0"),
        ("[a](b", "Can't find end of a URL at byte offset 4"),
        ("![a]", "Custom emoji entity must contain a tg://emoji URL"),
        (">*a\nb*", "Can't find end of Bold entity at byte offset 1"),
        *(
            (f"a{mark}b", f"Character '{mark}' is reserved and must be escaped with the preceding '\\'")
            for mark in "])(>#+-=|{}.!"
        ),
    ],
)
def test_broken_markdown_v2_is_refused(text: str, words: str) -> None:
    assert complaint(text, "MarkdownV2") == words


def test_the_old_markdown_is_read_and_refused() -> None:
    plain, entities = read("*a* _b_ `c` [d](https://example.org) snake\\_case", "Markdown")
    assert plain == "a b c d snake_case"
    assert entities == [("bold", "a"), ("italic", "b"), ("code", "c"), ("text_link", "d")]
    assert complaint("é snake_case", "Markdown") == "Can't find end of the entity starting at byte offset 8"
    language = parse("```py\nx```", "Markdown")[1][0].language
    assert language == "py"


@given(TEXTS)
def test_any_text_survives_escaping(text: str) -> None:
    assert parse(html.escape(text, quote=False), "HTML") == (text, [])
    escaped = re.sub(r"([\\_*\[\]()~`>#+\-=|{}.!])", r"\\\1", text)
    assert parse(escaped, "MarkdownV2") == (text, [])
    plain, entities = parse(f"*{escaped}*", "MarkdownV2")
    assert plain == text
    assert [one.of(plain) for one in entities] == ([text] if text else [])


@given(st.text("ab \n\\_*[]()~`>|!<>/&;x🏟", max_size=40), st.sampled_from(["HTML", "MarkdownV2", "Markdown"]))
def test_any_markup_is_either_read_into_entities_that_fit_or_refused(text: str, mode: str) -> None:
    try:
        plain, entities = parse(text, mode)
    except ApiError as error:
        refusal = error.description
    else:
        check(plain, entities)
        short, kept = trimmed(plain, entities)
        assert short == plain.strip()
        check(short, kept)
        return
    assert refusal.startswith("Bad Request: can't parse entities: ")


@given(TEXTS)
def test_what_is_found_fits_the_text_and_does_not_overlap(text: str) -> None:
    entities = found(f"{text} /stop @somebody #tag https://example.org/x ada@example.org {text}")
    for before, after in itertools.pairwise(entities):
        assert before.end <= after.offset
    assert {Kind.BOT_COMMAND, Kind.MENTION, Kind.URL, Kind.EMAIL} <= {entity.kind for entity in entities}


@given(TEXTS)
def test_lengths_are_those_of_utf16(text: str) -> None:
    assert utf16_length(text) == len(text.encode("utf-16-le")) // 2
    assert utf16_slice(text, 0, utf16_length(text)) == text


def test_trimming_moves_and_shrinks_entities() -> None:
    text, entities = trimmed(" \n🏟a  ", [Entity(Kind.BOLD, 0, 7), Entity(Kind.ITALIC, 4, 1), Entity(Kind.CODE, 5, 2)])
    assert text == "🏟a"
    assert [(one.kind, one.of(text)) for one in entities] == [(Kind.BOLD, "🏟a"), (Kind.ITALIC, "a")]


@pytest.mark.parametrize(
    ("address", "full"),
    [
        ("example.org", "http://example.org/"),
        ("https://example.org:8443/a?b#c", "https://example.org:8443/a?b#c"),
        ("http://127.0.0.1/x", "http://127.0.0.1/x"),
        ("tg://resolve?domain=x", "tg://resolve?domain=x"),
        ("nowhere", None),
        ("javascript:alert(1)", None),
        ("https://exa mple.org", None),
        ("", None),
    ],
)
def test_addresses_become_links_or_not(address: str, full: str | None) -> None:
    assert good_url(address) == full
