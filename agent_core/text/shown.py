"""Text that others wrote, where a character can do something instead of being seen. Pure.

A terminal takes some characters for commands; others turn the order of what is read, or take no room, so that somebody agrees to
what does not stand there. Both are written as ``\\u`` and their number: that is read by people, and leaves JSON valid.

Laws (tests/agent_core/test_shown.py): nothing that comes out of `harmless` steers a terminal, nothing that comes out of `plain` is unseen or on another line;
doing it again changes nothing; what people write is left alone. A text that was cut in its middle says how much is left out.
"""

from __future__ import annotations

import re
import unicodedata

from agent_core.text.patterns import late
from agent_core.text.tongue import speak

_STEERING = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u2028\u2029\u202a-\u202e\u2066-\u2069"  # lines and the order of the text
    "\ufff9-\ufffb]"
)
_UNSEEN_SET = (
    "\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800"
    "\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_UNSEEN = late(f"[{_UNSEEN_SET}]")
"""What is not seen, or only as room that is not a space's: controls, formats, fillers, variation selectors, tags."""


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"


_SEEN = late(f"[^ {_UNSEEN_SET}]")


def something_to_see(text: str) -> bool:
    """Whether the text shows anything: blanks, and what takes no room, are nothing."""
    return _SEEN.search(text) is not None


SEAM_CHARS = 64
"""Of a line: code is seldom indented by more."""


def seam(blank: str) -> str:
    """What of a blank is kept where a text was broken off: its beginning, up to a paragraph's end and the indentation behind it.

    Whoever goes on may begin with a word.
    """
    found = _SEAM.match(blank)
    return found[0] if found else ""


_SEAM = late(rf"(?:[^\n]{{0,{SEAM_CHARS}}}\n){{0,2}}[^\n]{{0,{SEAM_CHARS}}}")


def harmless(text: str) -> str:
    """The text as a terminal may have it: lines and tabs are left, every other command is written out."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _STEERING.sub(_number, text.replace("\r\n", "\n"))


def plain(text: str) -> str:
    """The text on one line, in characters that are seen: for whoever decides by it."""
    if text.isascii() and text.isprintable():
        return text
    shown = _UNSEEN.sub(_number, text)
    return re.sub(r"[\u0300-\U0001e94a]{4,}", _stacked, shown)


def _stacked(found: re.Match[str]) -> str:
    """Marks that stand upon each other hide what is beside them."""
    run, out = 0, list[str]()
    for char in found[0]:
        run = run + 1 if unicodedata.combining(char) else 0
        out.append(char if run < 4 else f"\\u{ord(char):04x}")
    return "".join(out)


def quoted(words: str) -> str:
    """Somebody's words, in the quotation marks of the language of here."""
    return speak("“{words}”", words=words)


def middle(text: str, most: int) -> str:
    """At most about `most` characters: the beginning and the end, and between them how much is left out."""
    if len(text) <= most:
        return text
    head, tail = -(-most * 2 // 3), most // 3
    left_out = len(text) - head - tail
    return f"{text[:head]} […{left_out:,} characters are left out here…] {text[len(text) - tail :]}"


def shortened(text: str, most: int = 60) -> str:
    """One line of a longer text."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
