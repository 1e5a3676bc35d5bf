"""A text of the model as messages for Telegram. Pure; a worker imports it, so it knows no library of the platform's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.parse import read
from adapters.text.split import split
from adapters.text.styled import Styled, is_visible, units

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
