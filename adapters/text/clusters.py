"""What a person takes for one character: extended grapheme clusters (UAX 29), by the `regex` library, and the columns that they take.

Its pattern types are narrowed here, so that nobody else needs to know them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex


@cache
def _cluster() -> regex.Pattern[str]:
    """The library is loaded with the first text that is not plain: it takes 2 MiB.

    Of a flag, `\\X` counts how many halves stand before it: in a row of flags that is a time that grows with the square. From the row's
    beginning on they are pairs.
    """
    import regex

    return regex.compile(r"\p{RI}{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X")


def clusters(text: str) -> Iterator[str]:
    for found in _cluster().finditer(text):
        yield found.group()


def last_boundary(text: str, start: int, limit: int) -> int:
    """The last end of a cluster at or before `limit`, if `start` is one; `limit` itself if there is none."""
    if text[start : limit + 1].isascii() and "\r" not in text[start : limit + 1]:
        return limit
    best = start
    for found in _cluster().finditer(text, start, min(len(text), limit + 1)):
        if found.end() > limit:
            break
        best = found.end()
    return best if best > start else limit


def is_glued(text: str, at: int) -> bool:
    """Whether the characters around `at` are one cluster, if one of them is white space or punctuation."""
    pair = text[at - 1 : at + 1]
    return len(pair) == 2 and not (pair.isascii() and pair != "\r\n") and _cluster().fullmatch(pair) is not None


_JOINERS = frozenset("\u200d\ufe0f\u20e3")


def columns(text: str) -> int:
    """Columns of one line: two for East Asian wide characters and emoji, none for what combines."""
    if text.isascii():
        return len(text)
    return sum(map(_of_cluster, clusters(text)))


def cut(text: str, width: int) -> str:
    """The text, with … in the place of what does not fit into a width."""
    if columns(text) <= width:
        return text
    kept, room = "", width - 1
    for cluster in clusters(text):
        room -= _of_cluster(cluster)
        if room < 0:
            break
        kept += cluster
    return f"{kept.rstrip()}…"


def _of_cluster(cluster: str) -> int:
    if len(cluster) > 1 and (not _JOINERS.isdisjoint(cluster) or "\U0001f1e6" <= cluster[0] <= "\U0001f1ff"):
        return 2
    return max(map(_of_char, cluster))


def _of_char(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def padded(text: str, width: int, left_part: float = 0.0) -> str:
    """The text with blanks up to a width; `left_part` of them stand before it."""
    missing = max(0, width - columns(text))
    before = int(missing * left_part)
    return " " * before + text + " " * (missing - before)
