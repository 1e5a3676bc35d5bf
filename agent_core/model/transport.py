"""The way to a model's address: aiohttp's connections under the SDK's HTTP client, with a body whose socket is read when somebody wants it.

The SDK brings such a transport; its body cannot be told to wait, so that a stream of which people see a frame twenty times a second was
still read, parsed and put into a queue for each of its pieces. Here the socket is left alone between two reads of a body that is `slow`: what comes
meanwhile waits in the kernel, and comes at once. Nothing else is different. Where a proxy stands in between, the SDK's own transport is used.
"""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import AsyncIterator

import aiohttp
import httpx2
from typing_extensions import override

BODY = "outspoken_body"
"""The extension of a response by which its body is found, since the client hides it in one of its own."""


LARGE_BYTES = 262_144
"""A larger request is sent in pieces, between which others have their turn."""
KEPT_SECONDS = 5.0
"""How long a connection that nobody uses is kept."""


class RestingBody(httpx2.AsyncByteStream):
    """The body of an answer, as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.next():
            yield data

    async def next(self) -> bytes:
        """All that has come, as soon as something has; empty at the end."""
        transport = self._transport()
        if transport is not None and not transport.is_reading():
            transport.resume_reading()
        return await self._response.content.readany()

    def rest(self) -> None:
        """Leave the socket alone until `next` is asked again."""
        transport = self._transport()
        if transport is not None and not transport.is_closing() and transport.is_reading():
            transport.pause_reading()

    def _transport(self) -> asyncio.Transport | None:
        connection = self._response.connection  # none any more once all of the body is here
        return connection.transport if connection is not None else None

    @override
    async def aclose(self) -> None:
        await self._response.__aexit__(None, None, None)


class ModelTransport(httpx2.AsyncBaseTransport):
    """Requests by a session of aiohttp's, made at first use."""

    def __init__(self, trusted: ssl.SSLContext, most: int) -> None:
        """`most` connections at a time."""
        self._trusted = trusted
        self._most = most
        self._session: aiohttp.ClientSession | None = None

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._most, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        content = await request.aread()
        timeout = request.extensions.get("timeout", {})
        answer = await self._session.request(
            request.method,
            str(request.url),
            headers=request.headers,
            data=io.BytesIO(content) if len(content) > LARGE_BYTES else content or None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=timeout.get("connect"),
                sock_read=timeout.get("read"),
                connect=timeout.get("pool"),
            ),
        )
        body = RestingBody(answer)
        return httpx2.Response(
            answer.status,
            headers=answer.raw_headers,
            stream=body,
            request=request,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": (answer.reason or "").encode(), BODY: body},
        )

    @override
    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
