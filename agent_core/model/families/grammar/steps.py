"""The steps of which the grammar of a family is made, each of which can stop anywhere in the text and go on.

A grammar is a generator: it asks for one thing after the other (`yield from until("</x>")`), and does not know how the text is cut.
What a step finds is a function of the text alone, so every way of cutting gives the same. Each character is looked at once, but
for the few at the end that may become a mark. `END` stands for the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Protocol, TypeAlias

from agent_core.model.families.grammar.marks import Marks, marks

END = ""
"""In place of a mark: the text is over."""
NAME_CHARS = 128
_SPACES = re.compile(r"[ \t\r\n]*+")
_WORD = re.compile(r"[\w.:/-]*+")


class Step(Protocol):
    """One thing that a grammar asks for."""

    done: bool

    def feed(self, text: str, start: int) -> int:
        """Read from `start`; where reading stopped: before what is not decided, or at the end of the thing (`done`)."""
        ...

    def end(self, rest: str) -> int:
        """The text is over, and `rest` was not decided: how much of it belongs to this."""
        ...


Grammar: TypeAlias = Generator[Step, None, None]


class NotACall(Exception):
    """What looked like the beginning of a call is only text. Raised before a call is named."""


class _Until:
    __slots__ = ("_marks", "done", "found", "parts")

    def __init__(self, wanted: Marks) -> None:
        self._marks = wanted
        self.parts: list[str] = []
        self.found = END
        self.done = False

    def feed(self, text: str, start: int) -> int:
        match = self._marks.pattern.search(text, start)
        if match is None:
            stop = self._marks.held_from(text, start)
            self.parts.append(text[start:stop])
            return stop
        if self._marks.may_grow(text, match.start()):  # a longer one may come
            self.parts.append(text[start : match.start()])
            return match.start()
        self.parts.append(text[start : match.start()])
        self.found = match.group()
        self.done = True
        return match.end()

    def end(self, rest: str) -> int:
        match = self._marks.pattern.match(rest)
        self.found = match.group() if match else END
        self.parts.append("" if match else rest)
        return match.end() if match else len(rest)


def until(*literals: str) -> Generator[Step, None, tuple[str, str]]:
    """The text before the first of these marks, and the mark; `END` if none comes."""
    step = _Until(marks(*literals))
    yield step
    return "".join(step.parts), step.found


class _Spaces:
    __slots__ = ("done", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: list[str] = []

    def feed(self, text: str, start: int) -> int:
        found = _SPACES.match(text, start)
        stop = found.end() if found else start
        self.parts.append(text[start:stop])
        self.done = stop < len(text)
        return stop

    def end(self, rest: str) -> int:
        self.parts.append(rest)
        return len(rest)


def spaces() -> Generator[Step, None, str]:
    """White space, up to what is none."""
    step = _Spaces()
    yield step
    return "".join(step.parts)


class _OneOf:
    __slots__ = ("_marks", "_take", "done", "ended", "found")

    def __init__(self, wanted: Marks, *, take: bool) -> None:
        self._marks = wanted
        self._take = take
        self.found = ""
        self.done = False
        self.ended = False

    def feed(self, text: str, start: int) -> int:
        if start == len(text):
            return start
        match = self._marks.pattern.match(text, start)
        if self._marks.may_grow(text, start):
            return start
        self.done = True
        if match is None:
            return start
        self.found = match.group()
        return match.end() if self._take else start

    def end(self, rest: str) -> int:
        found = self._marks.pattern.match(rest)
        self.ended = found is None
        self.found = found.group() if found else ""
        return found.end() if found and self._take else len(rest) if self.ended and self._take else 0


def one_of(*literals: str, take: bool = True) -> Generator[Step, None, str | None]:
    """Which of these literals comes right here; `END` at the end of the text, None if something else comes."""
    step = _OneOf(marks(*literals), take=take)
    yield step
    return END if step.ended else step.found or None


class _Word:
    __slots__ = ("_chars", "done", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: list[str] = []
        self._chars = 0

    def feed(self, text: str, start: int) -> int:
        found = _WORD.match(text, start)
        stop = found.end() if found else start
        self._chars += stop - start
        self.parts.append(text[start:stop])
        self.done = stop < len(text) or self._chars > NAME_CHARS
        return stop

    def end(self, rest: str) -> int:
        self.parts.append(rest)
        return len(rest)


def word() -> Generator[Step, None, str]:
    """A name, as tools have them; empty if none comes here or it is too long to be one."""
    step = _Word()
    yield step
    name = "".join(step.parts)
    return name if len(name) <= NAME_CHARS else ""


class _Ahead:
    __slots__ = ("_count", "_stop", "done", "text")

    def __init__(self, count: int, stop: re.Pattern[str] | None) -> None:
        self._count = count
        self._stop = stop
        self.text = ""
        self.done = False

    def feed(self, text: str, start: int) -> int:
        found = self._stop.search(text, start, start + self._count) if self._stop else None
        if found is not None:
            self.text, self.done = text[start : found.end()], True
        elif len(text) - start >= self._count:
            self.text, self.done = text[start : start + self._count], True
        return start

    def end(self, rest: str) -> int:
        self.text = rest
        return 0


def ahead(count: int, stop: re.Pattern[str] | None = None) -> Generator[Step, None, str]:
    """The next characters, up to what `stop` finds, which stay where they are; fewer at the end of the text."""
    step = _Ahead(count, stop)
    yield step
    return step.text


_STRING_REST = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_STRUCTURE = re.compile(r'(?:[^"{}\[\]<]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)


class _JsonValue:
    """Follows brackets and strings: where a JSON object or list ends, without judging what is in it."""

    __slots__ = ("_deep", "_in_string", "_marks", "done", "found", "parts", "whole")

    def __init__(self, stops: Marks, deep: int) -> None:
        self._marks = stops
        self._deep = deep
        self._in_string = False
        self.parts: list[str] = []
        self.found = END
        self.whole = False
        self.done = False

    def feed(self, text: str, start: int) -> int:
        at, size = start, len(text)
        stop = size
        while at < size and not self.done:
            if self._in_string:
                found = _STRING_REST.match(text, at)
                at = found.end() if found else at
                if at == size:
                    break
                if text[at] == "\\":  # half an escape
                    stop = at
                    break
                self._in_string = False
                at += 1
                continue
            found = _STRUCTURE.match(text, at)
            at = found.end() if found else at
            if at == size:
                break
            char = text[at]
            if char == '"':
                self._in_string = True
            elif char in "{[":
                self._deep += 1
            elif char in "}]":
                self._deep -= 1
                if self._deep <= 0:
                    self.whole = self.done = True
                    stop = at + 1
                    break
            elif self._stopped(text, at):
                stop = at
                break
            at += 1
        self.parts.append(text[start:stop])
        return stop + len(self.found) if self.done and self.found else stop

    def _stopped(self, text: str, at: int) -> bool:
        """Whether a mark stands at `at`, or may come to stand there."""
        found = self._marks.pattern.match(text, at)
        if found is not None:
            self.found, self.done = found.group(), True
            return True
        return text[at:] in self._marks.prefixes

    def end(self, rest: str) -> int:
        self.parts.append(rest)
        return len(rest)


def json_value(*stops: str, deep: int = 0) -> Generator[Step, None, tuple[str, bool, str]]:
    """A JSON object or list that begins here, or `deep` brackets before: its text, whether it is whole, and the mark outside of
    strings that ended half of one."""
    step = _JsonValue(marks(*stops), deep)
    yield step
    return "".join(step.parts), step.whole, step.found
