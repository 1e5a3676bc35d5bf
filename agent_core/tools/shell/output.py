"""What a command wrote, as a model and a person may read it. Pure.

Laws (tests/shell/test_output.py): nothing that comes out steers a terminal; of a line that was written over again and again only the last state is left; it takes
no longer than the text is long.
"""

from __future__ import annotations

import re

from agent_core.text.shown import harmless, plain
from agent_core.text.wellformed import storable

SHOWN_BYTES = 48_000
"""So much of an output is looked at for one answer, at each of its ends."""
_STEERING = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # colours, places
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?"  # titles, links
    "|\x1b[ -/]*[0-~]"
    "|[^\n]\x08"
)
_SEEN_LINE = 200


def cleaned(raw: bytes) -> str:
    """The text, without what only steers a terminal."""
    text = _STEERING.sub("", raw.decode("utf-8", "replace").replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return harmless(storable(text))


def last_line(raw: bytes) -> str:
    """The last line that says something, for whoever watches."""
    lines = [line for line in cleaned(raw[-4000:]).split("\n") if line.strip()]
    return plain(lines[-1].strip())[:_SEEN_LINE] if lines else ""


def both_ends(head: bytes, tail: bytes, size: int, most: int) -> str:
    """An output of `size` bytes in at most about `most` characters. `head` and `tail` are its ends; both are all of it where it is short."""
    if size <= len(head):
        text = cleaned(head)
        if len(text) <= most:
            return text
        first, last = text[: most // 3], text[-(most - most // 3) :]
        return f"{first}\n[… {len(text) - most:,} characters are left out here …]\n{last}"
    first, last = cleaned(head)[: most // 3], cleaned(tail)[-(most - most // 3) :]
    return f"{first}\n[… most of {size:,} bytes is left out here …]\n{last}"
