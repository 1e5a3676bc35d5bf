"""Standard output and standard error: whatever is written there is seen, and does nothing to a terminal.

All that the program prints goes through here, whichever command and library prints it: text of people, models, pages, files, errors. What the
program itself does to a terminal (a line that is replaced, dimmed text) is said so, by `draw`. It is the same if the output is a pipe, which may end at a
terminal as well. Lines of the log have been cleaned before (`gateway.observe.logging`); prompts have an output of their own.
"""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOWrapper
from typing import TextIO, cast

from typing_extensions import override

from agent_core.text.shown import harmless

WIDTH = 80
"""Columns, where nobody says how many there are."""


class Screen(TextIOWrapper):
    """Text on its way to somebody's eyes. A character that cannot be written becomes a question mark."""

    def __init__(self, stream: TextIOWrapper) -> None:
        known = codecs.lookup(stream.encoding).name
        # A library that finds ASCII goes past us to the bytes; so we say UTF-8, and write nothing else than ASCII.
        super().__init__(
            stream.buffer, "utf-8" if known == "ascii" else known, "replace",
            line_buffering=stream.line_buffering, write_through=stream.write_through,
        )  # fmt: skip
        self._ascii = known == "ascii"
        self._under = stream
        """Kept: it would close what is below."""

    @override
    def write(self, text: str, /) -> int:
        self.draw(harmless(text))
        return len(text)

    def draw(self, sequence: str) -> None:
        """Write something that is to steer the terminal."""
        super().write(sequence.encode("ascii", "replace").decode() if self._ascii else sequence)


def draw(stream: TextIO, sequence: str) -> None:
    """Write a sequence of ours, which is to steer the terminal."""
    if isinstance(stream, Screen):
        stream.draw(sequence)
    else:
        stream.write(sequence)


def put_up() -> None:
    """From now on everything that is printed goes through screens."""
    sys.stdout, sys.stderr = _over(sys.stdout), _over(sys.stderr)


def _over(stream: TextIO) -> TextIO:
    if not isinstance(stream, TextIOWrapper) or isinstance(stream, Screen):
        return stream
    stream.flush()
    return Screen(cast("TextIOWrapper", stream))


def typed(words: str) -> str:
    """What somebody typed, as text that can be sent. Bytes that the terminal's encoding did not know are read as UTF-8."""
    return words.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def width(stream: TextIO) -> int:
    """How many columns a terminal has now."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    except (OSError, ValueError):
        return WIDTH
