"""How many requests a key may make in a minute, and what it is told of its limits. Pure but for what it remembers; a start forgets it.

Law (tests/gateway/test_standing.py): in no minute more than the limit is let through, and who waits for as long as is said is let through.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import field

from adapters.contract.base import FromApi, Inbound
from adapters.contract.callers import Allowance
from agent_core.records import dataclass
from gateway.limits.standing import Standings

MINUTE_MS = 60_000


class KeyMeters:
    """When the requests of each key came in the last minute, and how much of its day's tokens was left when it asked last."""

    def __init__(self) -> None:
        self._times: dict[str, deque[int]] = {}
        self._tokens: dict[str, tuple[int, int, int]] = {}
        """Limit, what was left, and when the day ends (ms)."""
        self.told: Callable[[str], None] = lambda _: None
        """Has other gateways count a request of a key as well."""

    def tokens(self, key: str, limit: int, left: int, until: int) -> None:
        """So many of its tokens are left."""
        self._tokens[key] = (limit, left, until)

    def left(self, key: str, limit: int, now: int, clock_ms: int) -> list[Allowance]:
        """What is left to a key that may make `limit` requests in a minute (0: any number), at `now` (steady ms)."""
        found: list[Allowance] = []
        if limit:
            times = [at for at in self._times.get(key, ()) if now - at < MINUTE_MS]
            full_in = times[-1] + MINUTE_MS - now if times else 0
            found.append(Allowance("requests", limit, max(0, limit - len(times)), full_in))
        if (tokens := self._tokens.get(key)) is not None and clock_ms < tokens[2]:
            found.append(Allowance("tokens", tokens[0], max(0, tokens[1]), tokens[2] - clock_ms))
        return found

    def early(self, key: str, limit: int, now: int) -> int:
        """Let a request through at `now` (steady ms), and 0; or how many milliseconds too early it is."""
        times = self._lately(key, now)
        if len(times) >= limit:
            return times[len(times) - limit] + MINUTE_MS - now
        times.append(now)
        self.told(key)
        return 0

    def met(self, key: str, now: int) -> None:
        """Another gateway has let one through (steady ms of ours)."""
        self._lately(key, now).append(now)

    def _lately(self, key: str, now: int) -> deque[int]:
        times = self._times.setdefault(key, deque())
        while times and now - times[0] >= MINUTE_MS:
            times.popleft()
        return times


@dataclass(frozen=True, slots=True)
class Doors:
    """What is asked of a message before it is stored."""

    standings: Standings = field(default_factory=Standings)
    meters: KeyMeters = field(default_factory=KeyMeters)

    def early(self, inbound: Inbound, now: int) -> int:
        """How many milliseconds too early a request is (steady ms); 0: it is let through, and counted."""
        key = inbound.key if isinstance(inbound, FromApi) else ""
        limit = self.standings.terms(key).minute_requests if key else 0
        return self.meters.early(key, limit, now) if limit else 0
