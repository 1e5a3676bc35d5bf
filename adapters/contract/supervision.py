"""What a supervised adapter offers, and how it says that it is down."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, runtime_checkable

from aiohttp import web

from adapters.contract.chat import AdapterSight, ChatPort
from adapters.contract.redacted import redacted


class AdapterDown(Exception):
    """The adapter cannot go on; the words say why and what to do. A `fatal` one needs a person."""

    def __init__(self, words: str, *, fatal: bool = False, wait_seconds: float = 0.0) -> None:
        super().__init__(redacted(words))
        self.fatal = fatal
        self.wait_seconds = wait_seconds


UP, DOWN, NEEDS_A_PERSON = "up", "down", "needs a person"
"""States of an adapter that it may tell apart itself, see `Supervised.sight`."""
KNOWN_KEYS = 2_000
TWIN_SECONDS = 600.0
"""So long it is told that somebody else was heard by our account."""
SETTLED_SECONDS = 60.0
"""What an earlier process of ours was just sending has come by then."""


class OtherGateway:
    """Finds out whether another gateway speaks by our account: what appears there with a mark as ours have it, and that we did not send."""

    def __init__(self, title: str, now: float, *, expected: bool = False) -> None:
        """`expected`: others do, and are no news."""
        self._title, self._expected = title, expected
        self._began = now
        self._heard: float | None = None
        self._sent: OrderedDict[str, None] = OrderedDict()

    def sends(self, mark: str) -> None:
        """A call with this mark goes out."""
        self._sent[mark] = None
        if len(self._sent) > KNOWN_KEYS:
            self._sent.popitem(last=False)

    def sent(self, mark: str) -> bool:
        """It is ours."""
        return mark in self._sent

    def heard(self, mark: str, now: float) -> bool:
        """Something with this mark appeared by our account; whether that is news, and somebody else's."""
        if self._expected or mark in self._sent or now - self._began < SETTLED_SECONDS:
            return False
        news = not self.words(now)
        self._heard = now
        return news

    def words(self, now: float) -> str:
        """What there is to tell; empty if nothing."""
        if self._heard is None or now - self._heard > TWIN_SECONDS:
            return ""
        return (
            f"Another gateway answers on {self._title} by this bot: people get two answers, and each gateway knows half of what was said. "
            "Stop one of the two, or give one a bot of its own."
        )


class Connections(Protocol):
    """Which of an account's connections this gateway has, by their numbers: all of them, unless several gateways divide them."""

    async def while_had(self, number: int, work: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        """Do it whenever we have this connection, until cancelled. What `work` raises ends it."""
        ...

    def has(self, number: int, /) -> bool: ...

    async def may_open(self) -> None:
        """Return when a connection may be opened: not while another gateway may have been given ours, which would be cut off by it."""
        ...

    async def doubted(self) -> None:
        """Return when another gateway may have been given ours by now."""
        ...

    def handed(self, number: int, /) -> bool:
        """Somebody has just handed it to us, who lives and went on until then. Said once: whoever begins anew later has a gap all the same."""
        ...


class AllConnections:
    """There is nobody to divide them with."""

    async def while_had(self, _: int, work: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        await work()

    def has(self, _: int, /) -> bool:
        return True

    async def may_open(self) -> None:
        pass

    async def doubted(self) -> None:
        await asyncio.Event().wait()

    def handed(self, _: int, /) -> bool:
        return False


@runtime_checkable
class SeveralConnections(Protocol):
    """An adapter with several connections, which several gateways can divide: `run` has those that `held` says, and goes on while there is one."""

    connections: int
    held: Connections

    @property
    def any_works(self) -> bool:
        """One of those that are ours is open, or waits for nothing but its turn."""
        ...


class Supervised(Protocol):
    """An adapter as its supervisor sees it."""

    name: str
    account: str

    @property
    def port(self) -> ChatPort: ...

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Whatever sending needs, for the block; longer than any `run`."""
        ...

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled, and call `up` when it works. Raises `AdapterDown`."""
        ...

    async def stand(self) -> None:
        """Make ready to send while another gateway has the connection and receives, and see that the platform is there: called again and again. Raises `AdapterDown`."""
        ...

    async def again(self, body: bytes) -> None:
        """Take in what was kept as raw (`adapters.contract.chat.Raw.body`). Raises whatever goes wrong."""
        ...

    @property
    def silent_seconds(self) -> float:
        """How long there was no sign of life from the platform."""
        ...

    @property
    def deaf_after_seconds(self) -> float:
        """A silence longer than this means that the connection is dead."""
        ...

    def routes(self) -> list[web.RouteDef]:
        """What the platform calls at our server."""
        ...

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        """How it is doing, given how its supervisor sees it. One that runs, and whose connection is gone just now, is not up."""
        ...
