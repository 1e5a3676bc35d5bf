"""The page without a gateway: it is told what there is for as long as its key is good, and what it says is known again where it was said."""

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

from adapters.contract.base import FromApi, MessageState, Ticket, TurnSight
from adapters.contract.callers import ANYBODY, Caller
from adapters.http.web import BROWSER, WebChat, WebSettings
from agent_core.ports import SystemClock, SystemIds
from agent_core.turn.view import View
from tests.agent_core.turns import gives

WORDS = TurnSight("m1", 1, MessageState.OPEN, "hello", view=View((), open=True))
Next = Callable[[float], Awaitable[tuple[TurnSight, ...] | None]]


class Key:
    """The one key that there is, as long as it is good."""

    keyless, good = False, True

    def __init__(self) -> None:
        self.caller = Caller("laptop", "ada")

    def who(self, shown: str, headers: object) -> Caller:
        del shown, headers
        return self.caller

    def holds(self, caller: Caller) -> bool:
        assert caller.key == "laptop"
        return self.good

    left = staticmethod(gives(()))


@asynccontextmanager
async def page(key: Key, seen: Next, follower: Any = None) -> AsyncGenerator[aiohttp.ClientResponse]:
    """The events of a page whose conversation has this to tell."""

    @asynccontextmanager
    async def follow(_: object) -> AsyncGenerator[Any]:
        yield follower or SimpleNamespace(next=seen, over=False)

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


async def test_a_page_ends_where_nothing_more_is_to_be_seen_here() -> None:
    async def seen(_: float) -> None:
        await asyncio.sleep(0.01)

    follower = SimpleNamespace(next=seen, over=False)
    async with page(Key(), seen, follower) as events, asyncio.timeout(10):
        assert await events.content.readline() == b": keep-alive\n"
        follower.over = True
        await events.content.read()


async def said_by(browser: str, session: str, message: str, caller: Caller = ANYBODY) -> str:
    """The key under which something that the page says is accepted."""
    known: list[str] = []

    async def accept(inbound: FromApi) -> Ticket:
        known.append(inbound.platform_key)
        return Ticket(1, "s", duplicate=False)

    clock, gateway = SystemClock(), SimpleNamespace(accept=accept)
    key = Key()
    key.caller = caller
    commands: Any = gives(SimpleNamespace(named=gives(("", ""))))
    made: Any = WebChat(gateway, WebSettings(key, 1), clock, SystemIds(clock), {}, commands)  # pyright: ignore[reportArgumentType]
    app = Application()
    app.add_routes(made.routes())
    async with TestServer(app) as server, aiohttp.ClientSession(headers={BROWSER: browser}) as http:
        body = {"id": message, "text": "hello"}
        async with http.post(server.make_url(f"/api/sessions/{session}/messages"), json=body) as answer:
            assert answer.status == 202, await answer.text()
    return known[0]


async def test_what_a_page_says_is_known_again_in_its_own_conversation_alone() -> None:
    own, open_ = "c-00000001", "page-0001"
    ada, bob = Caller("laptop", "ada"), Caller("laptop", "bob")
    said = [
        *[(browser, session, message, ANYBODY)
          for browser in ("browser-1", "browser-2") for session in (own, "c-00000002") for message in ("message1", "message2")],
        ("browser-1", open_, "message1", ANYBODY), ("browser-1", own, "message1", ada), ("browser-1", own, "message1", bob),
    ]  # fmt: skip
    keys = [await said_by(*one) for one in said]
    assert len(set(keys)) == len(said), "two of different conversations or people are never one"
    assert [await said_by(*one) for one in said] == keys, "sent again under the same id it is the same"
    assert await said_by("browser-2", open_, "message1") == await said_by("browser-1", open_, "message1")


async def test_nothing_is_told_to_a_key_that_is_not_good_any_more() -> None:
    key = Key()

    async def seen(_: float) -> tuple[TurnSight, ...]:
        key.good = False  # while the page waits for it
        return (WORDS,)

    async with page(key, seen) as events, asyncio.timeout(10):
        assert await events.content.read() == b""
