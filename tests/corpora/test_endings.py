"""Announcements at the end of a reply are told from other endings: measured on the corpus, whole, held out, and by language."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import agent_core.promises as promises
from agent_core.promises import announced_action
from agent_core.promisewords import LANGUAGES
from tests.corpora.endings import KINDS, Ending, endings
from tests.corpora.score import Score

DEVELOPMENT = endings("development")
HELD_OUT = endings("held_out")
EVERYTHING = DEVELOPMENT + HELD_OUT
CODES = tuple(language.code for language in LANGUAGES)


def found(ending: Ending) -> bool:
    return announced_action(ending.text) is not None


def score(corpus: list[Ending]) -> Score:
    return Score.of((ending.announces, found(ending)) for ending in corpus)


@pytest.mark.parametrize(
    ("name", "corpus"), [("all", EVERYTHING), ("held out", HELD_OUT), ("development", DEVELOPMENT)]
)
def test_announcements_are_told_from_other_endings(
    name: str, corpus: list[Ending], figure: Callable[[str], None]
) -> None:
    result = score(corpus)
    figure(f"announcements, {name}: {len(corpus)} endings, {result}")
    if corpus is DEVELOPMENT:  # nobody looks into the other half
        for ending in corpus:
            if ending.announces != found(ending):
                print(f"{'missed' if ending.announces else 'seen where there is none'}: {ending}")
    assert result.precision >= 0.97
    assert result.recall >= 0.85


@pytest.mark.parametrize("code", CODES)
def test_no_language_is_left_behind(code: str, figure: Callable[[str], None]) -> None:
    corpus = [ending for ending in EVERYTHING if ending.language == code]
    unseen = [ending for ending in HELD_OUT if ending.language == code]
    result = score(corpus)
    figure(f"announcements, {code}: {len(corpus)} endings, {result}; held out {len(unseen)}, {score(unseen)}")
    assert result.precision >= 0.9
    assert result.recall >= 0.85


def test_the_corpus_is_what_it_says() -> None:
    assert len(EVERYTHING) >= 450
    assert {ending.kind for ending in HELD_OUT} == {ending.kind for ending in EVERYTHING} == KINDS
    assert {ending.text.strip() for ending in DEVELOPMENT} & {ending.text.strip() for ending in HELD_OUT} == set()
    for half in (DEVELOPMENT, HELD_OUT):
        assert len({ending.text for ending in half}) == len(half), "an ending that stands twice counts twice"
        for code in CODES:
            told = [ending.announces for ending in half if ending.language == code]
            assert min(told.count(True), told.count(False)) >= 5, code


@pytest.mark.parametrize("code", CODES)
def test_every_row_earns_its_place(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a language's words its announcements are missed, without its exceptions others are seen."""
    corpus = [ending for ending in EVERYTHING if ending.language == code]
    row = CODES.index(code)
    table = list(promises.TABLE)
    monkeypatch.setattr(promises, "TABLE", table[:row] + table[row + 1 :])
    assert score(corpus).recall < 0.5
    announcing, _ = table[row]
    table[row] = (announcing, re.compile(r"(?!)"))
    monkeypatch.setattr(promises, "TABLE", table)
    assert score(corpus).false > score(corpus).missed
