"""Whether English stands in what a person reads: any piece of a sentence of ours, or the small words of which every English sentence is made."""

from __future__ import annotations

import functools
import re

from tests.catalogues import sources, template

_PIECE = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_LETTERS = re.compile(r"[^\W\d_]+")
SMALL = frozenset([
    "the", "and", "your", "you", "this", "that", "these", "it", "its", "is", "are", "has", "have", "been", "which", "there", "nothing", "what", "when",
    "from", "with", "of", "by", "they", "cannot", "could", "would", "begins", "anew", "because", "again",
])  # fmt: skip
"""Words that no sentence of ours in German, Spanish, French or Portuguese has."""


@functools.cache
def pieces() -> tuple[str, ...]:
    """What stands between the names of our sentences, where it is three words or more."""
    found = {
        piece.strip() for message in template() for words in sources(message) for piece in _PIECE.split(words)
        if len(_WORD.findall(piece)) >= 3
    }  # fmt: skip
    return tuple(sorted(found))


def english_in(text: str, *others: str) -> list[str]:
    """What is English in a text. `others` are words that are not ours: of a model, a tool, a provider."""
    for words in others:
        text = text.replace(words, " ")
    small = [word for word in _LETTERS.findall(text) if word.lower() in SMALL]
    return [piece for piece in pieces() if piece in text] or (small if len(small) > 1 else [])
