"""A text of the model as messages for Telegram, and its spans as Telegram's entities. Pure; a worker imports it, so it knows no library of the platform's.

Telegram is given plain text and entities, never markup, so nothing in a text can break its form. Offsets count UTF-16 code units
(https://core.telegram.org/bots/api#messageentity).

Laws (tests hold them): entities are in bounds, never within a surrogate pair, and sorted; code holds none.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, assert_never

from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.parse import read
from adapters.text.split import split
from adapters.text.styled import Span, Style, Styled, is_visible, units
from agent_core.records import dataclass

if TYPE_CHECKING:
    from adapters.contract.chat import Piece

LIMIT_UNITS = 4096
"""Of a message, in UTF-16 units (https://core.telegram.org/bots/api#sendmessage)."""
MOST_ENTITIES = 100
"""Of a message. One that has nothing to be seen in it is rejected."""
LABEL_UNITS = 160
"""Room for words that the outbox may put before a part."""


def pieces(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """See `ChatPort.parts`."""
    blocks = read(markdown, growing=growing, plain=plain)
    blocks, files = (blocks, ()) if growing else lift_long_code(blocks)
    texts = split(flatten(blocks), LIMIT_UNITS - LABEL_UNITS, units, most_spans=MOST_ENTITIES - 1)
    return (*(text for text in texts if is_visible(text.text)), *files)


def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
    """See `ChatPort.shorter`."""
    return split(body, most_units, most_spans=MOST_ENTITIES - 1)


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
