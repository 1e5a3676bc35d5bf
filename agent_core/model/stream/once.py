"""A reply that a server sends twice is said once. Pure, incremental.

Some servers end a stream with the whole reply (as ``message``, or as one more ``delta``), and some send in each ``delta`` all that was
said so far. What counts as a repetition:

- a whole ``message`` that begins with all that came: only what it adds is new. One that says something else adds nothing: the deltas
  were the reply;
- a delta beside the finish reason that begins with all that came, if that is at least `LAST_CHARS`;
- any other delta that begins with all that came, if that is at least `SURE_CHARS` in two pieces: no model says so much again in one token;
- deltas from the first on of which each begins with the one before. That is decided once one of them has three different characters and
  a letter (so "ha", "haha" and "=", "==" are words), until when they wait; a reply of two such deltas counts if the first has
  four characters and a letter;
- a piece of a call's arguments that begins with all that came, where no object can stand: the object once more, or all of it so far.

Of what came only a length and a checksum are kept.
"""

from __future__ import annotations

import zlib
from enum import Enum, auto

LAST_CHARS = 8
SURE_CHARS = 24
SURE_FIRST_CHARS = 4
MOST_WAITING = 64
_BEFORE_OBJECTS = frozenset(":,[")
"""Behind these an object may stand in another one."""


class _Mode(Enum):
    FIRST = auto()
    """Nothing has come."""
    GROWING = auto()
    """Each piece but the first began with the one before. All but the first wait."""
    PIECES = auto()
    WHOLES = auto()
    """Each piece is all that was said so far."""


class SaidOnce:
    """One text of a reply. `feed` gives what is new in a piece."""

    __slots__ = ("_check", "_latest", "_length", "_mode", "_pieces", "_waiting")

    def __init__(self) -> None:
        self._mode = _Mode.FIRST
        self._latest = ""
        self._waiting: tuple[str, ...] = ()
        self._length = 0
        self._pieces = 0
        self._check = 0

    @property
    def begun(self) -> bool:
        """Something has come."""
        return self._mode is not _Mode.FIRST

    def feed(self, text: str) -> str:
        """A delta has come."""
        match self._mode:
            case _Mode.PIECES:
                again = len(text) >= self._length >= SURE_CHARS and self._pieces > 1 and self._begins_so(text)
                return self._said(text[self._length :] if again else text)
            case _Mode.WHOLES:
                return self._said(text[self._length :] if self._begins_so(text) else text)
            case _Mode.FIRST:
                self._mode, self._latest = _Mode.GROWING, text
                return self._said(text)
            case _Mode.GROWING:
                return self._grown(text)

    @property
    def room(self) -> int:
        """A delta that is shorter than this is new; 0 if each has to be looked at by itself."""
        return self._length if self._mode is _Mode.PIECES else 0

    def pieces(self, text: str, count: int) -> None:
        """Deltas have come, so many, of which each has `room`."""
        self._said(text)
        self._pieces += count - 1

    def _grown(self, text: str) -> str:
        if len(text) <= len(self._latest) or not text.startswith(self._latest) or len(self._waiting) > MOST_WAITING:
            return self._as_pieces() + self.feed(text)
        if self._waiting and _telling(text):
            self._mode, self._waiting = _Mode.WHOLES, ()
            return self._said(text[self._length :])
        self._waiting += (text,)
        self._latest = text
        return ""

    def _as_pieces(self) -> str:
        """They only looked alike."""
        waiting, self._waiting = self._waiting, ()
        self._mode = _Mode.PIECES
        return "".join([self._said(each) for each in waiting])

    def last(self, text: str) -> str:
        """The piece beside the finish reason."""
        if self._mode is _Mode.GROWING:
            return self.feed(text) + self.finish()
        again = self._length >= LAST_CHARS and self._begins_so(text)
        return self._said(text[self._length :] if again else text)

    def message(self, text: str) -> str:
        """The whole reply, which may be all there is, or come behind its pieces."""
        before = self.finish()
        if not self._length:
            return self._said(text)
        return before + (self._said(text[self._length :]) if self._begins_so(text) else "")

    def finish(self) -> str:
        """No further piece comes: what waited."""
        if not self._waiting:
            return ""
        length = self._length
        if length < SURE_FIRST_CHARS or not any(map(str.isalpha, self._latest[:length])):
            return self._as_pieces()
        self._mode, self._waiting = _Mode.WHOLES, ()
        return self._said(self._latest[length:])

    def _said(self, text: str) -> str:
        if text:
            self._length += len(text)
            self._pieces += 1
            self._check = zlib.crc32(text.encode("utf-8", "surrogatepass"), self._check)
        return text

    def _begins_so(self, text: str) -> bool:
        if len(text) < self._length:
            return False
        return zlib.crc32(text[: self._length].encode("utf-8", "surrogatepass")) == self._check

    def arguments(self, text: str) -> str:
        """A piece of arguments has come: what of it is new."""
        if text[0] == "{" and self._length and self._begins_so(text):
            before = text[: self._length].rstrip()
            if self._mode is _Mode.WHOLES or before[-1] not in _BEFORE_OBJECTS:
                self._mode, text = _Mode.WHOLES, text[self._length :]
        return self._said(text)


def _telling(text: str) -> bool:
    """Whether it is chance no more that a text begins like the one before."""
    return any(map(str.isalpha, text)) and (len(set(text)) >= 3 or not text.isascii())
