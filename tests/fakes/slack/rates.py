"""The rules about how often a method may be called (https://docs.slack.dev/apis/web-api/rate-limits). Pure.

About one message a second to a channel, with short bursts allowed; so many calls a minute for each method; and for apps that are sold
outside of the Marketplace one call a minute for history, fifteen messages at a time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

HISTORY = frozenset({"conversations.history", "conversations.replies"})


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits. None switches a rule off."""

    history_per_minute: int | None = None
    """1 for an app that is not in the Marketplace."""
    history_page: int | None = None
    """The most messages of one answer, however many were asked for; 15 for such an app."""
    post_per_second: float | None = None
    post_burst: int = 5
    """So many messages to a channel are let through after a pause."""
    per_minute: Mapping[str, int] = field(default_factory=dict[str, int])
    """Calls a minute by method, such as `{"chat.update": 50}`."""


class RateGate:
    """Decides whether a call may pass now, and remembers those that did."""

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self._calls: dict[str, deque[float]] = {}
        self._tokens: dict[str, tuple[float, float]] = {}
        """Channel → tokens left, and when that was."""

    def ask(self, method: str, channel: str, now: float) -> int:
        """Whole seconds to wait; 0 if the call may pass, which counts it. `now` is in monotonic seconds."""
        limit = self.rates.per_minute.get(method)
        if method in HISTORY and self.rates.history_per_minute is not None:
            limit = self.rates.history_per_minute
        calls = self._calls.setdefault(method, deque())
        while calls and calls[0] <= now - 60.0:
            calls.popleft()
        waits = [0.0]
        if limit is not None and len(calls) >= limit:
            waits.append(calls[len(calls) - limit] + 60.0 - now)
        speed, tokens = self.rates.post_per_second, 0.0
        if method == "chat.postMessage" and speed is not None:
            left, since = self._tokens.get(channel, (float(self.rates.post_burst), now))
            tokens = min(float(self.rates.post_burst), left + (now - since) * speed)
            waits.append((1.0 - tokens) / speed)
        if max(waits) > 0:
            return math.ceil(max(waits))
        calls.append(now)
        if method == "chat.postMessage" and speed is not None:
            self._tokens[channel] = (tokens - 1.0, now)
        return 0
