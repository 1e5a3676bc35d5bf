"""Finds entries by full text, the best first.

The index is made when somebody asks, in memory, of what that person may read, and is gone with the answer: a memory has a quota, so that
takes milliseconds. Nothing of what is forgotten stays in an index, and SQLite and PostgreSQL answer alike, in the same order. It is
SQLite's FTS5 (words by their beginnings, without accents; the rarer, the more they count); where that is not built in, words are
counted. Behind what holds the words as they were typed comes what holds other forms of them: two words are forms of one if they have the same
stem in a language of their script (Snowball's). Languages without spaces are split into their characters, and found by pairs of them. No word
of a person is read as a query.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

MOST_CHARS = 2_000_000
"""So much is looked through, the first texts first: where the operator has set no quota."""
MOST_TERMS = 32
LONGEST_WORD = 60
"""What is longer is no word of a language."""
PREFIX_CHARS = 3
"""A word with so many letters also finds longer ones that begin with it."""
MOST_STEMMED = 1_000
"""So many words of entries are looked at that could be forms of what is looked for: each takes a tenth of a millisecond in each language."""
ROOT_CHARS = 3
"""Letters of a stem that every form of it has."""
STEMMED: Mapping[tuple[int, int], tuple[str, ...]] = {
    (0x0041, 0x024F): ("english", "german", "french", "spanish", "portuguese"),
    (0x0400, 0x052F): ("russian",),
    (0x0600, 0x06FF): ("arabic",),
    (0x0900, 0x097F): ("hindi",),
}
"""The languages in which words have forms, by the letters that they are written in."""
_WORD = re.compile(r"[\w\u0900-\u0963\u0971-\u097f]+")
"""Devanagari's vowel signs are no letters for Python, and belong to their word."""
_ACCENTS = re.compile(r"(?<=[\u0000-\u036f])[\u0300-\u036f]+|[\u0640\u064b-\u0652]")
"""Of Latin letters, and Arabic's short vowels. What stands over a letter elsewhere makes another letter of it."""
_NO_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_INDEX = "CREATE VIRTUAL TABLE entry USING fts5(name, words, tokenize = \"unicode61 categories 'L* N* Co M*'\")"
_BEST = "SELECT rowid FROM entry WHERE entry MATCH ? ORDER BY bm25(entry, 2.0, 1.0), rowid"


def _without_spaces(mark: str) -> bool:
    code = ord(mark)
    return code >= _NO_SPACES[0][0] and any(first <= code <= last for first, last in _NO_SPACES)


def plain(text: str) -> str:
    """The text in small letters and without accents: so it is compared. Pure."""
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return unicodedata.normalize("NFC", bare)


class Stems:
    """The stems of words, each in the languages of its script."""

    def __init__(self) -> None:
        import snowballstemmer

        library: Any = snowballstemmer
        self._known: dict[str, frozenset[tuple[str, str]]] = {}
        self._stem: dict[str, Callable[[str], str]] = {
            one: library.stemmer(one).stemWord for names in STEMMED.values() for one in names
        }

    def of(self, word: str) -> frozenset[tuple[str, str]]:
        """(language, stem) of a plain word."""
        if word not in self._known:
            script = next((names for (first, last), names in STEMMED.items() if first <= ord(word[0]) <= last), ())
            self._known[word] = frozenset((name, plain(self._stem[name](word))) for name in script)
        return self._known[word]


def forms(wanted: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The words of plain texts that are other forms of those that are looked for."""
    looked = dict.fromkeys(word for word in wanted if len(word) >= ROOT_CHARS)
    stems = Stems()
    meant = {one for word in looked for one in stems.of(word)}
    roots = re.compile(
        "|".join(re.escape(root) for root in {stem[:ROOT_CHARS] for _, stem in meant if stem}) or r"(?!)"
    )
    there = dict.fromkeys(word for text in texts for word in _WORD.findall(text))
    near = [word for word in there if word not in looked and len(word) <= LONGEST_WORD and roots.search(word)]
    return [word for word in near[:MOST_STEMMED] if stems.of(word) & meant]


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
    wanted = terms(plain(query))
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
        looked.append((place, spaced(plain(name)), spaced(plain(text))))
    words = [term for term, _ in wanted if " " not in term and len(term) <= LONGEST_WORD]
    others = [(form, False) for form in forms(words, (part for _, *parts in looked for part in parts))]
    try:
        found = _indexed(looked, [wanted, others])
    except sqlite3.OperationalError:  # FTS5 is not built in
        found = [*counted(looked, wanted), *counted(looked, others)]
    return list(dict.fromkeys(found))


def _indexed(entries: Sequence[tuple[int, str, str]], rounds: Sequence[Sequence[tuple[str, bool]]]) -> list[int]:
    """What holds one of the first terms, the best first; then what holds one of the second."""
    found: list[int] = []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as index:
        index.execute(_INDEX)
        index.execute("BEGIN")
        index.executemany("INSERT INTO entry (rowid, name, words) VALUES (?, ?, ?)", entries)
        for wanted in filter(None, rounds):
            asked = " OR ".join(f'"{term}"*' if longer else f'"{term}"' for term, longer in wanted)
            found += [int(row[0]) for row in index.execute(_BEST, (asked,))]
    return found


def counted(entries: Sequence[tuple[int, str, str]], wanted: Sequence[tuple[str, bool]]) -> list[int]:
    """By how many of the terms an entry holds. Pure."""
    scored: list[tuple[int, int]] = []
    for place, name, text in entries:
        words = " ".join(f"{name} {text}".casefold().split())
        score = sum(term.casefold() in words for term, _ in wanted)
        if score:
            scored.append((-score, place))
    return [place for _, place in sorted(scored)]
