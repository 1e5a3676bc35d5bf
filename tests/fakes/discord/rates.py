"""Rate limits with their headers (https://docs.discord.com/developers/topics/rate-limits). No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.discord.routes import Route


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests in so many seconds."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Rates:
    """The limits of all routes. Each counts for itself in every channel, guild, or interaction."""

    usual: Limit = Limit(1000, 1.0)
    """For routes that are not named."""
    routes: Mapping[Route, Limit] = field(default_factory=dict["Route", Limit])
    everywhere: Limit | None = None
    """For all requests together, except those of interactions."""


LIKE_THE_SERVER = Rates(
    usual=Limit(10, 5.0),
    routes={
        Route.CREATE_MESSAGE: Limit(5, 5.0),
        Route.EDIT_MESSAGE: Limit(5, 5.0),
        Route.DELETE_MESSAGE: Limit(5, 1.0),
        Route.ADD_REACTION: Limit(1, 0.25),
        Route.TYPING: Limit(5, 5.0),
    },
    everywhere=Limit(50, 1.0),
)
"""About what people observe; the server does not document its limits, and changes them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the limits say about a request."""

    headers: Mapping[str, str]
    retry_after: float = 0.0
    """Above zero: refused."""
    is_global: bool = False


@dataclass(slots=True)
class _Window:
    ends_at: float
    used: int = 0


class RateGate:
    """Counts requests."""

    def __init__(self, rates: Rates) -> None:
        self.rates = rates
        self._windows: dict[tuple[str, str], _Window] = {}

    def ask(self, route: Route, major: str, now: float, unix: float, *, counts_globally: bool) -> Verdict:
        """Count a request; the headers of its answer, and whether it is refused."""
        limit = self.rates.routes.get(route, self.rates.usual)
        window = self._window(route.value, major, limit, now)
        overall = self.rates.everywhere
        if overall is not None and counts_globally:
            whole = self._window("", "", overall, now)
            if whole.used >= overall.count:
                return Verdict({"X-RateLimit-Scope": "global"}, whole.ends_at - now, is_global=True)
            whole.used += 1
        left = max(0.0, window.ends_at - now)
        refused = window.used >= limit.count
        if not refused:
            window.used += 1
        headers = {
            "X-RateLimit-Limit": str(limit.count),
            "X-RateLimit-Remaining": str(limit.count - window.used),
            "X-RateLimit-Reset": f"{unix + left:.3f}",
            "X-RateLimit-Reset-After": f"{left:.3f}",
            "X-RateLimit-Bucket": bucket_of(route),
        }
        if refused:
            headers["X-RateLimit-Scope"] = "user"
        return Verdict(headers, left if refused else 0.0)

    def _window(self, name: str, major: str, limit: Limit, now: float) -> _Window:
        window = self._windows.get((name, major))
        if window is None or window.ends_at <= now:
            window = self._windows[name, major] = _Window(now + limit.seconds)
        return window


def bucket_of(route: Route) -> str:
    """The name of a route's bucket."""
    return hashlib.sha256(route.value.encode()).hexdigest()[:32]
