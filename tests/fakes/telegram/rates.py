"""The rules about how much a bot may send (https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this).

About one message a second to a chat, with short bursts allowed; 20 a minute to a group; about 30 a second over all chats. Pure.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits. None switches a rule off."""

    chat_per_second: float | None = 1.0
    chat_burst: int = 5
    """So many at once are let through after a pause."""
    group_per_minute: int | None = 20
    all_per_second: int | None = 30


class RateGate:
    """Decides whether a message may go out now, and remembers those that did."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._tokens: dict[int, tuple[float, float]] = {}
        """Chat → tokens left, and when that was."""
        self._group: dict[int, deque[float]] = {}
        self._all: deque[float] = deque()

    def ask(self, chat: int, *, group: bool, now: float) -> int:
        """Whole seconds to wait; 0 if the message may go, which counts it. `now` is in monotonic seconds."""
        rates = self._rates
        waits = [0.0]
        tokens = float(rates.chat_burst)
        if rates.chat_per_second is not None:
            left, since = self._tokens.get(chat, (tokens, now))
            tokens = min(tokens, left + (now - since) * rates.chat_per_second)
            waits.append((1.0 - tokens) / rates.chat_per_second)
        minute = self._group.setdefault(chat, deque())
        if group and rates.group_per_minute is not None:
            waits.append(_window(minute, rates.group_per_minute, 60.0, now))
        if rates.all_per_second is not None:
            waits.append(_window(self._all, rates.all_per_second, 1.0, now))
        wait = max(waits)
        if wait > 0:
            return math.ceil(wait)
        self._tokens[chat] = (tokens - 1.0, now)
        minute.append(now)
        self._all.append(now)
        return 0


def _window(times: deque[float], limit: int, seconds: float, now: float) -> float:
    """How long until fewer than `limit` of the times lie within the last `seconds`."""
    while times and times[0] <= now - seconds:
        times.popleft()
    return 0.0 if len(times) < limit else times[len(times) - limit] + seconds - now
