"""Calls that are written as JSON objects with a name and arguments: followed as they arrive, so that a name is known early.

- JSON strings are tracked, so a mark or a brace inside an argument is only an argument. Outside a string, a mark ends the body.
- One body may hold one object, several objects, or a list of objects. A name may be ``name``, ``tool_name``, ``function`` or
  ``function.name``; the first one in the text counts, so that it is certain the moment its closing quote arrives. Arguments
  are ``arguments``, else ``parameters``; absent, null and blank ones are ``{}``; a string that holds an object is unwrapped.
  Raw control characters inside strings are escaped. Beyond that, arguments stay as the model wrote them, digit by digit.
- A body that the end of the text ends is whole if its JSON is: some servers swallow the mark behind it.
"""

from __future__ import annotations

import re
from dataclasses import field
from enum import Enum, auto

from agent_core.model.families.family import Calls
from agent_core.model.families.grammar.marks import Marks, marks
from agent_core.model.families.grammar.notation import NotReadable, read_value
from agent_core.model.families.grammar.steps import END, Grammar
from agent_core.model.families.grammar.values import decoded_string, object_of, object_text, read_json
from agent_core.model.families.pieces import BrokenReason, Piece, TextCall, TextCallBroken, TextCallOpened
from agent_core.records import dataclass

_ARGUMENT_KEYS = ("arguments", "parameters")
_NAME_KEYS = ("name", "tool_name")
_SPACES = re.compile(r"[ \t\r\n]*+")
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SHALLOW = re.compile(r'[^"{}\[\],:<]*+')
# To the next bracket, mark or unfinished string. Whole strings and whole innermost brackets are passed in one go.
_FLAT = r'(?:[^"{}\[\]<]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")'
_DEEP = re.compile(rf"(?:{_FLAT}|\{{{_FLAT}*+\}}|\[{_FLAT}*+\])*+", re.DOTALL)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    assert found is not None, "the pattern matches the empty string"
    return found.end()


class _Kind(Enum):
    LIST = auto()
    CALL = auto()
    FUNCTION = auto()


@dataclass(slots=True)
class _Draft:
    """One call as far as it has come. Positions count from the beginning of the body."""

    index: int
    name: str | None = None
    arguments: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(slots=True)
class _Frame:
    """An open bracket whose inside is of interest: a list of calls, a call, or its `function`."""

    kind: _Kind
    draft: _Draft | None = None
    key: str = ""
    in_value: bool = False
    value_at: int = 0


class _Body:
    """Follows the JSON just closely enough to know names, argument positions, and where it ends."""

    __slots__ = (
        "_calls",
        "_captured",
        "_deep",
        "_frames",
        "_garbage",
        "_in_string",
        "_marks",
        "_once",
        "_origin",
        "_starved",
        "_stays",
        "_value_at",
        "done",
        "drafts",
        "found",
        "length",
        "raw",
        "values",
    )

    def __init__(self, calls: Calls, stops: Marks, *, once: bool, stays: str) -> None:
        self._calls = calls
        self._stays = stays
        """A mark that ends the body, and does not belong to it."""
        self._marks = stops
        self._once = once
        """One value, and nothing behind it belongs to it."""
        self.done = False
        self.drafts: list[_Draft] = []
        self.values: list[tuple[int, int, int]] = []
        """Begin and end of each whole value, and how many drafts there were at its end."""
        self.length = 0
        self.found = END
        """The mark that ended the body, once it is there."""
        self.raw: list[str] = []
        self._frames: list[_Frame] = []
        self._deep = 0
        self._in_string = False
        self._garbage = False
        self._starved = False
        self._captured: list[str] | None = None
        """The pieces of the string that is being read, if it is a key or a name."""
        self._origin = 0
        self._value_at = 0

    @property
    def well_ended(self) -> bool:
        """Whether nothing but whole values came."""
        return not (self._garbage or self._frames)

    def feed(self, text: str, start: int) -> int:
        if self._in_string and self._captured is None and start == 0 and '"' not in text and "\\" not in text:
            self.raw.append(text)  # the short way for most feeds of a long argument
            self.length += len(text)
            return len(text)
        self._origin = self.length - start
        self._starved = False
        at, size = start, len(text)
        while at < size and not self.done and not self._starved:
            if self._in_string:
                at = self._read_string(text, at)
            elif self._deep:
                at = self._skip(text, at)
            elif self._frames:
                at = self._read_frame(text, at)
            else:
                at = self._read_between(text, at)
        if at > start:
            self.raw.append(text if start == 0 and at == size else text[start:at])
            self.length += at - start
        return at if self.found == self._stays else at + len(self.found)

    def end(self, rest: str) -> int:
        self.length += len(rest)
        return len(rest)

    def _read_string(self, text: str, at: int) -> int:
        end = _end_of(_IN_STRING, text, at)
        if self._captured is not None:
            self._captured.append(text[at:end])
        if end == len(text):
            return end
        if text[end] == "\\":  # half an escape
            self._starved = True
            return end
        self._in_string = False
        if self._captured is not None:
            value, self._captured = decoded_string(f'"{"".join(self._captured)}"'), None
            self._take_string(self._frames[-1], value)
        return end + 1

    def _take_string(self, frame: _Frame, value: str) -> None:
        if not frame.in_value:
            frame.key = value
        elif frame.draft is not None and value.strip():
            frame.draft.name = value.strip()
            self._calls.found.append(TextCallOpened(frame.draft.index, frame.draft.name))

    def _skip(self, text: str, at: int) -> int:
        """Pass over what is inside arguments: only brackets and strings matter there."""
        size, deep = len(text), self._deep
        while deep:
            at = _end_of(_DEEP, text, at)
            if at == size:
                break
            char = text[at]
            if char in "{[":
                deep += 1
            elif char in "}]":
                deep -= 1
            else:
                self._deep = deep
                return self._quote_or_mark(text, at)
            at += 1
        self._deep = deep
        return at

    def _quote_or_mark(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._in_string = True
            return at + 1
        found = self._marks.pattern.match(text, at)
        if found is not None:
            self.found, self.done = found.group(), True
            return at
        if text[at:] in self._marks.prefixes:
            self._starved = True
            return at
        return at + 1

    def _read_frame(self, text: str, at: int) -> int:
        at = _end_of(_SHALLOW, text, at)
        if at == len(text):
            return at
        frame, char = self._frames[-1], text[at]
        match char:
            case '"':
                self._captured = [] if self._is_wanted(frame) else None
                return self._quote_or_mark(text, at)
            case "<":
                return self._quote_or_mark(text, at)
            case ":":
                if not frame.in_value:
                    frame.in_value, frame.value_at = True, self._origin + at + 1
            case ",":
                self._end_value(frame, at)
            case "{" | "[":
                self._open(frame, char)
            case _:
                self._end_value(frame, at)
                self._frames.pop()
                if not self._frames:
                    self.values.append((self._value_at, self._origin + at + 1, len(self.drafts)))
                    self.done = self._once
        return at + 1

    def _is_wanted(self, frame: _Frame) -> bool:
        """Whether a string that begins here is a key, or the name."""
        if frame.draft is None or not frame.in_value:
            return frame.draft is not None
        return frame.draft.name is None and (
            frame.key in _NAME_KEYS or (frame.key == "function" and frame.kind is _Kind.CALL)
        )

    def _end_value(self, frame: _Frame, at: int) -> None:
        if frame.draft is not None and frame.in_value and frame.key in _ARGUMENT_KEYS:
            frame.draft.arguments.setdefault(frame.key, (frame.value_at, self._origin + at))
        frame.in_value, frame.key = False, ""

    def _open(self, frame: _Frame | None, char: str) -> None:
        if char == "{" and (frame is None or frame.kind is _Kind.LIST):
            draft = _Draft(self._calls.index + len(self.drafts))
            self.drafts.append(draft)
            self._frames.append(_Frame(_Kind.CALL, draft))
        elif frame is None:
            self._frames.append(_Frame(_Kind.LIST))
        elif char == "{" and frame.kind is _Kind.CALL and frame.in_value and frame.key == "function":
            self._frames.append(_Frame(_Kind.FUNCTION, frame.draft))
        else:
            self._deep = 1

    def _read_between(self, text: str, at: int) -> int:
        """Outside every bracket: before the first value, between two, or after the last."""
        if self._garbage:
            found = self._marks.pattern.search(text, at)
            if found is not None:
                self.found, self.done = found.group(), True
                return found.start()
            held = self._marks.held_from(text, at)
            self._starved = held < len(text)
            return held
        at = _end_of(_SPACES, text, at)
        if at == len(text):
            return at
        char = text[at]
        if char in "{[":
            self._value_at = self._origin + at
            self._open(None, char)
            return at + 1
        if char == "<":
            at = self._quote_or_mark(text, at)
            if self.done or self._starved:
                return at
        self._garbage = True
        return at

    def settled(self) -> list[Piece]:
        """The calls of the body, in order, as calls or as broken."""
        raw = "".join(self.raw)
        over = self.found == END and not self.done
        reason = BrokenReason.CUT_OFF if over and not self.well_ended else BrokenReason.UNREADABLE
        readable = 0  # how many drafts, from the first, lie in values that are JSON
        if self.well_ended:
            for begin, end, drafts in self.values:
                try:
                    if not _is_calls(read_json(raw[begin:end])[1]):
                        break
                except ValueError:
                    break
                readable = drafts
        pieces: list[Piece] = [self._call(draft, raw, at < readable, reason) for at, draft in enumerate(self.drafts)]
        if not pieces or not (self.named or over):
            return self._as_python(raw) or pieces or [TextCallBroken(self._calls.index, None, self.length, reason)]
        return pieces or [TextCallBroken(self._calls.index, None, self.length, reason)]

    @property
    def named(self) -> bool:
        return any(draft.name is not None for draft in self.drafts)

    def _as_python(self, raw: str) -> list[Piece]:
        """Some small models write the objects as Python does, with single quotation marks. Nothing of such a call is known early."""
        try:
            value = read_value(raw.strip())
        except NotReadable:
            return []
        pieces: list[Piece] = []
        for number, each in enumerate(value if isinstance(value, list) else [value]):
            name = each.get("name") if isinstance(each, dict) else None
            given = each.get("arguments", each.get("parameters")) if isinstance(each, dict) else None
            if not isinstance(name, str) or not name or not isinstance(given, dict | None):
                return []
            index = self._calls.index + number
            pieces += (TextCallOpened(index, name), TextCall(index, name, object_of(given or {})))
        return pieces

    def _call(self, draft: _Draft, raw: str, readable: bool, reason: BrokenReason) -> TextCall | TextCallBroken:
        spans = [draft.arguments[key] for key in _ARGUMENT_KEYS if key in draft.arguments]
        written = raw[slice(*spans[0])] if spans else ""
        if readable and draft.name is not None:
            try:
                return TextCall(draft.index, draft.name, object_text(written))
            except ValueError:
                pass
        kept = (written or raw) if reason is BrokenReason.UNREADABLE else ""
        return TextCallBroken(draft.index, draft.name, self.length, reason, kept.strip())


def _is_calls(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, dict) for each in value)  # pyright: ignore[reportUnknownVariableType] - any JSON
    return isinstance(value, dict)


def json_calls(calls: Calls, *stops: str, once: bool = False, stays: str = "\0") -> Grammar:
    """All calls of a body that one of `stops` ends, or `stays`, which is not read; with `once`, the end of its first value does."""
    calls.committed = True
    body = _Body(calls, marks(*stops, stays), once=once, stays=stays)
    yield body
    pieces = body.settled()
    calls.found += pieces
    calls.any = True
    calls.index += sum(isinstance(piece, TextCall | TextCallBroken) for piece in pieces)
