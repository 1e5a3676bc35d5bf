"""How fast a chat and a bot may be written to: one gate for each, for everything that goes there. Pure.

Theory. A gate is a bucket of tokens that refills with time. What must be seen (finals, notices) may use all of it; a status
leaves a part of it, and cosmetics (typing, text on its way) leave more, so they are what is dropped first when it becomes
tight. A server that says "not before" closes the gate for everything until then, and nothing else is tried meanwhile: a ban
grows with each try. If it says so again to the first that comes when the gate has opened, it means more than it says, and the
pause grows: else many chats that are refused every second take the time of all others, and lead to a ban (Discord: 10 000
refused requests in ten minutes).

Laws (tests/adapters/test_pacing.py): over any window no more than burst + rate × window is let through; what is more urgent
never waits longer than what is less; while a gate is closed nothing passes; a gate that was told a time keeps the latest, and
is not closed for longer than it was told unless it was refused again and again, nor then for longer than the larger of that and
`LONGEST_PAUSE_SECONDS`.
Times are milliseconds.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import IntEnum
from functools import cache

from agent_core.records import dataclass
from agent_core.retry import Retry

LONGEST_PAUSE_SECONDS = 10.0
"""A pause grows up to here; one that is longer is kept as it is told."""


LONGEST_TOLD_SECONDS = 999_999.0
"""A longer wait is none that any platform means."""


def meant(seconds: float) -> bool:
    """Whether a pause that a platform names can be one. Pure."""
    return 0 < seconds <= LONGEST_TOLD_SECONDS


def worth_saying(times: int) -> bool:
    """Whether what has happened so often in a row (from 1) is logged: the first time, then whenever the number has doubled."""
    return times > 0 and times & (times - 1) == 0


class Urgency(IntEnum):
    """How much something may take of what is left."""

    COSMETIC = 0
    STATUS = 1
    FINAL = 2


URGENCIES = tuple(Urgency)
_RESERVED = {Urgency.COSMETIC: 0.5, Urgency.STATUS: 0.25, Urgency.FINAL: 0.0}
"""Which share of the burst is left for what is more urgent."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and one more in each interval."""

    burst: int
    interval_ms: float


@cache
def _needs(burst: int) -> tuple[float, ...]:
    """How much has to be there for each urgency. A bucket of one has nothing to reserve."""
    return tuple(min(1.0 + math.floor(burst * _RESERVED[urgency]), float(burst)) for urgency in URGENCIES)


@dataclass(frozen=True, slots=True)
class Gate:
    """The state of one gate."""

    rate: Rate
    tokens: float
    at: int
    """When `tokens` was counted."""
    closed_until: int = 0
    """The platform said: nothing before then."""
    streak: int = 0
    """So many refusals one after the other, each of the first that came when the gate had opened."""
    opened: int = 0
    """So many were let through since the last refusal."""

    @staticmethod
    def fresh(rate: Rate, now: int, closed_until: int = 0) -> Gate:
        return Gate(rate, float(rate.burst), now, closed_until)

    def _tokens(self, now: int) -> float:
        return min(float(self.rate.burst), self.tokens + max(0, now - self.at) / self.rate.interval_ms)

    def wait_ms(self, urgency: Urgency, now: int) -> int:
        """How long until something of this urgency may pass; 0 is now."""
        return self.waits(now)[urgency]

    def waits(self, now: int) -> tuple[int, ...]:
        """The same of each urgency, in their order: a chat asks for all of them at each look."""
        closed, tokens = max(0, self.closed_until - now), self._tokens(now)
        return tuple(
            [
                max(closed, math.ceil((need - tokens) * self.rate.interval_ms - 1e-6))
                if need - tokens > 1e-9
                else closed
                for need in _needs(self.rate.burst)
            ]
        )

    def passed(self, now: int) -> Gate:
        """Something was let through."""
        return replace(self, tokens=self._tokens(now) - 1.0, at=max(now, self.at), opened=self.opened + 1)

    def refused(self, now: int, retry_after_seconds: float) -> Gate:
        """The platform said that this was too fast: closed for the whole time, or longer, and empty when it opens."""
        together = now < self.closed_until  # with one that was refused before, and tells nothing new
        again = self.streak > 0 and (together or self.opened <= 1)
        streak = (self.streak if together else self.streak + 1) if again else 1
        grown = Retry(retry_after_seconds, LONGEST_PAUSE_SECONDS).seconds(streak)
        until = now + math.ceil(max(retry_after_seconds, grown) * 1000)
        return replace(
            self,
            tokens=min(self._tokens(now), 1.0),
            at=max(now, self.at),
            closed_until=max(self.closed_until, until),
            streak=streak,
            opened=self.opened if together else 0,
        )


@dataclass(frozen=True, slots=True)
class RecentRefusals:
    """Notes which chats were refused lately, to tell one chat's limit from the whole bot's."""

    recent: tuple[tuple[int, str], ...] = ()

    WINDOW_MS = 3_000
    CHATS = 3

    def noted(self, chat: str, now: int) -> RecentRefusals:
        """With one more refusal."""
        kept = tuple(one for one in self.recent if now - one[0] <= RecentRefusals.WINDOW_MS and one[1] != chat)
        return RecentRefusals((*kept, (now, chat)))

    @property
    def whole_bot(self) -> bool:
        """So many chats at once: it is the bot that is too fast."""
        return len(self.recent) >= RecentRefusals.CHATS
