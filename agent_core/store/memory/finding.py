"""Finds entries by full text, the best first.

The index is made when somebody asks, in memory, of what that person may read, and is gone with the answer: a memory has a quota, so that
takes milliseconds. Nothing of what is forgotten stays in an index, and SQLite and PostgreSQL answer alike, in the same order. It is
SQLite's FTS5 (words by their stems and beginnings, without accents; the rarer, the more they count); where that is not built in, words are
counted. Languages without spaces are split into their characters, and found by pairs of them. No word of a person is read as a query.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing

MOST_CHARS = 2_000_000
"""So much is looked through, the first texts first: where the operator has set no quota."""
MOST_TERMS = 32
PREFIX_CHARS = 3
"""A word with so many letters also finds longer ones that begin with it."""
_NO_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_INDEX = "CREATE VIRTUAL TABLE entry USING fts5(name, words, tokenize = 'porter unicode61 remove_diacritics 2')"
_BEST = "SELECT rowid FROM entry WHERE entry MATCH ? ORDER BY bm25(entry, 2.0, 1.0), rowid"


def _without_spaces(mark: str) -> bool:
    code = ord(mark)
    return code >= _NO_SPACES[0][0] and any(first <= code <= last for first, last in _NO_SPACES)


def spaced(text: str) -> str:
    """The text with each character of a language without spaces as a word of its own. Pure."""
    return "".join(f" {mark} " if _without_spaces(mark) else mark for mark in text).replace("\0", " ")


def terms(query: str) -> list[tuple[str, bool]]:
    """What is looked for: words, and pairs of characters of languages without spaces; and whether longer words are meant as well. Pure."""
    runs: list[str] = []
    before = ""
    for mark in query:
        kind = (
            "dense"
            if _without_spaces(mark)
            else "word"
            if mark.isalnum() or unicodedata.category(mark)[0] == "M"
            else ""
        )
        if kind and kind == before:
            runs[-1] += mark
        elif kind:
            runs.append(mark)
        before = kind
    found: list[tuple[str, bool]] = []
    for run in runs:
        if not _without_spaces(run[0]):
            found.append((run, len(run) >= PREFIX_CHARS))
        else:
            found += [(f"{run[i]} {run[i + 1]}", False) for i in range(len(run) - 1)] or [(run, False)]
    return list(dict.fromkeys(found))[:MOST_TERMS]


def best(entries: Sequence[tuple[str, str]], query: str) -> list[int]:
    """The places of the entries (name, text) that fit, best first and among equals in their order; of all, if the query asks for nothing."""
    wanted = terms(query)
    if not query.strip():
        return [*range(len(entries))]
    if not wanted:
        return []
    room = MOST_CHARS
    looked: list[tuple[int, str, str]] = []
    for place, (name, text) in enumerate(entries):
        room -= len(name) + len(text)
        if room < 0:
            break
        looked.append((place, spaced(name), spaced(text)))
    try:
        return _indexed(looked, wanted)
    except sqlite3.OperationalError:  # FTS5 is not built in
        return counted(looked, wanted)


def _indexed(entries: Sequence[tuple[int, str, str]], wanted: Sequence[tuple[str, bool]]) -> list[int]:
    asked = " OR ".join(f'"{term}"*' if longer else f'"{term}"' for term, longer in wanted)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as index:
        index.execute(_INDEX)
        index.execute("BEGIN")
        index.executemany("INSERT INTO entry (rowid, name, words) VALUES (?, ?, ?)", entries)
        return [int(row[0]) for row in index.execute(_BEST, (asked,))]


def counted(entries: Sequence[tuple[int, str, str]], wanted: Sequence[tuple[str, bool]]) -> list[int]:
    """By how many of the terms an entry holds. Pure."""
    scored: list[tuple[int, int]] = []
    for place, name, text in entries:
        words = " ".join(f"{name} {text}".casefold().split())
        score = sum(term.casefold() in words for term, _ in wanted)
        if score:
            scored.append((-score, place))
    return [place for _, place in sorted(scored)]
