"""How many columns a text takes where every character has the same width."""

from __future__ import annotations

import unicodedata

from adapters.text.clusters import clusters

_JOINERS = frozenset("\u200d\ufe0f\u20e3")


def columns(text: str) -> int:
    """Columns of one line: two for East Asian wide characters and emoji, none for what combines."""
    if text.isascii():
        return len(text)
    return sum(map(_of_cluster, clusters(text)))


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
