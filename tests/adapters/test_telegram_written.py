"""Telegram's entities as Markdown: no character is lost, whatever is told beside a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.inbound import Me, read_update
from adapters.telegram.written import as_markdown, written
from agent_core.jsonvalue import Json
from tests.fakes.telegram.entities import utf16_length

ME = Me("7", "outie_bot")
KINDS = (
    "text_link",
    "code",
    "pre",
    "blockquote",
    "expandable_blockquote",
    "strikethrough",
    "bold",
    "spoiler",
    "custom_emoji",
    "new",
)


def entity(text: str, part: str, kind: str, **more: Json) -> Json:
    before = text[: text.index(part)]
    return {"type": kind, "offset": utf16_length(before), "length": utf16_length(part), **more}


def message(text: str, *entities: Json, **more: Json) -> str:
    """What the model would read of it."""
    sender: Json = {"id": 1, "first_name": "Ada"}
    told: dict[str, Json] = {"message_id": 3, "date": 1, "chat": {"id": 1, "type": "private"}, "from": sender, **more}
    told |= {"text": text, "entities": list(entities)}
    read = read_update({"update_id": 1, "message": told}, ME)
    assert read is not None
    return getattr(read, "text", "")


def test_a_link_behind_words_keeps_its_address() -> None:
    text = "see 😀 the docs"
    assert message(text, entity(text, "the docs", "text_link", url="https://e.org/a_b")) == (
        "see 😀 [the docs](https://e.org/a_b)"
    )
    assert message("e.org", entity("e.org", "e.org", "text_link", url="https://e.org/")) == "e.org"
    text = "https://bank.example"
    assert message(text, entity(text, text, "text_link", url="https://evil.example/")) == (
        "[https://bank.example](https://evil.example/)"
    )


@pytest.mark.parametrize(("words", "marks"), [("text", "entities"), ("caption", "caption_entities")])
def test_the_words_of_a_picture_are_read_as_those_of_a_message(words: str, marks: str) -> None:
    text = "the 😀 docs"
    said: dict[str, Json] = {words: text, marks: [entity(text, "docs", "text_link", url="https://e.org/a")]}
    assert written(said) == "the 😀 [docs](https://e.org/a)"
    told = message("look", reply_to_message={"message_id": 2, "from": {"id": 9, "first_name": "Bob"}, **said})
    assert "the 😀 [docs](https://e.org/a)" in told


def test_what_is_struck_out_is_not_said() -> None:
    text = "buy milk 😀 bread"
    assert message(text, entity(text, "milk 😀", "strikethrough")) == "buy ~~milk 😀~~ bread"


def test_a_label_that_stands_in_another_address_does_not_hide_it() -> None:
    for label in ("bank.example", "e.org", "https://e.org"):
        url = f"https://evil.example/{label}"
        assert message(label, entity(label, label, "text_link", url=url)) == f"[{label}]({url})"


def test_a_block_of_code_ends_where_it_ends() -> None:
    text = "a ```b``` c"
    assert message(text, entity(text, text, "pre")) == f"````\n{text}\n````"


def test_code_stays_code_and_a_quotation_a_quotation() -> None:
    text = "why is x`1\nint a;\n\nnot this? He said\nno\nway"
    assert message(
        text,
        entity(text, "x`1", "code"),
        entity(text, "int a;", "pre", language="c"),
        entity(text, "no\nway", "expandable_blockquote"),
    ) == ("why is ``x`1``\n```c\nint a;\n```\n\nnot this? He said\n> no\n> way")
    text = "a int b; c"
    assert message(text, entity(text, "int b;", "pre")) == "a \n```\nint b;\n```\n c"


def test_what_inner_and_outer_entities_say_is_nested() -> None:
    text = "read this page now"
    inside = entity(text, "page", "code"), entity(text, "this page", "text_link", url="https://e.org/x")
    assert message(text, *inside) == "read [this `page`](https://e.org/x) now"


def test_a_command_and_a_mention_are_found_as_before() -> None:
    text = "/remind in 5 minutes the docs"
    link = entity(text, "the docs", "text_link", url="https://e.org/x")
    assert message(text, entity(text, "/remind", "bot_command"), link) == "in 5 minutes [the docs](https://e.org/x)"
    text = "@outie_bot, the docs"
    link = entity(text, "the docs", "text_link", url="https://e.org/x")
    assert message(text, entity(text, "@outie_bot", "mention"), link) == "[the docs](https://e.org/x)"


def test_what_is_answered_and_what_is_forwarded_keeps_its_links_too() -> None:
    theirs = "the docs"
    link = entity(theirs, theirs, "text_link", url="https://e.org/x")
    bob: Json = {"id": 2, "first_name": "Bob"}
    reply: Json = {"message_id": 2, "from": bob, "chat": {"id": 1}, "text": theirs, "entities": [link]}
    assert message("true?", reply_to_message=reply) == "[In reply to Bob: “[the docs](https://e.org/x)”]\ntrue?"
    quote: Json = {"text": theirs, "entities": [link], "position": 0}
    assert message("true?", reply_to_message=reply, quote=quote) == (
        "[In reply to Bob: “[the docs](https://e.org/x)”]\ntrue?"
    )
    origin: Json = {"type": "user", "sender_user": bob}
    assert message(theirs, link, forward_origin=origin) == "[Forwarded from Bob]\n[the docs](https://e.org/x)"


@st.composite
def texts_with_entities(draw: st.DrawFn) -> tuple[str, list[Json]]:
    text = draw(st.text(alphabet="ab `😀\n[>", max_size=20))
    numbers = st.integers(-2, 24)
    listed: list[Json] = []
    for _ in range(draw(st.integers(0, 4))):
        kind, offset, length = draw(st.sampled_from(KINDS)), draw(numbers), draw(numbers)
        listed.append({"type": kind, "offset": offset, "length": length, "url": "https://e.org"})
    return text, listed


@given(texts_with_entities())
def test_no_character_is_lost_and_looks_add_nothing(given_: tuple[str, list[Json]]) -> None:
    text, entities = given_
    read = as_markdown(text, entities)
    left = iter(read)
    assert all(char in left for char in text)
    if not [one for one in entities if isinstance(one, dict) and one["type"] in KINDS[:6]]:
        assert read == text
