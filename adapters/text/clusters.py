"""What a person takes for one character: extended grapheme clusters (UAX 29), by the `regex` library.

Its pattern types are narrowed here, so that nobody else needs to know them.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex

_CLUSTER = regex.compile(r"\X")


def clusters(text: str) -> Iterator[str]:
    """The clusters of a text, in order."""
    for found in _CLUSTER.finditer(text):
        yield found.group()


def last_boundary(text: str, start: int, limit: int) -> int:
    """The last end of a cluster at or before `limit`, if `start` is one; `limit` itself if there is none."""
    if text[start : limit + 1].isascii() and "\r" not in text[start : limit + 1]:
        return limit
    best = start
    for found in _CLUSTER.finditer(text, start, min(len(text), limit + 1)):
        if found.end() > limit:
            break
        best = found.end()
    return best if best > start else limit


def is_glued(text: str, at: int) -> bool:
    """Whether the characters around `at` are one cluster, if one of them is white space or punctuation."""
    pair = text[at - 1 : at + 1]
    return len(pair) == 2 and not (pair.isascii() and pair != "\r\n") and _CLUSTER.fullmatch(pair) is not None
