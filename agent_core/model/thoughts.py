"""Separates an inline ``<think>…</think>`` block at the very beginning of a reply from the reply. Pure, incremental.

Some servers have no reasoning field and put the model's reasoning into the text. Only a block that opens the reply counts;
the tag anywhere later is text. The result is the same for every way of cutting the same text.
"""

from __future__ import annotations

from enum import Enum, auto

_OPEN = "<think>"
_CLOSE = "</think>"


class _State(Enum):
    START = auto()
    THINKING = auto()
    BEHIND = auto()
    REPLY = auto()


class ThoughtSplitter:
    """Feed the text of a reply; get (reasoning, text) that is decided so far."""

    __slots__ = (
        "_held",
        "_state",
    )

    def __init__(self) -> None:
        self._state = _State.START
        self._held = ""

    def feed(self, text: str) -> tuple[str, str]:
        """The parts of `text` (and of what was held back) that are decided now."""
        if self._state is _State.REPLY:
            return "", text
        self._held += text
        reasoning = ""
        if self._state is _State.START:
            start = self._held.lstrip()
            if start.startswith(_OPEN):
                self._state = _State.THINKING
                self._held = start[len(_OPEN) :]
            elif _OPEN.startswith(start):
                return "", ""
            else:
                return "", self._release()
        if self._state is _State.THINKING:
            end = self._held.find(_CLOSE)
            if end < 0:
                keep = _tail_that_may_begin(self._held, _CLOSE)
                cut = len(self._held) - keep
                reasoning, self._held = self._held[:cut], self._held[cut:]
                return reasoning, ""
            reasoning, self._held = self._held[:end], self._held[end + len(_CLOSE) :]
            self._state = _State.BEHIND
        rest = self._held.lstrip()
        if not rest:
            self._held = ""
            return reasoning, ""
        self._held = rest
        return reasoning, self._release()

    def finish(self) -> tuple[str, str]:
        """The stream is over: what was held back."""
        held, self._held = self._held, ""
        return (held, "") if self._state is _State.THINKING else ("", held)

    def _release(self) -> str:
        self._state = _State.REPLY
        held, self._held = self._held, ""
        return held


def _tail_that_may_begin(text: str, tag: str) -> int:
    """Length of the longest end of `text` that is a beginning of `tag`."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if tag.startswith(text[-length:]):
            return length
    return 0
