"""A text of the model as nodes, also while it grows. Pure.

Theory. Of a text that grows, what stands well before its end does not change any more: those blocks are made once, and only the rest is read again
with each piece that comes. When the text is whole it is read once more from its beginning, because an address that is defined at its end may be
named by a link at its beginning.

Law (tests/adapters/test_written.py): however a text was cut, in the end it is shown as if it had come at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from adapters.http.written.nodes import NoNodesLeft, Room, block
from adapters.text.parse import clean, placed
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

MOST_CHARS = 60_000
"""What stands behind so many is shown as it was written."""
MOST_NODES = 5_000
DEEPEST = 24
"""So deep may blocks be nested, a list counting two."""
OPEN_LINES = 3
"""A block that began so many lines before the end is one; before, it may become another."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """The beginning of a text that does not change any more."""

    text: str = ""
    nodes: tuple[Json, ...] = ()
    room: int = MOST_NODES
    """So many nodes may follow."""
    defined: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class _Shown:
    """What follows it."""

    nodes: list[Json]
    lines: tuple[int, ...]
    """In which line each begins; none where nothing of it can settle."""
    rooms: tuple[int, ...]
    """How many nodes may follow each."""
    defined: Mapping[str, object]


NOTHING = _Settled()


def whole(text: str) -> list[Json]:
    """The nodes of a text that does not grow any more."""
    return _shown(clean(text), NOTHING, growing=False).nodes


def _shown(text: str, after: _Settled, *, growing: bool) -> _Shown:
    chars = MOST_CHARS - len(after.text)
    formatted = text if len(text) <= chars else text[: text.rfind("\n", 0, chars) + 1 or chars]
    found = placed(formatted, growing=growing and formatted is text, deepest=DEEPEST, defined=after.defined)
    room, nodes, rooms = Room(after.room), list[Json](), list[int]()
    for number, one in enumerate(found.blocks):
        try:
            nodes.append(block(one, room))
        except NoNodesLeft:
            begins = _offset(text, found.lines[number]) if number < len(found.lines) else 0
            shown = nodes if begins else []
            return _Shown([*shown, ["plain", None, text[begins:]]], (), (), {})
        rooms.append(room.left)
    if formatted is not text:
        nodes.append(["plain", None, text[len(formatted) :]])
    return _Shown(nodes, found.lines, tuple(rooms), found.defined)


def _offset(text: str, line: int) -> int:
    """Where a line begins."""
    at = 0
    for _ in range(line):
        at = text.find("\n", at) + 1
    return at


class Growing:
    """A text on its way: its nodes so far."""

    def __init__(self) -> None:
        self._settled = NOTHING

    def open_chars(self, text: str) -> int:
        """How much of it has to be read now."""
        return max(0, len(text) - len(self._settled.text))

    def nodes(self, text: str) -> list[Json]:
        """The nodes of the text as it is now."""
        if not text.startswith(self._settled.text):
            self._settled = NOTHING  # it is another
        before = self._settled
        rest = text[len(before.text) :]
        readable = clean(rest)
        shown = _shown(readable, before, growing=True)
        nodes: list[Json] = [*before.nodes, *shown.nodes]
        if readable == rest:
            self._settle(text, rest, shown)
        return nodes

    def _settle(self, text: str, rest: str, shown: _Shown) -> None:
        before, last = self._settled, rest.count("\n") - OPEN_LINES
        done = max((number for number, line in enumerate(shown.lines) if line <= last), default=0)
        if done:
            chars = len(before.text) + _offset(rest, shown.lines[done])
            nodes = (*before.nodes, *shown.nodes[:done])
            self._settled = _Settled(text[:chars], nodes, shown.rooms[done - 1], shown.defined)
