"""Tool calls that a model writes into its text, in the Hermes form ``<tool_call>{json}</tool_call>``: read as they arrive.

Servers without a tool parser pass such calls on as ordinary content. This parser divides the content into what a person
may see and what is a call. Decisions:

- ``<tool_call>`` opens a call only if the next character after white space is ``{`` or ``[``. Anything else is prose that
  mentions the tag, and stays visible, word for word. Markdown does not count: a whole example call in a code span is a call.
- JSON strings are tracked, so a tag or a brace inside an argument is only an argument. Outside a string, an end tag ends
  the call, and a new ``<tool_call>`` does too (the end tag was forgotten: whole JSON is a call, half of it is unreadable).
- One tag may hold one object, several objects, or a list of objects. A name may be ``name``, ``function`` or
  ``function.name``; the first one in the text counts, so that it is certain the moment its closing quote arrives. Arguments
  are ``arguments``, else ``parameters``; absent, null and blank ones are ``{}``; a string that holds an object is unwrapped.
  Raw control characters inside strings are escaped. Beyond that, arguments stay as the model wrote them, digit by digit.
- A text that ends before the end tag holds no call: the call was cut off, even if its JSON looks whole. So was a tag
  that ends after ``<tool`` or later. A shorter beginning (``<``, ``<t``: as in ``<table``) is text, and shown at the end.
- An end tag right after a call is dropped; elsewhere it is prose. White space around calls becomes one gap, with as many
  line breaks as the larger side had, at most two; at the edges of the visible text it is dropped.

Laws (tests hold them): the pieces, with adjacent `VisibleText` merged, are the same for every way of cutting the text;
text without calls is shown verbatim; nothing that may yet become a tag is shown; `TextCallOpened` comes once for each
named call, before its end, with the same name; time is linear in the text, however it is cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from itertools import groupby
from typing import TypeAlias, assert_never

import orjson

START_TAG = "<tool_call>"
END_TAG = "</tool_call>"


class BrokenReason(StrEnum):
    """Why there is no call although one was begun."""

    CUT_OFF = "cut_off"
    """The text ended before the end tag."""
    UNREADABLE = "unreadable"
    """The tags are there, but what they hold is no call: no JSON, no name, or arguments that are no object."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """Text for people. Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class TextCallOpened:
    """The name of a call is known; its arguments may still be on their way."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class TextCall:
    """A whole call."""

    index: int
    """From 0, in order of appearance; broken calls count."""
    name: str
    arguments: str
    """The text of a JSON object."""


@dataclass(frozen=True, slots=True)
class TextCallBroken:
    """A call was begun, and there is none; that is known."""

    index: int
    name: str | None
    raw_chars: int
    """How many characters came after the opening tag (and its white space); shared by the calls of one tag."""
    reason: BrokenReason


Piece: TypeAlias = VisibleText | TextCallOpened | TextCall | TextCallBroken


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """`pieces` with adjacent visible texts made one: the form in which two readings of a text are compared."""
    result: list[Piece] = []
    for visible, group in groupby(pieces, lambda piece: isinstance(piece, VisibleText)):
        if visible:
            result.append(VisibleText("".join(piece.text for piece in group if isinstance(piece, VisibleText))))
        else:
            result.extend(group)
    return result


_WHITE = " \t\r\n"
_ARGUMENT_KEYS = ("arguments", "parameters")
_UNMISTAKABLE = len("<tool")
_MAX_UNWRAPPED = 3
"""How often arguments may be encoded as a string inside a string."""

_TAG = re.compile(r"</?tool_call>")
_SPACES = re.compile(r"[ \t\r\n]*+")
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_NO_TAG = r"<(?=[^t/]|t[^o]|/[^t])"
_SHALLOW = re.compile(rf'(?:[^"{{}}\[\],:<]++|{_NO_TAG})*+')
# To the next bracket, tag or unfinished string. Whole strings and whole innermost brackets are passed in one go.
_FLAT = rf'(?:[^"{{}}\[\]<]++|{_NO_TAG}|"[^"\\]*+(?:\\.[^"\\]*+)*+")'
_DEEP = re.compile(rf"(?:{_FLAT}|\{{{_FLAT}*+\}}|\[{_FLAT}*+\])*+", re.DOTALL)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    assert found is not None, "the pattern matches the empty string"
    return found.end()


def _held_from(text: str, start: int) -> int:
    """Where the beginning of a tag starts that `text` may end with; its length if it ends with none."""
    at = text.rfind("<", max(start, len(text) - len(END_TAG) + 1))
    if at >= 0 and (START_TAG.startswith(text[at:]) or END_TAG.startswith(text[at:])):
        return at
    return len(text)


class _Kind(Enum):
    LIST = auto()
    CALL = auto()
    FUNCTION = auto()


@dataclass(slots=True)
class _Draft:
    """One call as far as it has come. Positions count from the beginning of the tag's body."""

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
    """Follows the JSON inside a tag just closely enough to know names, argument positions, and where it ends."""

    __slots__ = (
        "_captured",
        "_deep",
        "_frames",
        "_garbage",
        "_in_string",
        "_next_index",
        "_origin",
        "_starved",
        "_value_at",
        "drafts",
        "length",
        "named",
        "raw",
        "tag",
        "values",
    )

    def __init__(self, first_index: int) -> None:
        self.drafts: list[_Draft] = []
        self.named: list[_Draft] = []
        """Calls whose name became known in the latest `feed`."""
        self.values: list[tuple[int, int, int]] = []
        """Begin and end of each whole value, and how many drafts there were at its end."""
        self.length = 0
        self.tag = ""
        """The tag that ended the body, once it is there."""
        self._next_index = first_index
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
        """Read `text` from `start`. Returns where reading stopped: before a tag, or before an end that more text decides."""
        self.named = []
        self._origin = self.length - start
        self._starved = False
        at, size = start, len(text)
        while at < size and not self.tag and not self._starved:
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
        return at

    def takes(self, text: str) -> bool:
        """The short way for most feeds of a long argument: all of `text` is inside a string. Returns whether it is."""
        if not self._in_string or self._captured is not None or '"' in text or "\\" in text:
            return False
        self.raw.append(text)
        self.length += len(text)
        return True

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
            value, self._captured = _decoded_string(f'"{"".join(self._captured)}"'), None
            self._take_string(self._frames[-1], value)
        return end + 1

    def _take_string(self, frame: _Frame, value: str) -> None:
        if not frame.in_value:
            frame.key = value
        elif frame.draft is not None and value.strip():
            frame.draft.name = value.strip()
            self.named.append(frame.draft)

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
                return self._quote_or_tag(text, at)
            at += 1
        self._deep = deep
        return at

    def _quote_or_tag(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._in_string = True
            return at + 1
        for tag in (END_TAG, START_TAG):
            if text.startswith(tag, at):
                self.tag = tag
                return at
        if _held_from(text, at) == at:
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
                return self._quote_or_tag(text, at)
            case "<":
                return self._quote_or_tag(text, at)
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
        return at + 1

    def _is_wanted(self, frame: _Frame) -> bool:
        """Whether a string that begins here is a key, or the name."""
        if frame.draft is None or not frame.in_value:
            return frame.draft is not None
        return frame.draft.name is None and (
            frame.key == "name" or (frame.key == "function" and frame.kind is _Kind.CALL)
        )

    def _end_value(self, frame: _Frame, at: int) -> None:
        if frame.draft is not None and frame.in_value and frame.key in _ARGUMENT_KEYS:
            frame.draft.arguments.setdefault(frame.key, (frame.value_at, self._origin + at))
        frame.in_value, frame.key = False, ""

    def _open(self, frame: _Frame | None, char: str) -> None:
        if char == "{" and (frame is None or frame.kind is _Kind.LIST):
            draft = _Draft(self._next_index)
            self._next_index += 1
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
            found = _TAG.search(text, at)
            if found is not None:
                self.tag = found.group()
                return found.start()
            held = _held_from(text, at)
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
            at = self._quote_or_tag(text, at)
            if self.tag or self._starved:
                return at
        self._garbage = True
        return at


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _parsed(text: str) -> object:
    """The value of a JSON text. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:  # lone surrogates in escapes and deep nesting are beyond orjson, not beyond JSON
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _escaped(text: str) -> str:
    """`text` with the raw control characters inside its strings escaped."""
    return _STRING.sub(lambda found: _CONTROL.sub(lambda char: f"\\u{ord(char[0]):04x}", found[0]), text)


def _decoded_string(text: str) -> str:
    """The value of a JSON string; empty if it is none."""
    try:
        value = _parsed(_escaped(text))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _read_json(text: str) -> tuple[str, object]:
    """The text of a JSON value, repaired if it must be, and the value. Raises ValueError."""
    try:
        return text, _parsed(text)
    except ValueError:
        repaired = _escaped(text)
        if repaired == text:
            raise
        return repaired, _parsed(repaired)


def _object_text(text: str) -> str:
    """The text of the JSON object that arguments written as `text` mean. Raises ValueError if they mean none."""
    for _ in range(_MAX_UNWRAPPED):
        text = text.strip()
        if not text:
            return "{}"
        repaired, value = _read_json(text)
        if value is None:
            return "{}"
        if isinstance(value, dict):
            return repaired
        if not isinstance(value, str):
            break
        text = value
    raise ValueError("arguments are not an object")


def _is_calls(value: object) -> bool:
    """Whether a value is an object or a list of objects."""
    if isinstance(value, list):
        return all(isinstance(each, dict) for each in value)  # pyright: ignore[reportUnknownVariableType] - any JSON
    return isinstance(value, dict)


def _settled(body: _Body) -> list[Piece]:
    """The calls of a body that a tag has ended, in order, as calls or as broken."""
    raw = "".join(body.raw)
    readable = 0  # how many drafts, from the first, lie in values that are JSON
    if body.well_ended:
        for begin, end, drafts in body.values:
            try:
                if not _is_calls(_read_json(raw[begin:end])[1]):
                    break
            except ValueError:
                break
            readable = drafts
    pieces: list[Piece] = []
    for number, draft in enumerate(body.drafts):
        arguments: str | None = None
        if number < readable and draft.name is not None:
            spans = [draft.arguments[key] for key in _ARGUMENT_KEYS if key in draft.arguments]
            try:
                arguments = _object_text(raw[slice(*spans[0])]) if spans else "{}"
            except ValueError:
                arguments = None
        if draft.name is None or arguments is None:
            pieces.append(TextCallBroken(draft.index, draft.name, body.length, BrokenReason.UNREADABLE))
        else:
            pieces.append(TextCall(draft.index, draft.name, arguments))
    return pieces


class _Mode(Enum):
    TEXT = auto()
    TAG = auto()
    """An opening tag came, and white space at most: call or mention?"""
    BODY = auto()
    FINISHED = auto()


def _gap(before: str, after: str) -> str:
    """What stands between two visible texts for the white space that a call had on its two sides."""
    breaks = min(2, max(before.count("\n"), after.count("\n")))
    if breaks:
        return "\n" * breaks + (after.rpartition("\n")[2] if "\n" in after else "")
    return " " if before or after else ""


class TextCallParser:
    """Divides the content of one model reply into visible text and calls. See the module's text for the rules."""

    __slots__ = (
        "_after_call",
        "_before",
        "_body",
        "_calls",
        "_mode",
        "_pending",
        "_shown",
        "_space",
        "_tag_space",
    )

    def __init__(self) -> None:
        self._mode = _Mode.TEXT
        self._pending = ""
        """The end of the text so far, if more text must decide what it is: shorter than a tag."""
        self._space: list[str] = []
        """White space at the end of the text so far: shown with the text after it, or part of a gap."""
        self._tag_space: list[str] = []
        self._before = ""
        self._after_call = False
        """Only white space came since the last call."""
        self._shown = False
        self._body = _Body(0)
        self._calls = 0

    @property
    def inside_call(self) -> bool:
        """Whether a call has begun and not ended yet."""
        return self._mode is _Mode.BODY

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text`, the next part of the content, completes."""
        out: list[Piece] = []
        if self._pending:
            text, self._pending = self._pending + text, ""
        elif self._mode is _Mode.BODY and self._body.takes(text):
            return out
        at, size = 0, len(text)
        while at < size:
            match self._mode:
                case _Mode.TEXT:
                    at = self._read_text(text, at, out)
                case _Mode.TAG:
                    at = self._read_after_tag(text, at, out)
                case _Mode.BODY:
                    at = self._read_body(text, at, out)
                case _Mode.FINISHED:
                    raise RuntimeError("feed() after finish(): a reply has one TextCallParser")
                case _:
                    assert_never(self._mode)
        return out if len(out) < 2 else merged(out)

    def finish(self) -> list[Piece]:
        """The content is over: what is still open is decided. A second call gives nothing."""
        out: list[Piece] = []
        pending, self._pending = self._pending, ""
        match self._mode:
            case _Mode.TEXT:
                if len(pending) >= _UNMISTAKABLE and START_TAG.startswith(pending):
                    self._leave_gap()
                    out.append(TextCallBroken(self._calls, None, 0, BrokenReason.CUT_OFF))
                elif len(pending) <= _UNMISTAKABLE:
                    self._show(pending, out)
                if self._space and not self._after_call:
                    self._emit("".join(self._space), out)
            case _Mode.TAG:
                out.append(TextCallBroken(self._calls, None, 0, BrokenReason.CUT_OFF))
            case _Mode.BODY:
                length = self._body.length + len(pending)
                out.extend(
                    TextCallBroken(draft.index, draft.name, length, BrokenReason.CUT_OFF)
                    for draft in self._body.drafts or [_Draft(self._calls)]
                )
            case _Mode.FINISHED:
                pass
            case _:
                assert_never(self._mode)
        self._mode = _Mode.FINISHED
        return merged(out)

    def _read_text(self, text: str, at: int, out: list[Piece]) -> int:
        if text.find("<", at) < 0:
            self._show(text[at:], out)
            return len(text)
        found = _TAG.search(text, at)
        if found is None:
            held = _held_from(text, at)
            self._show(text[at:held], out)
            self._pending = text[held:]
            return len(text)
        self._show(text[at : found.start()], out)
        if found.group() == START_TAG:
            self._mode, self._tag_space = _Mode.TAG, []
        elif not self._after_call:
            self._show(END_TAG, out)
        return found.end()

    def _read_after_tag(self, text: str, at: int, out: list[Piece]) -> int:
        end = _end_of(_SPACES, text, at)
        self._tag_space.append(text[at:end])
        if end == len(text):
            return end
        if text[end] in "{[":
            self._leave_gap()
            self._body, self._mode = _Body(self._calls), _Mode.BODY
        else:
            self._show(START_TAG + "".join(self._tag_space), out)
            self._mode = _Mode.TEXT
        return end

    def _read_body(self, text: str, at: int, out: list[Piece]) -> int:
        body = self._body
        at = body.feed(text, at)
        for draft in body.named:
            assert draft.name is not None
            out.append(TextCallOpened(draft.index, draft.name))
        if not body.tag:
            self._pending = text[at:]
            return len(text)
        settled = _settled(body) or [TextCallBroken(self._calls, None, body.length, BrokenReason.UNREADABLE)]
        out.extend(settled)
        self._calls += len(settled)
        self._mode, self._tag_space = (_Mode.TEXT if body.tag == END_TAG else _Mode.TAG), []
        return at + len(body.tag)

    def _leave_gap(self) -> None:
        """A call begins here: the white space before it is no longer simply text."""
        if not self._after_call:
            self._before, self._after_call = "".join(self._space), True
        self._space = []

    def _show(self, text: str, out: list[Piece]) -> None:
        core = text.rstrip(_WHITE)
        if not core:
            if text:
                self._space.append(text)
            return
        if self._after_call:
            rest = core.lstrip(_WHITE)
            after = "".join(self._space) + core[: len(core) - len(rest)]
            shown = (_gap(self._before, after) if self._shown else "") + rest
            self._after_call = False
        else:
            shown = "".join(self._space) + core if self._space else core
        if self._space or len(core) < len(text):
            self._space = [text[len(core) :]]
        self._emit(shown, out)

    def _emit(self, text: str, out: list[Piece]) -> None:
        self._shown = True
        out.append(VisibleText(text))
