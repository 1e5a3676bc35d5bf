"""Whether what comes next in a text is quoted: inside a code block or code span, in a quotation, behind an opening quotation mark. Pure.

What is quoted is an example, never a call or a thought. The rules are those that people see, not all of CommonMark's: a fence ends
at a fence of its kind that is as long; a code span ends with its line at the latest.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ \t]{0,12}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,4})?(`{3,}|~{3,})([^\n]*)")
_TICKS = re.compile(r"`+")
_LINE_PREFIX = 200
"""How much of a line's beginning is looked at for a fence."""
_OPENING = frozenset("“„‘‚«‹「『（")
_BOTH = frozenset("\"'")


class Quoting:
    """Follows a text. `note` only keeps it; it is looked at when somebody asks."""

    __slots__ = ("_fence", "_line", "_line_chars", "_notes", "_span", "last")

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._fence = ""
        """The fence of the code block that is open."""
        self._span = 0
        """How many backticks opened the code span that is open in this line."""
        self._line = ""
        """The beginning of the line that is open."""
        self._line_chars = 0
        self.last = ""
        """The last two characters."""

    def note(self, text: str) -> None:
        """`text` comes next."""
        self._notes.append(text)

    @property
    def quoted(self) -> bool:
        """Whether what comes next is quoted."""
        self._look()
        if self._fence or self._span or self._line.lstrip().startswith(">"):
            return True
        last = self.last[-1:]
        return (
            last in _OPENING
            if last not in _BOTH
            else self.last[:-1].isspace() or self.last[:-1] in ("", "(", "[", "{", ":", "=")
        )

    @property
    def line_begins(self) -> bool:
        """Whether only white space stands before it in its line."""
        self._look()
        return self._line_chars <= _LINE_PREFIX and not self._line.strip()

    def _look(self) -> None:
        if not self._notes:
            return
        text = "".join(self._notes)
        self._notes.clear()
        self.last = (self.last + text[-2:])[-2:]
        at = 0
        while True:
            end = text.find("\n", at)
            part = text[at:] if end < 0 else text[at:end]
            self._in_line(part)
            if end < 0:
                return
            self._end_line()
            at = end + 1

    def _in_line(self, part: str) -> None:
        if not part:
            return
        if self._line_chars < _LINE_PREFIX:
            self._line += part[: _LINE_PREFIX - self._line_chars]
        self._line_chars += len(part)
        if self._fence or "`" not in part:
            return
        for run in _TICKS.finditer(part):
            length = run.end() - run.start()
            if not self._span:
                self._span = length
            elif self._span == length:
                self._span = 0

    def _end_line(self) -> None:
        found = _FENCE.match(self._line)
        if found is not None:
            ticks, info = found[1], found[2]
            if self._fence:
                if ticks[0] == self._fence[0] and len(ticks) >= len(self._fence) and not info.strip():
                    self._fence = ""
            elif ticks[0] == "~" or "`" not in info:
                self._fence = ticks
        self._line, self._line_chars, self._span = "", 0, 0
