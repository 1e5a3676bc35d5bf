"""Whose words they are: what marks the gateway's own, so that nothing a model writes can pass for it. Pure.

Theory. Each surface has a mark that a model's text cannot have:

- *a chat*: a notice is a message of its own that begins with one of `CHAT_MARKS`; a message of the model's that begins so gets a sign before it;
- *text that grows* (the API, `ask`, `chat`): a paragraph that begins with `MARK`; where a line of the model's begins so, the mark is put in
  quotation marks (`GrowingText`). The API says it to programs as well, in its ``outspoken`` object; a command prints its notices on standard error;
- *the page*: a bubble of its own kind, which the page draws in its own way.

Laws (tests/agent_core/test_ours.py): however a model's text is cut, what `GrowingText` gives is the same, and no line of it begins with the mark; a text
without the mark comes out as it went in.
"""

from __future__ import annotations

import re

from agent_core.messages import GATEWAY_PREFIX
from agent_core.text.patterns import late

MARK = GATEWAY_PREFIX
CHAT_MARKS = ("⚠", "🔐", "⏳", "\u2139")
"""How messages of the gateway begin in a chat."""
THEIRS = "\u203a"
"""Stands before a message of the model's that begins like one of ours."""

_DRESS = r"[^\w\n]{0,24}"
_LINE = late(rf"^({_DRESS}){re.escape(MARK)}", re.IGNORECASE | re.MULTILINE)
_UNDECIDED = late(
    rf"{_DRESS}(?:" + "|".join(re.escape(MARK[:length]) for length in range(len(MARK) - 1, 0, -1)) + r")?\Z",
    re.IGNORECASE,
)
_LONGEST_HELD = 64


def ours(words: str) -> str:
    """The gateway's words, for a text that grows."""
    return f"{MARK} {words}"


def imitates(text: str) -> bool:
    """Whether a message of a model's begins like one of ours in a chat."""
    return text.startswith(CHAT_MARKS)


class GrowingText:
    """One growing text of a model's on its way to whoever only appends."""

    __slots__ = ("_begins", "_taken")

    def __init__(self) -> None:
        self._taken = 0
        self._begins = True

    @property
    def begun(self) -> bool:
        return self._taken > 0

    def new(self, text: str, *, final: bool) -> str:
        """What is new of `text`, of which everything before has been taken. A line that may yet begin with the mark waits for more."""
        rest = text[self._taken :]
        if not rest:
            return ""
        if not final:
            rest = rest[: len(rest) - self._held(rest)]
        if not rest:
            return ""
        self._taken += len(rest)
        begins, self._begins = self._begins, rest.endswith("\n")
        if "[" not in rest:
            return rest
        if begins:
            return _LINE.sub(_quoted, rest)
        first, line, more = rest.partition("\n")
        return f"{first}{line}{_LINE.sub(_quoted, more)}"

    def _held(self, rest: str) -> int:
        """How many characters at the end may become a mark. If more than the usual comes without one, it is let go of."""
        start = rest.rfind("\n") + 1
        last = rest[start:]
        if (not start and not self._begins) or not last or len(last) > _LONGEST_HELD:
            return 0
        return len(last) if _UNDECIDED.match(last) else 0


def _quoted(found: re.Match[str]) -> str:
    return f"{found[1]}“{found[0][len(found[1]) :]}”"
