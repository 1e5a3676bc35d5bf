"""Styled text as Telegram takes it: message texts with entities, each text within the limits.

Theory. Telegram is given plain text and entities, never markup, so nothing in a text can break its form. Offsets count UTF-16
code units (https://core.telegram.org/bots/api#messageentity). A message holds 4096 of them and at most `MOST_ENTITIES`
entities; it is rejected if nothing in it can be seen.

Laws (tests hold them): entities are in bounds, never within a surrogate pair, sorted, at most `MOST_ENTITIES`; code holds
none; no part consists of invisible characters.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from adapters.text.flatten import flatten
from adapters.text.parse import parse
from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, units

LIMIT = 4096
MOST_ENTITIES = 100

# Blank Braille, Hangul fillers, the joiner and Khmer vowels that show nothing: no category says that they are invisible.
_BLANK = frozenset("\u2800\u3164\u115f\u1160\uffa0\u034f\u17b4\u17b5")


@dataclass(frozen=True, slots=True)
class Entity:
    """One MessageEntity, in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


def telegram_parts(markdown: str, *, growing: bool = False, limit: int = LIMIT) -> tuple[Styled, ...]:
    """A text as messages; none if there is nothing to see in it."""
    flat = flatten(parse(markdown, growing=growing))
    return tuple(part for part in split(flat, limit, units, most_spans=MOST_ENTITIES) if is_visible(part.text))


def entities(styled: Styled) -> tuple[Entity, ...]:
    """The entities of a message."""
    if styled.text.isascii():
        return tuple(_entity(span, span.start, span.end) for span in styled.spans)
    at = [0, *accumulate(2 if char > "\uffff" else 1 for char in styled.text)]
    return tuple(_entity(span, at[span.start], at[span.end]) for span in styled.spans)


def _entity(span: Span, start: int, end: int) -> Entity:
    length = end - start
    match span.style:
        case Style.BOLD:
            return Entity("bold", start, length)
        case Style.ITALIC:
            return Entity("italic", start, length)
        case Style.STRIKE:
            return Entity("strikethrough", start, length)
        case Style.CODE:
            return Entity("code", start, length)
        case Style.PRE:
            return Entity("pre", start, length, language=span.value)
        case Style.LINK:
            return Entity("text_link", start, length, url=span.value)
        case Style.QUOTE:
            return Entity("blockquote", start, length)
        case _:
            assert_never(span.style)


def is_visible(text: str) -> bool:
    """Whether anything in a text can be seen."""
    return any(not _is_invisible(char) for char in text)


def _is_invisible(char: str) -> bool:
    if char.isspace() or char in _BLANK or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return True
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
