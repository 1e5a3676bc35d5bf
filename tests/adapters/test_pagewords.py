"""The page in its reader's language: one table of words, in the language alone that was asked for, and a page that says which it is."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import pytest

from adapters.http.pagewords import FORMS, ONE, OTHER, SCRIPTLESS, TYPED, spoken_page, spoken_words, table_of
from agent_core.text.tongue import ENGLISH, LANGUAGES, catalogue
from tests.catalogues import OTHERS
from tests.english import english_in

FOLDER = files("adapters.http.webpage")
SCRIPT, PAGE = (FOLDER.joinpath(name).read_text("utf-8") for name in ("words.js", "index.html"))
ENGLISH_WORDS = table_of(SCRIPT)
COUNTED = {name.removesuffix(ONE) for name in ENGLISH_WORDS if name.endswith(ONE)}
USED = re.compile(r"\{(\w+)\}")


def said(language: str) -> dict[str, str]:
    """The table as a browser reads it."""
    begin, end = "const WORDS = {", "\n};"
    table = spoken_words(SCRIPT, language).partition(begin)[2].partition(end)[0]
    return json.loads("{" + table.strip().rstrip(",") + "}")


def test_every_line_of_the_table_is_read():
    assert set(said("")) == set(ENGLISH_WORDS)
    assert COUNTED


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_word_with_what_is_filled_in(language: str):
    here = said(language)
    for name, words in ENGLISH_WORDS.items():
        stem = name.rpartition(".")[0]
        if stem in COUNTED:
            assert {f"{stem}.{form}" for form in FORMS} <= set(here)
            assert "{n}" in here[f"{stem}{OTHER}"]
            continue
        assert set(USED.findall(here[name])) == set(USED.findall(words)), name
    assert {name: words for name, words in here.items() if name not in TYPED and english_in(words)} == {}
    assert sum(here[name] != words for name, words in ENGLISH_WORDS.items() if name in here) > 100


@pytest.mark.parametrize("language", OTHERS)
def test_only_the_table_differs_and_it_is_small(language: str):
    code = "export function say("
    assert spoken_words(SCRIPT, language).partition(code)[2] == SCRIPT.partition(code)[2]
    assert len(spoken_words(SCRIPT, language).encode()) < 24_000


@pytest.mark.parametrize("language", OTHERS)
def test_the_page_says_its_language_and_its_direction(language: str):
    page = spoken_page(PAGE, language)
    side = "rtl" if LANGUAGES[language].leftward else "ltr"
    assert f'<html lang="{language}" dir="{side}">' in page
    assert SCRIPTLESS in PAGE
    assert SCRIPTLESS not in page
    assert f'<html lang="{ENGLISH}" dir="ltr">' in spoken_page(PAGE, "")


def test_a_quotation_mark_in_a_language_breaks_no_script(monkeypatch: pytest.MonkeyPatch):
    class Quoting:
        def gettext(self, message: str) -> str:
            return f'"{message}\\'

        def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
            return self.gettext(msgid1 if n == 1 else msgid2)

    spoken_words.cache_clear()
    monkeypatch.setitem(catalogue.__globals__["_LOADED"], "de", Quoting())
    try:
        assert said("de")["send"] == '"Send\\'
    finally:
        spoken_words.cache_clear()
