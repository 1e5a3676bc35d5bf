"""A text of the model as messages for Discord. Pure; a worker imports it, so it knows no library of the platform's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.markup import DISCORD, rendered_parts
from adapters.text.parse import read
from adapters.text.styled import Styled, is_visible

if TYPE_CHECKING:
    from adapters.contract.chat import Piece

LIMIT_UNITS = 2000
LABEL_UNITS = 160
"""Room for words that the outbox may put before a part."""


def pieces(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """See `ChatPort.parts`."""
    blocks = read(markdown, growing=growing, plain=plain)
    blocks, files = (blocks, ()) if growing else lift_long_code(blocks, fits=DISCORD.fits_fence)
    texts = rendered_parts(flatten(blocks), LIMIT_UNITS - LABEL_UNITS, DISCORD)
    return (*(Styled(text) for text in texts if is_visible(text)), *files)


def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
    """See `ChatPort.shorter`. What is rendered already is Markdown, and is read again."""
    blocks = read(body.text, growing=False, plain=False)
    return tuple(Styled(text) for text in rendered_parts(flatten(blocks), most_units, DISCORD))
