"""What an id that somebody has can stand for, and when it was made, by its form alone; and what time somebody means. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum

from adapters.platforms import platforms
from agent_core.records import dataclass
from agent_core.text.patterns import late

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


class CannotExplain(Exception):
    """There is nothing to tell; the words say why and what to do."""


class IdKind(StrEnum):
    """What an id can be."""

    TURN = "turn"
    SESSION = "session"
    REFERENCE = "error reference"
    INCIDENT = "incident"
    MESSAGE = "message"
    ANSWER = "answer of the API"
    DELIVERY = "delivery"
    DELIVERY_KEY = "delivery key"
    PLATFORM_MESSAGE = "platform message"
    REQUEST = "request"
    SCHEDULE = "schedule"


OF_MESSAGES = ("inbox", "queue", "held")
"""With a message's number behind them, what was said of it belongs to these: the answer to a command, its place in the queue, when it is run."""


MOST_DIGITS = 18
"""No number of ours is longer, and none that is can be looked up."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an id may mean."""

    kind: IdKind
    id: str


_PREFIXES = {"t_": IdKind.TURN, "s_": IdKind.SESSION, "err_": IdKind.REFERENCE, "i_": IdKind.INCIDENT,
    "remind:": IdKind.SCHEDULE, "config:": IdKind.SCHEDULE,
}  # fmt: skip


_ANSWER = late(r"(?:resp|chatcmpl|msg|rs|fc|ctc|mcp|ig|in)[_-](s_[0-9a-z]+)[_-]([0-9]{1,18})(?:_.+)?")
"""A response, a completion, or an item of a response: each bears its session and the number of its message."""
_ITEM = late(r"(?:msg|rs|fc|ctc|mcp|ig|in)_(t_[0-9a-z]+)_.+")
"""An item of a conversation bears its turn."""


def kinds_of(text: str) -> list[Candidate]:
    """What an id can be, the likeliest first. Never empty."""
    text = text.strip()
    named, _, rest = text.partition(":")
    numbered = rest.isdecimal() and len(rest) <= MOST_DIGITS
    if numbered and named in (*OF_MESSAGES, "message"):
        return [Candidate(IdKind.MESSAGE, rest)]
    if numbered and named == "delivery":
        return [Candidate(IdKind.DELIVERY, rest)]
    found = [Candidate(kind, text) for prefix, kind in _PREFIXES.items() if text.startswith(prefix)]
    if (answer := _ANSWER.fullmatch(text)) is not None:
        found.append(Candidate(IdKind.ANSWER, f"{answer[1]}:{answer[2]}"))
    if (item := _ITEM.fullmatch(text)) is not None:
        found.append(Candidate(IdKind.TURN, item[1]))
    if text.count("/") >= 6:
        found.append(Candidate(IdKind.DELIVERY_KEY, text))
    if text.isdecimal() and len(text) < 16:  # a longer one is a snowflake
        found.append(Candidate(IdKind.MESSAGE, text))
    return [*found, Candidate(IdKind.PLATFORM_MESSAGE, text), Candidate(IdKind.REQUEST, text)]


def time_in(text: str) -> int | None:
    """When an id was made, ms, if it says so: an id of ours, or of a platform whose ids tell."""
    last = text.rpartition(":")[2]
    ours = re.fullmatch(rf"[a-z]+_([{_DIGITS}]{{10}})[{_DIGITS}]{{10}}", text)
    if ours:
        value = 0
        for digit in ours[1]:
            value = value * 32 + _DIGITS.index(digit)
        return value
    return next((at for one in platforms() if (at := one.written_at(last)) is not None), None)


def platform_of(text: str) -> str:
    """Which platform an id's form belongs to; empty if that cannot be told."""
    last = text.rpartition(":")[2]
    return next((one.name for one in platforms() if one.written_at(last) is not None), "")


def origins_in(key: str) -> list[str]:
    """What a delivery with this key can belong to: the key is surface, origin, bubble and part, and an origin may hold slashes."""
    parts = key.rstrip("'").split("/")[4:-2]
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def when(text: str, now: datetime) -> datetime:
    """The time that somebody means, in the zone of `now`: ``14:05``, ``14:05:30``, ``2026-11-21 14:05``. Raises `CannotExplain`.

    A time of day is the latest one that has been.
    """
    text = text.strip()
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text):
            hour, minute, second = (*map(int, text.split(":")), 0)[:3]
            at = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return at if at <= now else at - timedelta(days=1)
        at = datetime.fromisoformat(text)
    except ValueError:
        raise CannotExplain(
            f'{text!r} is no time. Write it as "14:05" or as "2026-11-21 14:05", in the zone of this machine.'
        ) from None
    return at if at.tzinfo is not None else at.replace(tzinfo=now.tzinfo)
