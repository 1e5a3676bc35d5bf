"""A bug in showing must not leave a client without an end."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType

import aiohttp
from aiohttp import web

from adapters.contract.base import RefusedRequest, Sight, TextReader, Ticket
from adapters.http.api.surface import ApiSettings, OpenAiApi
from adapters.http.errorsas import Disconnect, ErrorsAs
from agent_core.ports import SystemClock, SystemIds
from gateway.sessions.hub import Hub
from tests.callers import OneKey
from tests.serving import served


class BrokenFollower:
    """Gives one sight of the real turn, and then a bug."""

    def __init__(self, hub: Hub, ticket: Ticket) -> None:
        self._real = hub.follow(ticket)
        self._given = False

    async def next(self, timeout_seconds: float, reader: TextReader | None = None) -> Sight | None:
        if self._given:
            raise RuntimeError("planted")
        self._given = True
        return await self._real.next(timeout_seconds, reader)

    async def __aenter__(self) -> BrokenFollower:
        await self._real.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._real.__aexit__(kind, error, trace)


async def _unheard(_: RefusedRequest) -> None:
    """Nobody notes what is refused here."""


class BrokenHub(Hub):
    """The real hub, but for its followers."""

    def follow(self, ticket: Ticket, *, end_alone: bool = False, stored_alone: bool = False) -> BrokenFollower:  # pyright: ignore[reportIncompatibleMethodOverride]
        return BrokenFollower(self.real, ticket)

    real: Hub


async def test_a_stream_that_breaks_in_our_own_code_ends_in_words(tmp_path: Path):
    async with served(tmp_path) as up:
        hub = object.__new__(BrokenHub)
        hub.__dict__.update(up.hub.__dict__)
        hub.real = up.hub
        clock = SystemClock()
        settings = ApiSettings(OneKey(None), 1_000_000, 1, Disconnect.DETACH, errors=ErrorsAs.WORDS)
        api = OpenAiApi(hub, settings, clock, SystemIds(clock), _unheard)
        app = web.Application()
        app.add_routes(api.routes())
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/chat/completions"
        body = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            text = await response.text()
        await runner.cleanup()
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    assert "Something went wrong inside the gateway" in text
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert text.rstrip().endswith("data: [DONE]")
