"""Blocks to styled text, as a chat shows it: no markup, few indentations, readable on a narrow screen.

Theory. Two steps. `_Flattener` takes text piece by piece, knows which styles are open, and puts in the white space between two
blocks only when something follows it, so that empty blocks leave no gap. Then `_apart` keeps spans from standing where
Telegram, the strictest platform, rejects or drops them.

Laws (tests hold them): spans are in bounds, not empty, sorted, and begin and end with no white space outside code; code
stands in no other span but a quote, and holds none; a quote stands in no quote; no style is in itself; two spans are
apart or one holds the other.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import assert_never

from adapters.text import document as doc
from adapters.text.clusters import columns, padded
from adapters.text.styled import VERBATIM, Span, Style, Styled, trimmed
from agent_core.records import dataclass

TABLE_WIDTH = 40
"""Columns of a table that a phone shows without breaking its lines."""
INDENT = "   "
RULE = "⸻"

_LONGEST_LINK = 2048
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}", re.ASCII)
_HOST = r"(?:[\w-]+\.)+[\w-]*\w\w|\d{1,3}(?:\.\d{1,3}){3}"
_FOLLOWABLE = re.compile(
    rf"https?://(?:{_HOST})(?::\d{{1,5}})?(?:[/?#]\S*)?|mailto:[^\s@/]{{1,64}}@\S+|tg://\w\S*", re.IGNORECASE
)


def flatten(blocks: Sequence[doc.Block], *, width: int = TABLE_WIDTH, links: bool = True) -> Styled:
    """The blocks as styled text; without `links`, addresses stand behind their labels."""
    writer = _Flattener(width, links)
    _write_blocks(writer, blocks, "", tight=False)
    return writer.done()


def can_follow(url: str) -> bool:
    """Whether an address is one that chats make a link of: web, mail and Telegram's own."""
    return len(url) <= _LONGEST_LINK and _FOLLOWABLE.fullmatch(url) is not None


@dataclass(slots=True)
class _Open:
    """A style that is open, and where it has text so far."""

    style: Style
    value: str
    start: int = -1
    end: int = -1


class _Flattener:
    """Text so far, what is open, and the white space that is due before the next piece."""

    __slots__ = ("_length", "_open", "_pending", "_pieces", "_spans", "links", "width")

    def __init__(self, width: int, links: bool) -> None:
        self.width = width
        self.links = links
        self._pieces: list[str] = []
        self._length = 0
        self._pending = ""
        self._open: list[_Open] = []
        self._spans: list[Span] = []

    def write(self, text: str) -> None:
        """Append text, behind the white space that is due; what is due before the first piece is stripped in the end."""
        if not text:
            return
        if self._pending:
            self._pieces.append(self._pending)
            self._length += len(self._pending)
        self._pending = ""
        for style in self._open:
            if style.start < 0:
                style.start = self._length
            style.end = self._length + len(text)
        self._pieces.append(text)
        self._length += len(text)

    def due(self, white: str) -> None:
        """Have this white space before the next piece, unless more of it is due already."""
        if white.count("\n") >= self._pending.count("\n"):
            self._pending = white

    @contextmanager
    def styled(self, style: Style, value: str = "") -> Generator[None]:
        """What is written inside has a style; a style within itself changes nothing."""
        if any(one.style is style for one in self._open):
            yield
            return
        opened = _Open(style, value)
        self._open.append(opened)
        yield
        self._open.pop()
        if opened.start >= 0:
            self._spans.append(Span(opened.start, opened.end, style, value))

    def has(self, style: Style) -> bool:
        """Whether a style is open."""
        return any(one.style is style for one in self._open)

    def done(self) -> Styled:
        """All that was written."""
        text = "".join(self._pieces)
        spans = trimmed(text, _apart(self._spans))
        return Styled(text, spans).strip()


def _apart(spans: Iterable[Span]) -> list[Span]:
    """The spans with holes where code stands, apart from quotes."""
    ordered = sorted(spans, key=lambda span: span.start)
    verbatim = [span for span in ordered if span.style in VERBATIM]
    result: list[Span] = list(verbatim)
    first = 0
    for span in ordered:
        if span.style in VERBATIM:
            continue
        if span.style is Style.QUOTE:
            result.append(span)
            continue
        while first < len(verbatim) and verbatim[first].end <= span.start:
            first += 1
        at, place = span.start, first
        while place < len(verbatim) and verbatim[place].start < span.end:
            result.append(replace(span, start=at, end=verbatim[place].start))
            at = verbatim[place].end
            place += 1
        result.append(replace(span, start=at))
    return [span for span in result if span.start < span.end]


# --- blocks ---


def _write_blocks(writer: _Flattener, blocks: Sequence[doc.Block], indent: str, *, tight: bool) -> None:
    for number, block in enumerate(blocks):
        if number:
            writer.due(("\n" if tight else "\n\n") + indent)
        _write_block(writer, block, indent)


def _write_block(writer: _Flattener, block: doc.Block, indent: str) -> None:
    match block:
        case doc.Paragraph(children):
            _write_inlines(writer, children, indent)
        case doc.Heading(_, children):
            with writer.styled(Style.BOLD):
                _write_inlines(writer, children, indent)
        case doc.CodeBlock(language, text):
            _write_code(writer, text, language if _LANGUAGE.fullmatch(language) else "")
        case doc.Quote(inside):
            writer.due("\n" + indent)
            with writer.styled(Style.QUOTE):
                _write_blocks(writer, inside, indent, tight=False)
        case doc.BulletList(items, tight):
            _write_list(writer, items, indent, tight=tight, start=None)
        case doc.OrderedList(start, items, tight):
            _write_list(writer, items, indent, tight=tight, start=start)
        case doc.Table():
            _write_table(writer, block, indent)
        case doc.Rule():
            writer.write(RULE)
        case _:
            assert_never(block)


def _write_code(writer: _Flattener, text: str, language: str) -> None:
    if text.strip():
        writer.due("\n")
        with writer.styled(Style.PRE, language):
            writer.write(text.rstrip())


def _write_list(writer: _Flattener, items: Sequence[doc.Item], indent: str, *, tight: bool, start: int | None) -> None:
    number = start or 0
    for place, item in enumerate(items):
        if place:
            writer.due(("\n" if tight else "\n\n") + indent)
            number = number + 1 if item.number is None else item.number
        marker = "•" if start is None else f"{number}."
        if item.checked is not None:
            box = "☑" if item.checked else "☐"
            marker = box if start is None else f"{marker} {box}"
        writer.write(marker)
        writer.due(" ")
        _write_blocks(writer, item.blocks, indent + INDENT, tight=tight)


def _write_table(writer: _Flattener, table: doc.Table, indent: str) -> None:
    grid = [[" ".join(doc.inline_text(cell).split()) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(map(columns, column)) for column in zip(*grid, strict=True)]
    narrow = sum(widths) + 3 * (len(widths) - 1) <= writer.width
    if narrow and not any(_leads_away(cell) for row in (table.header, *table.rows) for cell in row):
        _write_code(writer, "\n".join(_grid_lines(grid, widths, table.aligns)), "")
    else:
        _write_records(writer, table, indent)


def _leads_away(cell: doc.Cell) -> bool:
    """Whether a cell has an address that its words do not say: in columns, which are code, nobody could follow it."""
    for one in cell:
        match one:
            case doc.Link(url, children):
                if url not in (label := doc.inline_text(children), f"mailto:{label}"):
                    return True
            case doc.Image(url, alt):
                if alt and url:
                    return True
            case doc.Bold(children) | doc.Italic(children) | doc.Strike(children):
                if _leads_away(children):
                    return True
            case _:
                pass
    return False


_BEFORE = {doc.Align.NONE: 0.0, doc.Align.LEFT: 0.0, doc.Align.CENTER: 0.5, doc.Align.RIGHT: 1.0}


def _grid_lines(grid: Sequence[Sequence[str]], widths: Sequence[int], aligns: Sequence[doc.Align]) -> Iterable[str]:
    for number, row in enumerate(grid):
        cells = (padded(*cell) for cell in zip(row, widths, map(_BEFORE.__getitem__, aligns), strict=True))
        yield " | ".join(cells).rstrip()
        if not number:
            yield "-+-".join("-" * width for width in widths)


def _write_records(writer: _Flattener, table: doc.Table, indent: str) -> None:
    """A wide table: for each row, its cells under each other, each behind its column's name."""
    if not table.rows:
        for cell in table.header:
            writer.due("\n" + indent)
            with writer.styled(Style.BOLD):
                _write_inlines(writer, cell, indent)
    for number, row in enumerate(table.rows):
        if number:
            writer.due("\n\n" + indent)
        for name, cell in zip(table.header, row, strict=True):
            if not doc.inline_text(cell).strip():
                continue
            writer.due("\n" + indent)
            if doc.inline_text(name).strip():
                with writer.styled(Style.BOLD):
                    _write_inlines(writer, name, indent)
                writer.write(": ")
            _write_inlines(writer, cell, indent)


# --- inlines ---


def _write_inlines(writer: _Flattener, inlines: Sequence[doc.Inline], indent: str) -> None:
    for inline in inlines:
        match inline:
            case doc.Text(text):
                writer.write(text)
            case doc.Bold(children):
                with writer.styled(Style.BOLD):
                    _write_inlines(writer, children, indent)
            case doc.Italic(children):
                with writer.styled(Style.ITALIC):
                    _write_inlines(writer, children, indent)
            case doc.Strike(children):
                with writer.styled(Style.STRIKE):
                    _write_inlines(writer, children, indent)
            case doc.Code(text):
                _write_inline_code(writer, text)
            case doc.Link(url, children):
                _write_link(writer, url, children, indent)
            case doc.Image(url, alt):
                _write_link(writer, url, (doc.Text(alt or url),), indent)
            case doc.Formula(tex, source):
                beside_money = source.startswith("$") and not source.startswith("$$")
                if beside_money:
                    writer.write(source)
                else:
                    _write_inline_code(writer, " ".join(tex.split()))
            case doc.LineBreak() | doc.SoftBreak():
                writer.due("\n" + indent)
            case _:
                assert_never(inline)


def _write_inline_code(writer: _Flattener, text: str) -> None:
    if writer.has(Style.LINK) or not text.strip():
        writer.write(text)
        return
    with writer.styled(Style.CODE):
        writer.write(text)


def _write_link(writer: _Flattener, url: str, children: Sequence[doc.Inline], indent: str) -> None:
    label = doc.inline_text(children)
    if not label.strip():
        children = (doc.Text(url),)
        label = url
    if writer.has(Style.LINK):
        _write_inlines(writer, children, indent)
    elif writer.links and can_follow(url):
        with writer.styled(Style.LINK, url):
            _write_inlines(writer, children, indent)
    else:
        _write_inlines(writer, children, indent)
        if url and url not in (label, f"mailto:{label}") and not url.startswith("data:"):
            writer.write(f" ({url})")
