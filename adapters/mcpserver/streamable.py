"""The way by HTTP: the package's own streamable HTTP, which speaks ASGI, on a request of our server.

Who calls was looked at before (`gateway.http.mcpdoor`). A session belongs to whoever began it: with another key it is not there.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from aiohttp import web
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from adapters.mcpserver.doing import GatewayWay
from adapters.mcpserver.serving import Context, mcp_server
from agent_core.text.wellformed import whole_json

IDLE_SECONDS = 30 * 60
MOST_SESSIONS = 1_000
CLOSE_SECONDS = 2.0
"""At the end, what is being answered may take so long."""
Message = MutableMapping[str, Any]
_WAY = "outspoken.way"


class StreamableDoor:
    """Serves clients by HTTP, from `opened` to `aclose`."""

    def __init__(self, version: str, most_bytes: int) -> None:
        async def way_of(context: Context) -> GatewayWay:
            way: object = context.request.scope[_WAY] if context.request is not None else None
            assert isinstance(way, GatewayWay)
            return way

        self._manager = StreamableHTTPSessionManager(
            mcp_server(version, way_of),
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MOST_SESSIONS,
            max_request_body_size=most_bytes,
        )
        self._over = asyncio.Event()
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()
        self._listens: set[asyncio.Task[None]] = set()

    async def opened(self) -> None:
        """Begin; returns when requests can be served."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="mcp door")
        await self._ready.wait()

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()

    async def aclose(self) -> None:
        """End all sessions; what is being answered may come to its end first."""
        loop = asyncio.get_running_loop()
        until = loop.time() + CLOSE_SECONDS
        if self._posts:
            await asyncio.wait([*self._posts], timeout=until - loop.time())
        self._over.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait({self._task}, timeout=CLOSE_SECONDS)

    async def serve(self, request: web.Request, way: GatewayWay) -> web.StreamResponse:
        """One request, to the end of its answer."""
        body = whole_json(await request.read())
        answering = _AsgiAnswer(request, body)
        scope = _scope(request, way)
        loop = asyncio.get_running_loop()
        task = loop.create_task(
            self._manager.handle_request(scope, answering.receive, answering.send), name="mcp request"
        )
        served = self._posts if request.method == "POST" else self._listens
        served.add(task)
        task.add_done_callback(served.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:  # the client has gone: the package decides what that ends
            answering.gone.set()
            raise
        return await answering.finished()


def _scope(request: web.Request, way: GatewayWay) -> dict[str, Any]:
    whose = hashlib.blake2b(
        "\0".join((way.key or "", way.operator_key or "", *_flat(way.more))).encode("utf-8", "replace"), digest_size=16
    ).hexdigest()
    token = AccessToken(token="", client_id=whose, scopes=[])
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.scheme,
        "path": request.path,
        "raw_path": request.raw_path.encode("utf-8", "replace"),
        "query_string": request.query_string.encode("utf-8", "replace"),
        "root_path": "",
        "headers": [
            (name.lower().encode("utf-8", "replace"), value.encode("utf-8", "replace"))
            for name, value in request.headers.items()
        ],
        "client": None,
        "server": None,
        "user": AuthenticatedUser(token),
        _WAY: way,
    }


def _flat(headers: Mapping[str, str]) -> list[str]:
    return [part for name in sorted(headers) for part in (name, headers[name])]


class _AsgiAnswer:
    """The two ends that ASGI wants, on a request of aiohttp's."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self._request = request
        self._body: bytes | None = body
        self._status = 500
        self._headers: list[tuple[str, str]] = []
        self._response: web.StreamResponse | None = None
        self.gone = asyncio.Event()
        """The client has gone."""

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self.gone.is_set():
            return
        with suppress(ConnectionError):  # it goes just now, and whoever serves it is about to be told
            await self._send(message)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = int(message["status"])
            self._headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
            if not any(name.lower() == "content-length" for name, _ in self._headers):
                await self._begun(whole=False)  # a stream: it may be long before there is something to say
        elif message["type"] == "http.response.body":
            response = await self._begun(whole=not message.get("more_body", False))
            if data := message.get("body", b""):
                await response.write(data)
            if not message.get("more_body", False):
                await response.write_eof()

    async def _begun(self, *, whole: bool) -> web.StreamResponse:
        if self._response is None:
            response = web.StreamResponse(status=self._status)
            for name, value in self._headers:
                if whole or name.lower() != "content-length":
                    response.headers.add(name, value)
            self._response = response
            await response.prepare(self._request)
        return self._response

    async def finished(self) -> web.StreamResponse:
        """What was answered; something always is."""
        return await self._begun(whole=False)
