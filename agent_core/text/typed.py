"""Commands as people type them: keyboards for Chinese, Japanese and Korean write ／ｓｔｏｐ and mean /stop. Pure."""

from __future__ import annotations

import re
from unicodedata import normalize

from agent_core.text.tongue import SLASH

_FIRST_WORD = re.compile(r"\A\s*(\S{1,80})(?!\S)")


def as_command(text: str, marks: str = SLASH) -> str:
    """The text with its first word in plain signs, if that begins with one of these marks in whatever width; else as it stands."""
    found = None if text.isascii() else _FIRST_WORD.match(text)
    if found is None:
        return text
    word = normalize("NFKC", found[1])
    meant = word.split() == [word] and word[0] in marks
    return f"{text[: found.start(1)]}{word}{text[found.end(1) :]}" if meant else text
