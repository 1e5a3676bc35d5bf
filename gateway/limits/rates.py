"""How many requests a key may make in a minute. Pure but for what it remembers; a start forgets it.

Law (tests/gateway/test_standing.py): in no minute more than the limit is let through, and who waits for as long as is said is let through.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field

from adapters.contract.base import FromApi, Inbound
from agent_core.records import dataclass
from gateway.limits.standing import Standings

MINUTE_MS = 60_000


class KeyRates:
    """When the requests of each key came in the last minute."""

    def __init__(self) -> None:
        self._times: dict[str, deque[int]] = {}

    def early(self, key: str, limit: int, now: int) -> int:
        """Let a request through at `now` (steady ms), and 0; or how many milliseconds too early it is."""
        times = self._times.setdefault(key, deque())
        while times and now - times[0] >= MINUTE_MS:
            times.popleft()
        if len(times) >= limit:
            return times[len(times) - limit] + MINUTE_MS - now
        times.append(now)
        return 0


@dataclass(frozen=True, slots=True)
class Doors:
    """What is asked of a message before it is stored."""

    standings: Standings = field(default_factory=Standings)
    rates: KeyRates = field(default_factory=KeyRates)

    def early(self, inbound: Inbound, now: int) -> int:
        """How many milliseconds too early a request is (steady ms); 0: it is let through, and counted."""
        key = inbound.key if isinstance(inbound, FromApi) else ""
        limit = self.standings.terms(key).minute_requests if key else 0
        return self.rates.early(key, limit, now) if limit else 0
