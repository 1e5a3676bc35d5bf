"""A stream is there as soon as somebody wants to hear it, and over as soon as nobody does."""

from __future__ import annotations

import asyncio

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.mcpserver.doing import GatewayWay
from adapters.mcpserver.streamable import StreamableDoor, _AsgiAnswer
from tests.mcpserver.test_served import INITIALIZE, head


async def test_a_stream_is_answered_before_there_is_something_to_say() -> None:
    said = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        answer = _AsgiAnswer(request, b"")
        kind = (b"content-type", b"text/event-stream")
        await answer.send({"type": "http.response.start", "status": 200, "headers": [kind]})
        await said.wait()
        await answer.send({"type": "http.response.body", "body": b"data: x\n\n"})
        return await answer.finished()

    app = web.Application()
    app.router.add_get("/", serve)
    async with TestServer(app) as server, aiohttp.ClientSession() as http, asyncio.timeout(20):
        answer = await http.get(server.make_url("/"))
        said.set()
        assert (answer.status, answer.content_type, await answer.read()) == (200, "text/event-stream", b"data: x\n\n")


async def test_a_client_that_has_gone_leaves_nothing_behind() -> None:
    door = StreamableDoor("1", 100_000)
    await door.opened()

    async def serve(request: web.Request) -> web.StreamResponse:
        return await door.serve(request, GatewayWay("http://127.0.0.1:1", None, None))

    app = web.Application()
    app.router.add_route("*", "/mcp", serve)
    async with TestServer(app, handler_cancellation=True) as server, asyncio.timeout(20):
        at = server.make_url("/mcp")
        async with aiohttp.ClientSession() as http:
            begun = await http.post(at, json=INITIALIZE, headers=head())
            session = {**head(), "Mcp-Session-Id": begun.headers["Mcp-Session-Id"]}
            listens = await http.get(at, headers=session)
            assert (listens.status, len(door._listens)) == (200, 1)
            listens.close()
            while door._listens:
                await asyncio.sleep(0.01)
        await door.aclose()
