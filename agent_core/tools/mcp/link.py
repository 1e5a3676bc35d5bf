"""A connection to a server as its owner sees it: whether it holds, why it broke, and how much comes by it.

`Pace` is pure: how many messages a server may send that nobody asked for, as a bucket that fills with time. A server that sends more takes the loop
from every conversation, so its connection is ended.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar

from agent_core.records import dataclass
from agent_core.text.shown import harmless, middle
from agent_core.text.wellformed import storable

BURST = 2_000.0
A_SECOND = 200.0
FLOODS = "it floods: it sends more messages than anybody asked for"
LINE_CHARS = 500
LAST_LINES = 20


class Pace:
    """How fast messages may come. `took` is told each, and says whether it was one too many."""

    __slots__ = ("_at", "_room")

    def __init__(self, now: float) -> None:
        self._at = now
        self._room = BURST

    def took(self, now: float) -> bool:
        """A message came at `now` (seconds, monotonic). True: there are too many."""
        self._room = min(BURST, self._room + max(0.0, now - self._at) * A_SECOND) - 1
        self._at = now
        return self._room < 0


@dataclass(slots=True)
class OnItsWay:
    """A call, as it fares on its way to a server by HTTP."""

    taken: bool = False
    """The server has begun to answer it, or something that belongs to it."""
    why: str = ""
    """What came in place of that, in words that go on from the server's name."""

    @property
    def untaken(self) -> str:
        """Why the server cannot have begun with it; empty if it may have."""
        return "" if self.taken else self.why


ON_ITS_WAY: ContextVar[OnItsWay | None] = ContextVar("on_its_way", default=None)
"""The call for which something is sent now. The package sends in the context of whoever asked."""


class McpLink:
    """What is known of a connection."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.why = ""
        """Why it is over, in words for operators."""
        self.pid: int | None = None
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        """What the program wrote to its standard error last."""
        self.unread = 0
        """Lines of its output that were no messages."""
        self.came = 0
        """Bytes of its answers by HTTP, also of those that are not whole."""
        self.part = 0
        """Bytes of a line of a program's that is not whole yet."""
        self.refused = ""
        """What the server's HTTP side said last against us."""
        self.failed = ""
        """The same, where what was asked may have been done all the same."""
        self.left_out: list[str] = []
        """What of its list of tools is not as the protocol says, in words for operators."""
        self._closing = False

    def broke(self, why: str) -> None:
        """The server ended it, or has to be ended; the first reason counts. What follows from our own closing is none."""
        if not self._closing:
            self.why = self.why or why
            self.over.set()

    def closing(self, why: str = "") -> None:
        """We are ending it; for this reason, if there is none before it."""
        self._closing = True
        self.why = self.why or why
        self.over.set()

    def said(self, line: bytes) -> str:
        """A line of its standard error, as it can be logged."""
        text = middle(harmless(storable(line.decode("utf-8", "replace").rstrip())), LINE_CHARS)
        self.last_lines.append(text)
        return text
