"""A server that is reached by HTTP: the package's transport, on a client with bounds of ours.

Nothing is sent anywhere but to the configured address: redirects are followed within it alone. What the server sends is bounded, an event by the
package and a plain answer here.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

import httpx2
import orjson
from mcp.client.streamable_http import streamable_http_client
from typing_extensions import override

from agent_core.jsonvalue import Json
from agent_core.tools.asking import MOST_SECONDS
from agent_core.tools.mcp.link import FLOODS, ON_ITS_WAY, McpLink, Pace
from agent_core.tools.mcp.terms import ServerTerms

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

CONNECT_SECONDS = 15.0
EVENTS = "text/event-stream"
FORGOTTEN = "has forgotten our session"
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
"""No connection came about, so that nothing of a request has left."""
SAID_CHARS = 2_000
_OF_A_SESSION = re.compile(r"session|not initialized", re.IGNORECASE)
_OF_THE_CALL = frozenset({-32601, -32602})
"""Codes of JSON-RPC for what was asked: no such method, arguments that do not fit."""


@asynccontextmanager
async def over_http(terms: ServerTerms, link: McpLink, auth: httpx2.Auth | None) -> AsyncGenerator[TransportStreams]:
    """The way to the server for the block."""
    patience = httpx2.Timeout(CONNECT_SECONDS, read=terms.limit_seconds + MOST_SECONDS)
    transport = _Watched(httpx2.AsyncHTTPTransport(), link, terms.message_bytes, terms.url, login=auth is not None)
    async with (
        httpx2.AsyncClient(transport=transport, headers=dict(terms.headers), auth=auth, timeout=patience) as client,
        streamable_http_client(terms.url, http_client=client, max_sse_event_size=terms.message_bytes) as streams,
    ):
        yield streams


class _Watched(httpx2.AsyncBaseTransport):
    """Tells the connection's owner what the way to the server meets, and bounds answers that are no streams of events."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, link: McpLink, most: int, address: str, *, login: bool
    ) -> None:
        self._inner, self._link, self._most, self._address = inner, link, most, str(httpx2.URL(address))
        self._login = login
        self._pace = Pace(monotonic())

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            self._link.broke(f"it cannot be reached: {_words(error)}")
            if isinstance(error, _NOT_SENT):
                _answered(request, f"cannot be reached: {_words(error)}")
            raise
        if not str(request.url).startswith(self._address):  # of a login: whoever asked judges it
            return response
        if response.status_code == 401 and self._login:
            return response  # the login sees to it, or says why not
        # Else it is about the stream of what nobody asked for, which many servers do not have.
        asks = request.method == "POST"
        if asks and response.status_code in (401, 403):
            self._link.refused = f"it refuses us (HTTP {response.status_code}): its token is missing, wrong or over"
        elif await self._forgets(request, response):
            self._link.broke(f"it {FORGOTTEN}")
            _answered(request, FORGOTTEN)
        elif asks and response.status_code >= 500:
            self._link.failed = f"answered HTTP {response.status_code}, so something went wrong there"
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if response.headers.get("content-type", "").startswith(EVENTS):
            response.stream = _Paced(response.stream, self._pace, self._link)
        else:
            response.stream = _Bounded(response.stream, self._most, self._link)
        if response.status_code < 300:
            _answered(request)
        return response

    async def _forgets(self, request: httpx2.Request, response: httpx2.Response) -> bool:
        """Whether a server says that it does not know our session. The protocol has 404 for that; many servers say 400, after earlier examples of its own
        packages (modelcontextprotocol/typescript-sdk#389, python-sdk#1727)."""
        if not request.headers.get("mcp-session-id") or response.status_code not in (400, 404):
            return False
        if response.status_code == 404:
            return True
        if request.method != "POST":
            return False
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, self._most, self._link)
        with suppress(httpx2.StreamError, httpx2.TransportError):
            return of_a_session(await response.aread())
        return False

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A body with an end."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int, link: McpLink) -> None:
        self._inner, self._most, self._link = inner, most, link

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for piece in self._inner:
            seen += len(piece)
            self._link.came += len(piece)
            if seen > self._most:
                self._link.failed = f"answered with more than {self._most} bytes"
                raise httpx2.StreamError(self._link.failed)
            yield piece

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


class _Paced(httpx2.AsyncByteStream):
    """Events that are counted: each is work for the loop, whatever it says."""

    def __init__(self, inner: httpx2.AsyncByteStream, pace: Pace, link: McpLink) -> None:
        self._inner, self._pace, self._link = inner, pace, link

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        last = b""
        async for piece in self._inner:
            self._link.came += len(piece)
            read = last + piece.replace(b"\r", b"")
            last = read[-1:] if not read.endswith(b"\n\n") else b""
            now = monotonic()
            for _ in range(read.count(b"\n\n")):
                if self._pace.took(now):
                    self._link.broke(FLOODS)
                    raise httpx2.ReadError(FLOODS)
            yield piece

    @override
    async def aclose(self) -> None:
        await self._inner.aclose()


def _answered(request: httpx2.Request, why: str = "") -> None:
    """A call's request was answered, or in place of that: `why` it cannot have been taken."""
    call = ON_ITS_WAY.get()
    if call is not None and request.method == "POST":
        call.taken, call.why = call.taken or not why, why or call.why


def of_a_session(said: bytes) -> bool:
    """Whether a refusal is about the session in which something was asked, and not about what was asked. Pure."""
    text = said.decode("utf-8", "replace")
    found: Json = None
    with suppress(orjson.JSONDecodeError):
        found = orjson.loads(said)
    error = found.get("error") if isinstance(found, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code not in _OF_THE_CALL and _OF_A_SESSION.search(text[:SAID_CHARS]) is not None


def _words(error: httpx2.TransportError) -> str:
    return str(error) or type(error).__name__
