"""A text's blocks as the page makes elements of them: lists that JSON knows, of a name, its facts or null, and children. Pure.

The names are a closed set, which `webpage/written.js` has as well: what a model writes is the text of a node and never markup, so that nothing has
to be cleaned. Addresses that a browser could run are no links.

Laws (tests/adapters/test_written.py): no text raises; no letter that is shown in a chat is missing; no run without a place to break is longer than
`UNBROKEN`; there are at most as many nodes as `Room` allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias, assert_never

from adapters.text import document as doc
from agent_core.jsonvalue import Json

Node: TypeAlias = "str | list[Json]"
UNBROKEN = 200
"""A browser needs long for a run of characters without a place to break."""
PART_CHARS = 4_000
"""Long code comes in parts, which cost a browser nothing as long as they are not on the screen."""
CODE_NODES = 9
"""What a page makes around a piece of code."""
COLUMNS = 50
_LONG = re.compile(rf"\S{{{UNBROKEN}}}(?=\S)")
_SAFE = re.compile(r"(?:https?:|mailto:)", re.IGNORECASE)
_PLACE = r"[^\s<>()\u2018-\u201f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
_ADDRESS = re.compile(rf"https?://(?:{_PLACE}|\((?:{_PLACE}|\({_PLACE}*+\))*+\)){{1,2000}}")
"""Up to white space, a mark of a script that puts none around words, or a bracket without its other half: that belongs to the words around it."""
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


class NoNodesLeft(Exception):
    """The text has more pieces than a browser should be given."""


class Room:
    """How many nodes may still be made."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, nodes: int = 1) -> None:
        self.left -= nodes
        if self.left < 0:
            raise NoNodesLeft


def block(one: doc.Block, room: Room) -> Node:
    """A block as a node. Raises `NoNodesLeft`."""
    room.take()
    match one:
        case doc.Paragraph(children):
            return ["p", None, *inlines(children, room)]
        case doc.Heading(level, children):
            return [f"h{min(level, 4)}", None, *inlines(children, room)]
        case doc.CodeBlock(language, text):
            return _code(language, text, room)
        case doc.Quote(blocks):
            return ["blockquote", None, *(block(each, room) for each in blocks)]
        case doc.BulletList(items, tight):
            return ["ul", None, *(_item(each, tight, room) for each in items)]
        case doc.OrderedList(start, items, tight):
            return ["ol", {"start": start}, *(_item(each, tight, room) for each in items)]
        case doc.Table():
            return _table(one, room)
        case doc.Rule():
            return ["hr", None]
        case _:
            assert_never(one)


def _item(item: doc.Item, tight: bool, room: Room) -> list[Json]:
    room.take()
    inside: list[Json] = []
    if item.checked is not None:
        inside.append(["box", {"on": item.checked}])
    for each in item.blocks:
        if tight and isinstance(each, doc.Paragraph):
            inside += inlines(each.children, room)
        else:
            inside.append(block(each, room))
    return ["li", None if item.number is None else {"value": item.number}, *inside]


def _table(table: doc.Table, room: Room) -> list[Json]:
    if len(table.header) > COLUMNS:
        raise NoNodesLeft

    def row(name: str, cells: Sequence[doc.Cell]) -> list[Json]:
        made: list[Json] = ["tr", None]
        for cell, align in zip(cells, table.aligns, strict=True):
            room.take()
            made.append([name, {"align": align.value} if align.value else None, *inlines(cell, room)])
        return made

    return [
        "table",
        None,
        ["thead", None, row("th", table.header)],
        ["tbody", None, *(row("td", each) for each in table.rows)],
    ]


def _code(language: str, text: str, room: Room) -> list[Json]:
    room.take(CODE_NODES)
    named = language if _LANGUAGE.fullmatch(language) else ""
    if len(text) <= PART_CHARS:
        return ["pre", {"language": named}, *broken(text, room)]
    return ["pre", {"language": named}, *(["part", None, *broken(each, room)] for each in parts(text))]


def parts(text: str) -> Iterator[str]:
    """The text in parts that end with a line where they can; the same beginning gives the same parts."""
    at = 0
    while at < len(text):
        to = min(len(text), at + PART_CHARS)
        if to < len(text) and (line := text.rfind("\n", at, to) + 1) > at:
            to = line
        yield text[at:to]
        at = to


def broken(text: str, room: Room) -> list[Json]:
    """Text as it is. The places to break that are put into a long run are not seen, and not copied."""
    if len(text) <= UNBROKEN:
        return [text] if text else []
    made: list[Json] = []
    at = 0
    for found in _LONG.finditer(text):
        room.take()
        made.append(text[at : found.end()])
        made.append(["wbr", None])
        at = found.end()
    if at < len(text):
        made.append(text[at:])
    return made


def inlines(children: Sequence[doc.Inline], room: Room, *, linked: bool = False) -> list[Json]:
    """Inlines as nodes; nothing `linked` holds a link."""
    made: list[Json] = []
    for one in children:
        made += _inline(one, room, linked)
    return made


def _inline(one: doc.Inline, room: Room, linked: bool) -> list[Json]:
    room.take()
    match one:
        case doc.Text(text):
            return broken(text, room) if linked else _with_addresses(text, room)
        case doc.Bold(children):
            return [["strong", None, *inlines(children, room, linked=linked)]]
        case doc.Italic(children):
            return [["em", None, *inlines(children, room, linked=linked)]]
        case doc.Strike(children):
            return [["del", None, *inlines(children, room, linked=linked)]]
        case doc.Code(text):
            return [["code", None, *broken(text, room)]]
        case doc.Link(url, children):
            return _link(url, children, room, linked)
        case doc.Image(url, alt):
            if linked or not _SAFE.match(url):
                return broken(alt or url[:UNBROKEN], room)
            return [["picture", {"href": url, "alt": alt}]]
        case doc.Formula(tex, _, display):
            return [["formula", {"display": display}, *broken(tex, room)]]
        case doc.LineBreak() | doc.SoftBreak():
            return [["br", None]]
        case _:
            assert_never(one)


def _link(url: str, children: Sequence[doc.Inline], room: Room, linked: bool) -> list[Json]:
    shown = inlines(children, room, linked=True) or broken(url, room)
    if linked:
        return shown
    if _SAFE.match(url):
        return [["a", {"href": url}, *shown]]
    return [*shown, *broken(f" ({url})", room)] if url else shown


def _with_addresses(text: str, room: Room) -> list[Json]:
    made: list[Json] = []
    at = 0
    for found in _ADDRESS.finditer(text) if "://" in text else ():
        room.take()
        address = found[0].rstrip(".,;:!?'\"")
        if len(address) <= len("https://"):
            continue
        made += broken(text[at : found.start()], room)
        made.append(["a", {"href": address}, *broken(address, room)])
        at = found.start() + len(address)
    return made + broken(text[at:], room)
