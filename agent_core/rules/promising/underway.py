"""What is said to happen without the turn: work in the background, in a queue, by somebody else; a reminder, word when something is done.

A turn that is over does nothing and wakes nobody, so only a tool can keep it.
"""

from __future__ import annotations

import re

from agent_core.rules.promising.language import phrases
from agent_core.text.patterns import late

LATER = phrases("later")
IS_SET = phrases("is_set")
_TOOL = late(r"remind|schedul|alarm|timer|calendar|cron|event|notif|task|todo|appointment|later", re.IGNORECASE)
_SETS_NONE = frozenset({"list", "show", "get", "read", "find", "search", "cancel", "delete", "remove"})
_HIDDEN = phrases("hidden")
_BEGUN = phrases("begun")
_JOB = phrases("job")
_GOING = phrases("going")
_COMES = phrases("comes")
_BUSY = phrases("busy")


def keeps_time(tool: str) -> bool:
    """A tool by which something can happen later: with it a reminder that is promised is set. Who only looks, or takes back, sets none."""
    return _TOOL.search(tool) is not None and tool.rpartition("__")[2].partition("_")[0].lower() not in _SETS_NONE


def begun_in_background(plain: str) -> bool:
    return _HIDDEN.search(plain) is not None and _BEGUN.search(plain) is not None


def is_under_way(plain: str, before: str, *, announced: bool) -> bool:
    """Whether a sentence (small letters; `before` is the one before it, which may have `announced` something) says that work goes on by itself."""
    if _BUSY.search(plain):
        return True
    if _HIDDEN.search(plain):
        return bool(_BEGUN.search(plain) or (_JOB.search(plain) and _GOING.search(plain)))
    begun = any(_BEGUN.search(one) and _JOB.search(one) for one in (plain, before))
    if _COMES.search(plain):
        return (
            announced
            or begun
            or bool(_BEGUN.search(plain) or _BEGUN.search(before) or (_JOB.search(before) and _GOING.search(before)))
        )
    if begun and re.search(r"\bwill be \w+ed (?:in|within)\b|\bqueued\b", plain):
        return True
    return _STARTS.match(plain) is not None and any(
        _TAIL.fullmatch(plain, found.end()) for found in _GOING.finditer(plain)
    )


_TAIL = late(r"(?:\W++\w++)?\W*+(?:(?:please|just|bitte|einen|one|a|un|por|s'il) [^.!?]{0,30}+)?\W*+")
"""What may still come behind that: that anything comes of it is said nowhere."""


_STARTS = late(
    r"\W*+(?:ok(?:ay)?|sure|alles klar|gut)?\W*+(?:(?:your|the|this|dein|deine|ihr|ihre|der|die|das|votre|ta|la|le|el|tu|su|a|o|sua|il|ваш|твой|de|je|uw)\W++)?"
    r"(?:\w++\W++)?" + f"(?:{_JOB.pattern})"
)
