"""A text of the model as messages for Slack. Pure; a worker imports it, so it knows no library of the platform's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.text.files import lift_long_code
from adapters.text.flatten import flatten
from adapters.text.growing import without_open_link
from adapters.text.markup import SLACK, SLACK_MARKDOWN, styled_parts
from adapters.text.parse import read
from adapters.text.styled import is_visible

if TYPE_CHECKING:
    from adapters.contract.chat import Piece
    from adapters.text.styled import Styled

LIMIT_UNITS = 3_900
"""``chat.update`` takes 4 000 characters of text, and a new message is shown shortened above that: a part fits in all its forms."""


def pieces(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
    """See `ChatPort.parts`."""
    blocks = read(without_open_link(markdown) if growing else markdown, growing=growing, plain=plain)
    blocks, files = (blocks, ()) if growing else lift_long_code(blocks, fits=SLACK_MARKDOWN.fits_fence)
    texts = styled_parts(flatten(blocks), LIMIT_UNITS - 200, SLACK, SLACK_MARKDOWN)
    return (*(text for text in texts if is_visible(text.text)), *files)


def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
    """See `ChatPort.shorter`."""
    return styled_parts(body, most_units, SLACK, SLACK_MARKDOWN)
