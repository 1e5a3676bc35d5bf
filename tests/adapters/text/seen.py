"""What can be read in a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adapters.text.document import (
    Block,
    BulletList,
    CodeBlock,
    Heading,
    OrderedList,
    Paragraph,
    Quote,
    Rule,
    Table,
    inline_text,
)


def pieces(blocks: Sequence[Block]) -> Iterator[str]:
    """The texts of all blocks, in order."""
    for block in blocks:
        match block:
            case Paragraph(children) | Heading(_, children):
                yield inline_text(children)
            case CodeBlock(_, text):
                yield text
            case Quote(inside):
                yield from pieces(inside)
            case BulletList(items) | OrderedList(_, items):
                for item in items:
                    yield from pieces(item.blocks)
            case Table(header, _, rows):
                for row in (header, *rows):
                    yield from map(inline_text, row)
            case Rule():
                pass


def letters(blocks: Sequence[Block]) -> str:
    """All of them without white space."""
    return "".join("".join(pieces(blocks)).split())
