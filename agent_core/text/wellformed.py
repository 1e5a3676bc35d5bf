"""Text from outside as it can be stored, sent and shown, whatever came.

JSON can spell half a surrogate pair and NUL, and some servers send them: where a character was cut in two, or out of malice. Neither a
database nor a platform takes them. So what a model's side says goes through here where it is read: what comes in pieces through
`Joined`, which puts the halves of a character together that two pieces hold, and a word that is not the model's text (a name, a
finish reason) through `label`, which also has an end.

What has to come back byte for byte (signatures of thoughts) is not mended: it is kept as it came, or not at all.
"""

from __future__ import annotations

import json

from agent_core.text.shown import plain

MARK = "\ufffd"
NAME_CHARS = 128
"""No provider takes a tool's name that is longer than half of this."""
COUNT_MOST = 20_000_000
"""More tokens than any model reads; what is larger is no count, and would use up a budget for nothing."""


def well_formed(text: str) -> str:
    """`text`, with the halves of a pair joined where they stand together, and any other half replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def whole_json(raw: bytes) -> bytes:
    """The same JSON without the halves of characters that it spells, as programs do that cut a text anywhere (RFC 8259 lets them, and strict readers
    take it for no JSON). As it stands where it spells none, or is no JSON all the same."""
    if b"\\ud" not in raw and b"\\uD" not in raw:
        return raw
    try:
        return well_formed(json.dumps(json.loads(raw), ensure_ascii=False, allow_nan=False)).encode()
    except (ValueError, RecursionError):
        return raw


def storable(text: str) -> str:
    """`text`, well formed, and without the one character that PostgreSQL does not keep."""
    text = well_formed(text)
    return text.replace("\x00", MARK) if "\x00" in text else text


def label(text: str, most: int = NAME_CHARS) -> str:
    """A word of a provider's (a name, a reason): storable, on one line, in characters that are seen, and with an end."""
    return plain(storable(text[:most]).strip())[:most]


def count(value: object, otherwise: int) -> int:
    """A number of tokens; `otherwise` if it is none that could be."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole and not (isinstance(value, float) and value.is_integer()):
        return otherwise
    return int(value) if 0 <= value <= COUNT_MOST else otherwise  # type: ignore[operator, arg-type]


class Joined:
    """One text that comes in pieces, made storable. The end of a piece that may be half a character waits for the next."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        """What can be said now that `text` has come."""
        if self._half:
            text, self._half = self._half + text, ""
        if text.isascii():
            return text.replace("\x00", MARK) if "\x00" in text else text
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return storable(text)

    def finish(self) -> str:
        """The text is over."""
        half, self._half = self._half, ""
        return MARK if half else ""
