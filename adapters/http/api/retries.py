"""Which requests an SDK has sent again by itself: they join the turn of the first instead of beginning another.

Theory. OpenAI's SDKs count their retries in a header. A request with such a count, and the same body from the same caller as one that is being served,
or whose client has gone within the last minute (or the grace, if it is stopped then), is that one again. One that was answered is not: whoever asks again after an answer, a failure too, wants
another. Which are served is kept in memory. Over a restart, and where another process was asked first, a retry finds them by what their stored keys begin with
(`stored_as`): nothing more is written for that, and only a retry asks.

Laws (tests/adapters/test_retries.py): a request without a count joins nothing; no request joins one of another body, caller, person or conversation;
of two equal ones that are served, a retry joins the one whose client has gone. What was found stored is as one whose client has gone, once
(tests/adapters/test_joining.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import field

from agent_core.records import dataclass

COUNTER = "x-stainless-retry-count"
JOINED_SECONDS = 60.0
MOST = 1_000
"""So many that have gone are remembered."""


def stored_as(mark: str) -> str:
    """What the platform key of a request begins with whose client counts its retries."""
    return f"sdk:{hashlib.blake2b(mark.encode(), digest_size=12).hexdigest()}:"


def counts_retries(headers: Mapping[str, str]) -> bool:
    """Its client says how often it has sent it."""
    return headers.get(COUNTER, "").isdecimal()


def is_retry(headers: Mapping[str, str]) -> bool:
    """Its client says that it has sent it before."""
    count = headers.get(COUNTER, "")
    return count.isdecimal() and int(count[:9]) > 0


@dataclass(slots=True, eq=False)
class Served:
    """One request that is being served, or whose client has gone."""

    mark: str
    """Of its body and of who asks."""
    platform_key: str
    until: float | None = None
    """So long it can be joined; None: as long as it is served."""


@dataclass(slots=True)
class Retries:
    """The requests that a retry may join."""

    _by_mark: dict[str, list[Served]] = field(default_factory=dict[str, list[Served]])
    _gone: dict[int, Served] = field(default_factory=dict[int, Served])
    """Those whose client has gone, the first that went first."""

    def begins(self, mark: str, platform_key: str, now: float, *, retry: bool) -> Served:
        """A request begins to be served; its platform key is that of the one which it joins, if it joins one."""
        self._forget(now)
        known = self._by_mark.get(mark, [])
        if retry and known:
            joined = next((one for one in known if one.until is not None), known[0])
            platform_key = joined.platform_key
            if joined.until is not None:
                self._drop(joined)
        served = Served(mark, platform_key)
        self._by_mark.setdefault(mark, []).append(served)
        return served

    def knows(self, mark: str, now: float) -> bool:
        """There is one that a retry may join."""
        self._forget(now)
        return bool(self._by_mark.get(mark))

    def found(self, mark: str, platform_keys: Iterable[str], now: float) -> None:
        """These are stored, and their clients have gone with the process that served them, or are served by another."""
        known = {one.platform_key for one in self._by_mark.get(mark, ())}
        for key in platform_keys:
            if key not in known:
                self.left(self.begins(mark, key, now, retry=False), now, JOINED_SECONDS)

    def answered(self, served: Served) -> None:
        """Its client has its answer."""
        self._drop(served)

    def left(self, served: Served, now: float, goes_on_seconds: float) -> None:
        """Its client has gone, and it goes on so long at least."""
        served.until = now + min(goes_on_seconds, JOINED_SECONDS)
        self._gone[id(served)] = served

    def _forget(self, now: float) -> None:
        if not self._gone:
            return
        over = [one for one in self._gone.values() if one.until is not None and one.until <= now]
        for one in (*over, *list(self._gone.values())[: max(0, len(self._gone) - MOST)]):
            self._drop(one)

    def _drop(self, served: Served) -> None:
        self._gone.pop(id(served), None)
        known = self._by_mark.get(served.mark, [])
        if served in known:
            known.remove(served)
        if not known:
            self._by_mark.pop(served.mark, None)
