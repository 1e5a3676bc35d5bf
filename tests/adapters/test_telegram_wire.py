"""The way to Telegram: what is sent is what was given, whatever characters it has."""

from __future__ import annotations

from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from adapters.telegram.wire import encoded

WORDS = st.text(st.characters(exclude_categories=("Cs",)))


@given(st.dictionaries(WORDS.filter(bool), WORDS, max_size=5))
def test_a_form_is_read_as_it_was_given(words: dict[str, str]) -> None:
    assert dict(parse_qsl(encoded(words).decode("ascii"), keep_blank_values=True, strict_parsing=bool(words))) == words


def test_signs_that_mean_something_in_a_form_are_themselves() -> None:
    text = "a+b & c=d; 100 % %41 ü 😀 #x\r\n\x00 \x7f"
    assert dict(parse_qsl(encoded({"text": text}).decode("ascii"))) == {"text": text}
