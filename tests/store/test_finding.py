"""What is remembered is found by full text, on each database alike, and nobody's words are read as a query."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.remembered import MEMORY
from agent_core.store.memory.finding import MOST_STEMMED, Stems, best, counted, forms, plain, spaced, terms
from agent_core.text.tongue import LANGUAGES
from tests.store.support import opened

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


FORMS = {
    "en": [("ponies", "a pony"), ("city", "two cities"), ("baking", "she bakes bread")],
    "de": [("Häuser", "das Haus am See"), ("Kinder", "mit den Kindern"), ("gelesene", "was sie gelesen hat"), ("Strassen", "die Straße")],
    "fr": [("chevaux", "un cheval blanc"), ("mangé", "elle mange du pain"), ("nationales", "le jour national")],
    "es": [("comemos", "comer en casa"), ("acciones", "una acción"), ("niñas", "el niño")],
    "pt": [("gatos", "uma gata preta"), ("trabalhamos", "trabalhar em casa"), ("cafés", "um café")],
    "ru": [("книгами", "красная книга"), ("столы", "на столе"), ("ёлки", "елка")],
    "ar": [("كتابين", "هذا الكتاب"), ("مدرسة", "المدرسة الكبيرة"), ("كِتاب", "كتاب")],
    "hi": [("लड़कियों", "एक लड़की"), ("किताबें", "मेरी किताब")],
    "ja": [("東京", "東京に住んでいます")],
    "zh": [("咖啡", "我喜欢喝咖啡")],
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_forms_of_a_word_are_found_in_each_language_that_we_speak(language: str) -> None:
    for query, text in FORMS[language]:
        entries = [("note", "zzz"), ("n", text), ("other", "qqq")]
        assert best(entries, query) == [1], query
        looked = [(place, plain(name), plain(words)) for place, (name, words) in enumerate(entries)]
        if language not in ("ja", "zh"):
            words = [term for term, _ in terms(plain(query))]
            both = [
                *terms(plain(query)),
                *((one, False) for one in forms(words, [part for _, *parts in looked for part in parts])),
            ]
            assert counted(looked, both) == [1], query


def test_what_holds_the_word_as_it_was_typed_comes_first() -> None:
    entries = [("a", "casi nunca"), ("b", "una casa grande y otra casa y otra casa de campo"), ("c", "el caso")]
    assert best(entries, "casa")[0] == 1
    assert best(entries, "grande casa")[0] == 1


def test_words_of_one_beginning_are_no_forms_of_each_other() -> None:
    texts = ["international internet station state stationery университет унитаз"]
    assert forms(["internet", "state", "университет"], texts) == []


def test_of_many_words_a_thousand_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def of(_: Stems, word: str) -> frozenset[tuple[str, str]]:
        seen.append(word)
        return frozenset({("english", word[:8])})

    monkeypatch.setattr(Stems, "of", of)
    forms(["internet"], [" ".join(f"inter{n:x}" for n in range(5_000))])
    assert len(seen) == 1 + MOST_STEMMED


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


async def test_forms_are_found_on_each_database_in_the_same_order(where: str) -> None:
    async with opened(where) as store:
        for at, (name, text) in enumerate([("a", "das Haus am See"), ("b", "Häuser in Köln"), ("c", "eine Katze")]):
            await store.memory.put("me", MEMORY, name, text, at_ms=at)
        found, in_all = await store.memory.remembered(["me"], "HÄUSER")
        assert ([one.name for one in found], in_all) == (["b", "a"], 3)
