"""Markdown as plain text, for where nothing else can be shown."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.text.document import Block
from adapters.text.flatten import flatten


def plain(blocks: Sequence[Block]) -> str:
    """Readable text without markup; addresses stand in brackets behind their labels."""
    return flatten(blocks, links=False).text
