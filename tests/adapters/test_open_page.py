"""An open page is told what there is for as long as its key is good, and no longer: a page may stand open for days."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from aiohttp.web import Application

from adapters.contract.base import MessageState, TurnSight
from adapters.contract.callers import EVERYTHING, Caller
from adapters.http.web import WebChat, WebSettings
from agent_core.ports import SystemClock, SystemIds
from agent_core.turn.view import View
from tests.agent_core.turns import gives

WORDS = TurnSight("m1", 1, MessageState.OPEN, "hello", view=View((), open=True))
Next = Callable[[float], Awaitable[tuple[TurnSight, ...] | None]]


class Key:
    """The one key that there is, as long as it is good."""

    keyless, good = False, True

    def who(self, shown: str, headers: object) -> Caller:
        del shown, headers
        return Caller("laptop", "ada", EVERYTHING)

    def holds(self, caller: Caller) -> bool:
        assert caller.key == "laptop"
        return self.good

    left = staticmethod(gives(()))


@asynccontextmanager
async def page(key: Key, seen: Next) -> AsyncGenerator[aiohttp.ClientResponse]:
    """The events of a page whose conversation has this to tell."""

    @asynccontextmanager
    async def follow(_: object) -> AsyncGenerator[Any]:
        yield SimpleNamespace(next=seen)

    clock, gateway = SystemClock(), SimpleNamespace(follow_session=follow)
    none: Any = None
    made: Any = WebChat(gateway, WebSettings(key, 0.02), clock, SystemIds(clock), {}, none)  # pyright: ignore[reportArgumentType]
    app = Application()
    app.add_routes(made.routes())
    path = "/api/sessions/page-0001/events"
    async with TestServer(app) as server, aiohttp.ClientSession() as http, http.get(server.make_url(path)) as events:
        yield events


@pytest.mark.parametrize("speaks", [True, False])
async def test_a_page_ends_when_its_key_is_not_good_any_more_whatever_happens_in_it(*, speaks: bool) -> None:
    key = Key()

    async def seen(seconds: float) -> tuple[TurnSight, ...] | None:
        await asyncio.sleep(min(seconds, 0.01))
        return (WORDS,) if speaks else None

    async with page(key, seen) as events, asyncio.timeout(10):
        told = await events.content.readline()
        assert told == (b"event: snapshot\n" if speaks else b": keep-alive\n")
        key.good = False
        await events.content.read()


async def test_nothing_is_told_to_a_key_that_is_not_good_any_more() -> None:
    key = Key()

    async def seen(_: float) -> tuple[TurnSight, ...]:
        key.good = False  # while the page waits for it
        return (WORDS,)

    async with page(key, seen) as events, asyncio.timeout(10):
        assert await events.content.read() == b""
