"""A program that is told: a real server on a socket, which can be slow, refuse, hang and hang up. It checks every signature as the
specification says, with nothing of ours; this was compared with its reference library (`standardwebhooks` 1.1.0)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

KEY = b"k" * 32
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
Answer = Callable[["Told"], Awaitable[web.StreamResponse]]


def verify(raw: bytes, headers: dict[str, str], *, punctual: bool = True) -> None:
    """Raises AssertionError if it is not signed as the specification says."""
    name, stamp = headers["webhook-id"], headers["webhook-timestamp"]
    made = hmac.new(KEY, b".".join((name.encode(), stamp.encode(), raw)), hashlib.sha256).digest()
    given = [one.partition(",") for one in headers["webhook-signature"].split(" ")]
    assert base64.b64encode(made).decode() in [value for version, _, value in given if version == "v1"]
    assert not punctual or abs(time.time() - int(stamp)) < 300


@dataclass
class Told:
    """One request that came."""

    id: str
    body: dict[str, Any]
    raw: bytes
    headers: dict[str, str]
    request: web.Request = field(repr=False)


def status(code: int, **headers: str) -> Answer:
    async def answer(_: Told) -> web.StreamResponse:
        return web.Response(status=code, headers=headers)

    return answer


async def hang(_: Told) -> web.StreamResponse:
    """Says nothing, for long."""
    await asyncio.sleep(600)
    return web.Response()


async def hang_up(told: Told) -> web.StreamResponse:
    """Closes the connection instead of an answer."""
    assert told.request.transport is not None
    told.request.transport.close()
    return web.Response()


async def endless(told: Told) -> web.StreamResponse:
    """Says that it has it, and never ends saying more."""
    response = web.StreamResponse()
    await response.prepare(told.request)
    for _ in range(10_000):
        await response.write(b"x" * 10_000)
    return response


async def unfinished(told: Told) -> web.StreamResponse:
    """Says that it has it, and neither says more nor ends."""
    response = web.StreamResponse()
    await response.prepare(told.request)
    await response.write(b"x")
    await asyncio.sleep(600)
    return response


@dataclass
class ReceiverServer:
    """What came, and how it is answered: each answer once, and then the usual one."""

    url: str = ""
    came: list[Told] = field(default_factory=list[Told])
    answers: list[Answer] = field(default_factory=list[Answer])
    usual: Answer = field(default_factory=lambda: status(200))
    punctual: bool = True
    """The sender's clock is ours."""
    under_way: int = 0
    most_under_way: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        verify(raw, headers, punctual=self.punctual)
        told = Told(headers["webhook-id"], orjson.loads(raw), raw, headers, request)
        self.came.append(told)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        self._news.set()
        try:
            return await (self.answers.pop(0) if self.answers else self.usual)(told)
        finally:
            self.under_way -= 1

    @property
    def ids(self) -> list[str]:
        return [one.id for one in self.came]

    async def until(self, count: int, seconds: float = 30) -> None:
        """Wait until so many requests have come."""
        async with asyncio.timeout(seconds):
            while len(self.came) < count:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def receiving(port: int = 0) -> AsyncGenerator[ReceiverServer]:
    """A server for the block."""
    server = ReceiverServer()
    app = web.Application()
    app.router.add_post("/hook", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield server
    finally:
        await runner.cleanup()
