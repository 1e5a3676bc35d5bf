"""What a text says, whatever platform shows it: a tree of blocks, and of inlines within them.

Theory. A model writes Markdown; every platform shows something else. Between the two stands this tree. It is made once, by
`parse`, and each platform's module walks over it with an exhaustive `match`: a new kind of node that somebody does not
show does not type-check. Nothing in it is markup of any platform, so HTML that a model writes is text like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias, assert_never

from adapters.text.styled import is_visible
from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """Characters without a style of their own."""

    text: str


@dataclass(frozen=True, slots=True)
class Bold:
    """Strong emphasis."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Italic:
    """Emphasis."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Strike:
    """Struck out."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Code within a line."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link of any scheme; whoever shows it decides which schemes may be followed."""

    url: str
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that is named, not fetched: shown as a link."""

    url: str
    alt: str


@dataclass(frozen=True, slots=True)
class Formula:
    """Mathematics in TeX, where somebody asks for it as such."""

    tex: str
    source: str
    """With the marks around it."""
    display: bool
    """It stands alone."""


@dataclass(frozen=True, slots=True)
class LineBreak:
    """A line end that is meant."""


@dataclass(frozen=True, slots=True)
class SoftBreak:
    """A line end in the source."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    children: tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Code in lines of its own, without a line end behind the last one."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted blocks."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list; `checked` is None unless it is a task."""

    blocks: tuple[Block, ...]
    checked: bool | None = None
    number: int | None = None
    """As it was written, if it is not the one that follows."""


@dataclass(frozen=True, slots=True)
class BulletList:
    """A list without numbers; tight if no blank lines stand between its items."""

    items: tuple[Item, ...]
    tight: bool = True


@dataclass(frozen=True, slots=True)
class OrderedList:
    """A numbered list."""

    start: int
    items: tuple[Item, ...]
    tight: bool = True


class Align(StrEnum):
    """How a table's column is aligned."""

    NONE = ""
    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


Cell: TypeAlias = "tuple[Inline, ...]"


@dataclass(frozen=True, slots=True)
class Table:
    """A table; every row has as many cells as there are alignments."""

    header: tuple[Cell, ...]
    aligns: tuple[Align, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A line between two parts of a text."""


Inline: TypeAlias = Text | Bold | Italic | Strike | Code | Link | Image | Formula | LineBreak | SoftBreak
Block: TypeAlias = Paragraph | Heading | CodeBlock | Quote | BulletList | OrderedList | Table | Rule


def inline_text(inlines: Sequence[Inline], line_end: str = " ") -> str:
    """The characters of inlines without their styles."""
    return "".join(_words(inlines, line_end))


def _words(inlines: Sequence[Inline], line_end: str) -> Iterator[str]:
    for inline in inlines:
        match inline:
            case Text(text) | Code(text):
                yield text
            case Bold(children) | Italic(children) | Strike(children) | Link(_, children):
                yield from _words(children, line_end)
            case Image(url, alt):
                yield alt or url
            case Formula(_, source):
                yield source
            case LineBreak() | SoftBreak():
                yield line_end
            case _:
                assert_never(inline)


def is_seen(blocks: Sequence[Block]) -> bool:
    """Whether anything of blocks can be seen."""
    return any(map(_is_seen, blocks))


def _is_seen(block: Block) -> bool:
    match block:
        case Paragraph(children) | Heading(_, children):
            named = any(isinstance(one, Link | Image) and one.url for one in children)
            return named or is_visible(inline_text(children))
        case CodeBlock(_, text):
            return is_visible(text)
        case Quote(blocks):
            return is_seen(blocks)
        case BulletList() | OrderedList() | Table() | Rule():
            return True
        case _:
            assert_never(block)
