"""A reply that a server sends twice is said once. Pure, incremental.

Some servers end a stream with the whole reply (as ``message``, or as one more ``delta``), and some send in each ``delta`` all that was
said so far. What counts as a repetition:

- a whole ``message`` that begins with all that came: only what it adds is new. One that says something else adds nothing: the deltas
  were the reply;
- a delta beside the finish reason that begins with all that came, if that is at least `LAST_CHARS`;
- any other delta that begins with all that came, if that is at least `SURE_CHARS` in two pieces: no model says so much again in one token;
- deltas from the first on of which each begins with the one before: that is decided by the third, so the second waits for it. A reply of
  two such deltas counts if the first has four characters and a letter (so "ha" and "haha" are two words);
- arguments of a call that are a whole object, and come a second time.

Of what came only a length and a checksum are kept.
"""

from __future__ import annotations

import zlib
from enum import Enum, auto

LAST_CHARS = 8
SURE_CHARS = 24
SURE_FIRST_CHARS = 4


class _Mode(Enum):
    FIRST = auto()
    """Nothing has come."""
    SECOND = auto()
    """One piece has come."""
    THIRD = auto()
    """The second began with the first, and waits."""
    PIECES = auto()
    WHOLES = auto()
    """Each piece is all that was said so far."""


class Once:
    """One text of a reply. `feed` gives what is new in a piece."""

    __slots__ = ("_check", "_first", "_held", "_length", "_mode", "_pieces")

    def __init__(self) -> None:
        self._mode = _Mode.FIRST
        self._first = ""
        self._held = ""
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
                if len(text) >= self._length >= SURE_CHARS and self._pieces > 1 and self._begins_so(text):
                    return self._said(text[self._length :])
                return self._said(text)
            case _Mode.WHOLES:
                return self._said(text[self._length :] if self._begins_so(text) else text)
            case _Mode.FIRST:
                self._mode, self._first = _Mode.SECOND, text
                return self._said(text)
            case _Mode.SECOND:
                if len(text) > len(self._first) and text.startswith(self._first):
                    self._mode, self._held = _Mode.THIRD, text
                    return ""
                self._mode = _Mode.PIECES
                return self.feed(text)
            case _Mode.THIRD:
                held, self._held = self._held, ""
                if text.startswith(held):
                    self._mode = _Mode.WHOLES
                    return self._said(text[self._length :])
                self._mode = _Mode.PIECES
                return self._said(held) + self.feed(text)

    def last(self, text: str) -> str:
        """The piece beside the finish reason."""
        before = self.finish()
        again = self._length >= LAST_CHARS and self._begins_so(text)
        return before + self._said(text[self._length :] if again else text)

    def message(self, text: str) -> str:
        """The whole reply, which may be all there is, or come behind its pieces."""
        before = self.finish()
        if not self._length:
            return self._said(text)
        return before + (self._said(text[self._length :]) if self._begins_so(text) else "")

    def finish(self) -> str:
        """No further piece comes: what waited."""
        held, self._held = self._held, ""
        if not held:
            return ""
        first = self._first
        self._mode = _Mode.PIECES
        whole = len(first) >= SURE_FIRST_CHARS and any(map(str.isalpha, first))
        return self._said(held[len(first) :] if whole else held)

    def _said(self, text: str) -> str:
        if text:
            self._length += len(text)
            self._pieces += 1
            self._check = zlib.crc32(text.encode("utf-8", "surrogatepass"), self._check)
        return text

    def _begins_so(self, text: str) -> bool:
        """Whether `text` begins with all that came."""
        if len(text) < self._length:
            return False
        return zlib.crc32(text[: self._length].encode("utf-8", "surrogatepass")) == self._check

    def whole_again(self, text: str) -> bool:
        """A piece of arguments has come: whether it is the object that came already, once more."""
        again = len(text) == self._length and text[0] == "{" and text[-1] == "}" and self._begins_so(text)
        if not again:
            self._said(text)
        return again
