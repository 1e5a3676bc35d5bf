"""What is remembered is found by full text, on each database alike, and nobody's words are read as a query."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.store.memory.finding import best, counted, spaced, terms

ENTRIES = [
    ("dog", "my dog is called Rex"),
    ("tea", "tea, not coffee"),
    ("run", "she runs every morning in Zürich"),
    ("city", "我喜欢住在东京"),
    ("food", "ฉันชอบกินส้มตำ"),
    ("drink", "मुझे चाय पसंद है"),
    ("quote", 'AND OR NEAR(x) "quoted" name:*'),
]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("what is the dog called", "dog"),
        ("dogs", "dog"),
        ("running", "run"),
        ("ZURICH", "run"),
        ("coff", "tea"),
        ("东京", "city"),
        ("京", "city"),
        ("我喜欢什么城市", "city"),
        ("ส้มตำ", "food"),
        ("चाय", "drink"),
        ("near", "quote"),
    ],
)
def test_words_are_found_in_all_their_forms_and_languages(query: str, found: str) -> None:
    places = best(ENTRIES, query)
    assert ENTRIES[places[0]][0] == found


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=60)), max_size=8), st.text(max_size=80))
@example([("a", 'b"')], '" OR name : *')
@example([("a", "b")], "NEAR(a b) NOT b")
@example([("a", "nul \x00 here")], "here")
def test_no_query_fails_and_what_is_found_is_there(entries: list[tuple[str, str]], query: str) -> None:
    places = best(entries, query)
    assert len(set(places)) == len(places)
    assert set(places) <= set(range(len(entries)))
    looked = [(place, spaced(name), spaced(text)) for place, (name, text) in enumerate(entries)]
    assert set(counted(looked, terms(query))) <= set(range(len(entries)))


@given(st.text("abcdefgäöü", min_size=1, max_size=12), st.text("xyz ", max_size=20))
def test_a_whole_word_is_always_found(word: str, rest: str) -> None:
    assert best([("other", rest), ("n", f"{rest} {word}")], word)[0] == 1


def test_without_full_text_words_are_counted() -> None:
    looked = [(place, name, text) for place, (name, text) in enumerate([("a", "red bike"), ("b", "red car")])]
    assert counted(looked, terms("red car")) == [1, 0]
