"""What a supervised adapter offers, and how it says that it is down."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from aiohttp import web

from adapters.contract.chat import AdapterSight, ChatPort
from adapters.contract.redacted import redacted


class AdapterDown(Exception):
    """The adapter cannot go on; the words say why and what to do. A `fatal` one needs a person."""

    def __init__(self, words: str, *, fatal: bool = False, wait_seconds: float = 0.0) -> None:
        super().__init__(redacted(words))
        self.fatal = fatal
        self.wait_seconds = wait_seconds


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

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight: ...
