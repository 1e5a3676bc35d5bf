"""A gateway that shows what a script says, for tests of what a surface makes of it; and the API in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, cast

import aiohttp
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from adapters.contract.base import (
    About,
    Ended,
    FromApi,
    Gateway,
    Inbound,
    RefusedRequest,
    Showing,
    Sight,
    Summary,
    TextReader,
    Ticket,
)
from adapters.contract.callers import Caller
from adapters.http.api.surface import ApiSettings, OpenAiApi
from adapters.http.common import CALLER
from adapters.http.errorsas import Disconnect
from agent_core.failures.exits import EXITS, Exit, ExitCode
from agent_core.turn.state import CallItem
from agent_core.turn.view import Bubble, BubbleKind, View, exit_view
from tests.callers import OneKey

SUMMARY = Summary(
    seconds=1.25, steps=2, tool_calls=1, input_tokens=30, output_tokens=12, attempts=2, model="some-model"
)


class StillClock:
    """Time that passes only when a script says so."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def now_ms(self) -> int:
        return round(1_700_000_000_000 + self.at * 1000)

    def monotonic(self) -> float:
        return self.at


class CountedIds:
    """Ids that are the same each time."""

    def __init__(self) -> None:
        self.count = 0

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def seed(self) -> int:
        return 1


class ScriptFollower:
    """Gives the sights of a script; a number is time that passes without one."""

    def __init__(self, gateway: ScriptGateway) -> None:
        self._gateway = gateway
        self._script = iter(gateway.script)

    async def next(self, timeout_seconds: float, reader: TextReader | None = None) -> Sight | None:
        while True:
            await asyncio.sleep(0)
            told = next(self._script, None)
            if reader is None or not isinstance(told, Showing) or not reader.shown(told):
                return await self._given(told)

    async def _given(self, told: Sight | float | BaseException | None) -> Sight | None:
        if told is None:
            await asyncio.sleep(3600)
        if isinstance(told, BaseException):
            raise told
        if isinstance(told, int | float):
            self._gateway.clock.at += told
            return None
        return told

    async def __aenter__(self) -> ScriptFollower:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class ScriptGateway:
    """Takes everything, and shows the script."""

    def __init__(self, script: Sequence[Sight | float | BaseException]) -> None:
        self.script = script
        self.clock = StillClock()
        self.taken: list[FromApi] = []
        self.stopped: list[Ticket] = []

    def about(self) -> About:
        return About("1", ("outspoken", "some-model"), rehearsal=False)

    async def accept(self, inbound: Inbound, *, to_end: bool = False) -> Ticket:
        assert isinstance(inbound, FromApi)
        self.taken.append(inbound)
        return Ticket(7, "s_1", duplicate=False)

    def follow(self, ticket: Ticket, *, end_alone: bool = False, stored_alone: bool = False) -> ScriptFollower:
        return ScriptFollower(self)


async def unheard(_: RefusedRequest) -> None:
    """Nobody notes what is refused here."""


@asynccontextmanager
async def surface(gateway: ScriptGateway, **settings: Any) -> AsyncGenerator[str]:
    """The API before a scripted gateway; its address."""
    base: dict[str, Any] = {
        "callers": OneKey(None),
        "max_body_bytes": 1_000_000,
        "keep_alive_seconds": 15,
        "disconnect": Disconnect.DETACH,
    }
    api = OpenAiApi(cast("Gateway", gateway), ApiSettings(**{**base, **settings}), gateway.clock, CountedIds(), unheard)
    app = web.Application()
    app.add_routes(api.routes())
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def said(
    script: Sequence[Sight | float | BaseException],
    path: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """What the API says to one request of this script: status, headers, body."""
    async with (
        surface(ScriptGateway(script)) as url,
        aiohttp.ClientSession() as http,
        asyncio.timeout(30),
        http.post(f"{url}{path}", json=body, headers=headers) as response,
    ):
        return response.status, {name.lower(): value for name, value in response.headers.items()}, await response.read()


def shown(*bubbles: Bubble) -> View:
    return View(tuple(bubbles), open=True)


def text(key: str, words: str, kind: BubbleKind = BubbleKind.PARTIAL, *, final: bool = False) -> Bubble:
    return Bubble(key, kind, words, final)


def tool(key: str, name: str, state: str, seconds: int = 0) -> Bubble:
    return Bubble(
        key,
        BubbleKind.ACTIVITY,
        f'{name} {{"path": "a"}}',
        state != "running",
        tool=name,
        state=state,
        seconds=seconds,
        call=key,
    )


def ended(ending: Exit, *bubbles: Bubble, handed: tuple[CallItem, ...] = (), summary: Summary = SUMMARY) -> Ended:
    """The last sight of a turn with these bubbles and this exit."""
    last = exit_view(ending)
    return Ended("t_1", View((*bubbles, *last.bubbles), open=False, exit_code=last.exit_code), ending, handed, summary)


def example(code: ExitCode, **facts: Any) -> Exit:
    """An exit as its example has it, with other facts."""
    from agent_core.failures import exits

    return exits.read({"code": code.value, "facts": {**EXITS[code].example, **facts}})


def asked(
    caller: Caller, body: bytes = b"", headers: Mapping[str, str] | None = None, query: str = "", **named: str
) -> web.Request:
    """A request of somebody's with this body, for a handler alone."""
    request = make_mocked_request("POST", f"/?{query}", headers=headers or {}, match_info=named)
    request[CALLER] = caller
    request._read_bytes = body  # it is read from here, and from no connection
    return request
