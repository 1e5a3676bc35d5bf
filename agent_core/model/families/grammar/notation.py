"""Values in the notations that models use beside JSON: Python's literals and calls, and Gemma's objects with bare keys. Pure.

A small reader of our own: Python's parser can be driven into deep recursion by a model's text, and knows no bare keys.
"""

from __future__ import annotations

import ast
import re

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.patterns import late

DEEPEST = 64
_SPACE = late(r"[ \t\r\n]*+")
_NUMBER = late(r"[+-]?(?:\d[\d_]*+(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?")
_QUOTED = late(
    r'[rRbBuUfF]{0,2}(?:"""(?:[^"\\]|\\.|"(?!""))*+"""'
    r"|'''(?:[^'\\]|\\.|'(?!''))*+'''"
    r'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
    r"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+')",
    re.DOTALL,
)
_NAME = late(r"[^\W\d][\w.-]*+")
_BARE = late(r"[^,\]}]*+")
_CONSTANTS: dict[str, Json] = {
    "True": True, "true": True, "False": False, "false": False, "None": None, "null": None,
}  # fmt: skip


class NotReadable(ValueError):
    """The text is no value in this notation."""


@dataclass(frozen=True, slots=True)
class PlainCall:
    """A call as a programmer writes it."""

    name: str
    arguments: dict[str, Json]


class _Reader:
    def __init__(self, text: str, quote: str) -> None:
        self._text = text
        self._quote = quote
        """The mark on both sides of a text, where it is no quotation mark; bare keys and bare texts are allowed then."""
        self.at = 0
        self._deep = 0

    def skip(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at

    def comes(self, literal: str) -> bool:
        """Whether `literal` comes next; if so, it is passed."""
        self.skip()
        if not self._text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        return True

    def expect(self, literal: str) -> None:
        if not self.comes(literal):
            raise NotReadable(f"{literal!r} expected at character {self.at}")

    @property
    def over(self) -> bool:
        self.skip()
        return self.at >= len(self._text)

    def name(self) -> str:
        self.skip()
        found = _NAME.match(self._text, self.at)
        if found is None:
            raise NotReadable(f"a name expected at character {self.at}")
        self.at = found.end()
        return found.group()

    def value(self) -> Json:
        self._deep += 1
        if self._deep > DEEPEST:
            raise NotReadable("nested too deeply")
        try:
            return self._value()
        finally:
            self._deep -= 1

    def _value(self) -> Json:
        if self._quote and self.comes(self._quote):
            return self._marked()
        for opening, closing in (("[", "]"), ("(", ")")):
            if self.comes(opening):
                return self._list(closing)
        if self.comes("{"):
            return self.object()
        found = _QUOTED.match(self._text, self.at)
        if found is not None:
            self.at = found.end()
            return self._string(found.group())
        found = _NUMBER.match(self._text, self.at)
        if found is not None and not _NAME.match(self._text, found.end()):
            self.at = found.end()
            return _number(found.group())
        return self._bare()

    def _marked(self) -> str:
        end = self._text.find(self._quote, self.at)
        if end < 0:
            raise NotReadable("a text does not end")
        value, self.at = self._text[self.at : end], end + len(self._quote)
        return value

    def _string(self, first: str) -> str:
        """A quoted text, with those that follow directly, as Python joins them."""
        try:
            value = ast.literal_eval(first)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise NotReadable("a text cannot be read") from error
        if not isinstance(value, str):
            raise NotReadable("a text of bytes")
        return value

    def _bare(self) -> Json:
        found = _NAME.match(self._text, self.at)
        if found is not None and found.group() in _CONSTANTS:
            self.at = found.end()
            return _CONSTANTS[found.group()]
        if not self._quote:
            raise NotReadable(f"no value at character {self.at}")
        rest = _BARE.match(self._text, self.at)
        if rest is None or not rest.group().strip():
            raise NotReadable(f"no value at character {self.at}")
        self.at = rest.end()
        return rest.group().strip()

    def _list(self, closing: str) -> list[Json]:
        values: list[Json] = []
        while not self.comes(closing):
            values.append(self.value())
            if not self.comes(","):
                self.expect(closing)
                break
        return values

    def object(self) -> dict[str, Json]:
        """What is in braces; the first of them has been passed."""
        values: dict[str, Json] = {}
        while not self.comes("}"):
            key = self._key()
            self.expect(":")
            values[key] = self.value()
            if not self.comes(","):
                self.expect("}")
                break
        return values

    def _key(self) -> str:
        self.skip()
        if self._quote and not self.comes(self._quote):
            return self.name()
        if self._quote:
            return self._marked()
        key = self.value()
        if not isinstance(key, str):
            raise NotReadable("a key that is no text")
        return key

    def call(self) -> PlainCall:
        name, arguments = self.name(), dict[str, Json]()
        self.expect("(")
        while not self.comes(")"):
            key = self.name()
            self.expect("=")
            arguments[key] = self.value()
            if not self.comes(","):
                self.expect(")")
                break
        return PlainCall(name, arguments)


def _number(text: str) -> Json:
    try:
        return int(text) if text.lstrip("+-").replace("_", "").isdigit() else float(text)
    except ValueError as error:
        raise NotReadable("a number cannot be read") from error


def read_value(text: str) -> Json:
    """A Python literal: text, number, truth value, list or object. Raises `NotReadable`."""
    reader = _Reader(text, "")
    value = reader.value()
    if not reader.over:
        raise NotReadable("something follows the value")
    return value


def read_object(text: str, quote: str) -> dict[str, Json]:
    """An object with bare keys, whose texts stand between `quote`. Raises `NotReadable`."""
    reader = _Reader(text, quote)
    reader.expect("{")
    value = reader.object()
    if not reader.over:
        raise NotReadable("something follows the object")
    return value


def read_calls(text: str) -> list[PlainCall]:
    """Calls as Python writes them: in a list, or one after the other. Raises `NotReadable`."""
    reader = _Reader(text, "")
    calls: list[PlainCall] = []
    listed = reader.comes("[")
    while not reader.over and not (listed and reader.comes("]")):
        calls.append(reader.call())
        reader.comes(",")
        reader.comes(";")
    if not reader.over or not calls:
        raise NotReadable("no calls")
    return calls
