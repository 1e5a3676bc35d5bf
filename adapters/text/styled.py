"""Flat text with styles over parts of it: what a platform with entities shows, before its own offsets.

Theory. A `Styled` is a text and spans over it. Offsets count code points, as Python does; a platform's own measure (`units`
for those that count UTF-16) is applied at its edge only. Spans are sorted by their start, the outer ones first.

Laws (tests hold them): a slice has the spans that lie in it, cut; `Styled.strip` and `trimmed` leave no span that begins or
ends with white space, apart from a code block's indentation; joining gives the texts and the spans of all.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from agent_core.records import dataclass


class Style(StrEnum):
    """What a span does; the order puts the outer one of two equal spans first."""

    QUOTE = "quote"
    PRE = "pre"
    CODE = "code"
    LINK = "link"
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"


VERBATIM = frozenset({Style.PRE, Style.CODE})
"""No other style may stand in these."""

# Blank Braille, Hangul fillers, the joiner and Khmer vowels that show nothing: no category says that they are invisible.
_BLANK = frozenset("\u2800\u3164\u115f\u1160\uffa0\u034f\u17b4\u17b5")

_RANK = {style: rank for rank, style in enumerate(Style)}


@dataclass(frozen=True, slots=True)
class Span:
    """A style over `text[start:end]`; `value` is a link's address or a code block's language."""

    start: int
    end: int
    style: Style
    value: str = ""


def in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Sorted: by start, the outer ones first."""
    return tuple(sorted(spans, key=lambda span: (span.start, -span.end, _RANK[span.style])))


def units(text: str) -> int:
    """The length in UTF-16 code units, as Telegram, JavaScript and Discord count."""
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def is_visible(text: str) -> bool:
    """Whether anything in a text can be seen."""
    return any(not _is_invisible(char) for char in text)


def _is_invisible(char: str) -> bool:
    if char.isspace() or char in _BLANK or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return True
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")


def trimmed(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """The spans without white space at their ends and without empty ones, sorted; a code block keeps its indentation."""
    spans = list(spans)
    code = sorted(span.start for span in spans if span.style is Style.PRE)
    kept: list[Span] = []
    for span in spans:
        inside = text[span.start : span.end]
        if not (body := inside.strip()):
            continue
        if len(body) == len(inside):
            kept.append(span)
            continue
        start = span.end - len(inside.lstrip())
        place = bisect_left(code, span.start)
        if place < len(code) and code[place] < start:
            start = code[place]
        kept.append(replace(span, start=start, end=span.start + len(inside.rstrip())))
    return in_order(kept)


@dataclass(frozen=True, slots=True)
class Styled:
    """A text and the spans over it, sorted."""

    text: str = ""
    spans: tuple[Span, ...] = ()

    def __add__(self, other: Styled) -> Styled:
        return joined((self, other))

    def slice(self, start: int, end: int) -> Styled:
        """The part between two offsets."""
        start, end, _ = slice(start, end).indices(len(self.text))
        return Styled(self.text[start:end], cut(self.spans, start, end))

    def strip(self) -> Styled:
        """Without white space at both ends; within code that it begins with, only blank lines go."""
        return _stripped(self)


def cut(spans: Sequence[Span], start: int, end: int) -> tuple[Span, ...]:
    """What of the spans lies between two offsets, counted from the first."""
    return in_order(
        replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in spans
        if span.start < end and span.end > start
    )


def joined(parts: Iterable[Styled]) -> Styled:
    """All of them, one behind the other."""
    texts: list[str] = []
    spans: list[Span] = []
    at = 0
    for part in parts:
        texts.append(part.text)
        spans += (replace(span, start=span.start + at, end=span.end + at) for span in part.spans)
        at += len(part.text)
    return Styled("".join(texts), in_order(spans))


def _stripped(styled: Styled) -> Styled:
    text = styled.text
    end = len(text.rstrip())
    start = min(end, len(text) - len(text.lstrip()))
    for span in styled.spans:
        if span.start >= start:
            break
        if span.style is Style.PRE and span.end > start:
            start = max(span.start, text.rfind("\n", span.start, start) + 1)
            break
    body = styled.slice(start, end)
    return Styled(body.text, trimmed(body.text, body.spans))
