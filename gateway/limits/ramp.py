"""How soon what an earlier process left may call its model again. Pure: it gets the time.

Theory. A gateway that was killed leaves all that it was at; whoever takes that up would ask its providers for all of it in one second, after a time in
which they heard nothing from us. That is what limits of rates are made against, and each refusal costs its turn a pause. So what was left begins
in a ramp: a few at once, and after each second twice as many in all. A hundred are under way after four seconds, a thousand after seven.

Laws (tests/gateway/test_ramp.py): in the first `t` seconds not more than `first · 2ᵗ` begin; whoever waits may begin after a time that is known; when
nothing has begun for a while, the next one begins a new ramp.
"""

from __future__ import annotations

import math

from agent_core.records import dataclass

FIRST = 8
QUIET_SECONDS = 10.0
"""After so long without a beginning, providers have forgotten us."""


@dataclass(slots=True)
class Ramp:
    """`room` asks, `took` tells."""

    first: int = FIRST
    quiet_seconds: float = QUIET_SECONDS
    began_at: float = -math.inf
    last_at: float = -math.inf
    count: int = 0
    """How many have begun in this ramp."""

    def room(self, now: float) -> bool:
        """Whether another one may begin."""
        return self.wait_seconds(now) <= 0

    def wait_seconds(self, now: float) -> float:
        """How long the next one has to wait; 0 if it may begin."""
        if self._over(now) or self.count < self.first:
            return 0.0
        due = self.began_at + math.log2((self.count + 1) / self.first)
        return max(0.0, due - now)

    def took(self, now: float) -> None:
        """One has begun."""
        if self._over(now):
            self.began_at, self.count = now, 0
        self.last_at = now
        self.count += 1

    def _over(self, now: float) -> bool:
        return now - self.last_at >= self.quiet_seconds
