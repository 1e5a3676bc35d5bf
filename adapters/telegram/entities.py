"""The spans of a text as Telegram's entities.

Theory. Telegram is given plain text and entities, never markup, so nothing in a text can break its form. Offsets count UTF-16
code units (https://core.telegram.org/bots/api#messageentity).

Laws (tests hold them): entities are in bounds, never within a surrogate pair, and sorted; code holds none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from adapters.text.styled import Span, Style, Styled


@dataclass(frozen=True, slots=True)
class Entity:
    """One MessageEntity, in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


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
