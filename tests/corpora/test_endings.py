"""Promises at the end of a reply are told from other endings: measured on the corpus, whole, held out, and by language."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import agent_core.rules.promises as promises
from agent_core.rules.promises import Reading, read_ending
from agent_core.rules.promising.language import languages
from agent_core.rules.promising.tongue import SISTERS
from tests.corpora.endings import KINDS, Ending, endings
from tests.corpora.score import Score

DEVELOPMENT = endings("development")
HELD_OUT = endings("held_out")
EVERYTHING = DEVELOPMENT + HELD_OUT
CODES = tuple(language.code for language in languages())
WRITTEN = (*CODES, "zh-Hant")
"""The row of Chinese is for both of its scripts."""


def found(ending: Ending) -> bool:
    """What is unclear passes for the answer, as it does where nobody can be asked."""
    return read_ending(ending.text).reading is Reading.PROMISE


def score(corpus: list[Ending]) -> Score:
    return Score.of((ending.announces, found(ending)) for ending in corpus)


@pytest.mark.parametrize(
    ("name", "corpus"), [("all", EVERYTHING), ("held out", HELD_OUT), ("development", DEVELOPMENT)]
)
def test_promises_are_told_from_other_endings(name: str, corpus: list[Ending], figure: Callable[[str], None]) -> None:
    result = score(corpus)
    figure(f"promises, {name}: {len(corpus)} endings, {result}")
    if corpus is DEVELOPMENT:  # nobody looks into the other half
        for ending in corpus:
            if ending.announces != found(ending):
                print(f"{'missed' if ending.announces else 'seen where there is none'}: {ending}")
    assert result.precision >= 0.985
    assert result.recall >= 0.93


@pytest.mark.parametrize("code", WRITTEN)
def test_no_language_is_left_behind(code: str, figure: Callable[[str], None]) -> None:
    corpus = [ending for ending in EVERYTHING if ending.language == code]
    unseen = [ending for ending in HELD_OUT if ending.language == code]
    figure(f"promises, {code}: {len(corpus)} endings, {score(corpus)}; held out {len(unseen)}, {score(unseen)}")
    for result in (score(corpus), score(unseen)):
        assert result.precision >= 0.85
        assert result.recall >= 0.85


def test_the_corpus_is_what_it_says() -> None:
    assert len(EVERYTHING) >= 3000
    assert len(HELD_OUT) >= 1400
    assert {ending.kind for ending in HELD_OUT} == {ending.kind for ending in EVERYTHING} == KINDS
    assert {ending.text.strip() for ending in DEVELOPMENT} & {ending.text.strip() for ending in HELD_OUT} == set()
    for half in (DEVELOPMENT, HELD_OUT):
        assert len({ending.text for ending in half}) == len(half), "an ending that stands twice counts twice"
        for code in WRITTEN:
            told = [ending.announces for ending in half if ending.language == code]
            assert min(told.count(True), told.count(False)) >= 13, code


@pytest.mark.parametrize("code", CODES)
def test_every_row_earns_its_place(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a language's acts its promises are missed; without what sets a sentence apart others are seen."""
    corpus = [ending for ending in EVERYTHING if ending.language == code]
    before, nothing = score(corpus), re.compile(r"(?!)")
    row = promises.ROWS[code]
    for each in (code, *SISTERS.get(code, "").split()):
        without = promises.ROWS[each]._replace(acts=nothing, goes_on=nothing, waits=nothing)
        monkeypatch.setitem(promises.ROWS, each, without)
    assert score(corpus).recall < before.recall - 0.25
    monkeypatch.setitem(promises.ROWS, code, row._replace(apart=nothing, when=nothing))
    assert score(corpus).false > before.false
