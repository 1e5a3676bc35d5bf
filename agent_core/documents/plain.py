"""Text files in whatever encoding they come in: UTF-8, UTF-16 and UTF-32 with or without a mark, else Windows' western one. Pure."""

from __future__ import annotations

import codecs
import re

from agent_core.documents import told
from agent_core.documents.told import NoTextThere, Told

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LOOK_BYTES = 64 * 1024
MOST_CONTROLS = 0.002
"""Of the characters of a text: terminals' colours and page breaks are in texts too."""
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


def read_plain(data: bytes) -> Told:
    """The text of a file. Raises `NoTextThere` if it is none."""
    encoding = _encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding in ("utf-8", "cp1252"):
            raise NoTextThere(told.UNKNOWN) from None
        text = data.decode(encoding, "replace")
    begins = text[:LOOK_BYTES]
    if len(_CONTROLS.findall(begins)) > max(1, len(begins)) * MOST_CONTROLS:
        raise NoTextThere(told.UNKNOWN)
    if not text.strip():
        raise NoTextThere(told.BLANKS)
    known = {"utf-8": "", "utf-8-sig": "", "cp1252": ", read as Windows-1252"}
    return Told(text, f"text{known.get(encoding, f', read as {encoding.upper()}')}", plain=encoding == "utf-8")


def _encoding_of(data: bytes) -> str:
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    head = data[:LOOK_BYTES]
    if b"\0" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        if odd > len(head) // 5 and even * 10 < odd:
            return "utf-16-le"
        if even > len(head) // 5 and odd * 10 < even:
            return "utf-16-be"
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"
