"""The way to a model's address: connections of aiohttp's, and answers whose socket is read when somebody wants it.

The SDK's own client is not in it: with what it is made of it costs 9 MiB and a fifth of a second at the first call, and built each request anew. Of
a stream of which people see a frame twenty times a second it read, parsed and queued each piece. Here the socket is left alone between two
reads of a body that rests: what comes meanwhile waits in the kernel, and comes at once.

Known to be weak: proxies are those that speak HTTP; SOCKS is none of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from typing_extensions import override
from yarl import URL

from agent_core.jsonvalue import Json
from agent_core.model.reach import TransportBroke, theirs
from agent_core.model.stream.bodies import ERROR, PACKED, STREAM, WHOLE, BodyLimits, bounded

LARGE_BYTES = 262_144
"""A larger request is sent in pieces, between which others have their turn."""
KEPT_SECONDS = 5.0
"""How long a connection that nobody uses is kept."""
MAX_CONNECTIONS = 100_000
"""No limit of ours: a call that waits in a queue would look like a model that says nothing."""
CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep whom they trust, for a Python that was built elsewhere."""


class RequestNotTaken(Exception):
    """The server took nothing of a request."""

    def __init__(self, status: int, body: Json, headers: Mapping[str, str]) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body
        """What it says: of JSON with an ``error`` that alone, else all of it; text where it is no JSON."""
        self.headers = headers


class TokenBody(aiohttp.StreamReader):
    """A body whose pieces are read together. aiohttp's own reader notes where each chunk of HTTP's ends, asks of each whether reading should go
    on, and has them taken one by one: of a stream of tokens that cost more than what is in them."""

    __slots__ = ()

    @override
    def begin_http_chunk_receiving(self) -> None: ...

    @override
    def end_http_chunk_receiving(self) -> None: ...

    @override
    def feed_data(self, data: bytes, size: int = 0) -> bool:
        if data:
            self._buffer.append(data)
            self._size += len(data)
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            if self._size > self._high_water:
                self._protocol.pause_reading()
        return False

    @override
    async def readany(self) -> bytes:
        pieces = self._buffer
        if self._exception is not None:
            raise self._exception
        while not pieces and not self._eof:
            if not self._protocol.connected:
                raise RuntimeError("the connection is closed")
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        full, self._size = self._size > self._high_water, 0
        if full:
            self._protocol.resume_reading()
        return data


class ModelAnswer:
    """An answer that takes a request, its body not read yet."""

    __slots__ = ("_pieces", "_response", "_resting", "_rests", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        encoding = response.headers.get("content-encoding", "").strip().lower()
        whole = "application/json" in response.headers.get("content-type", "")
        self._rests = not whole and encoding in ("", "identity")
        """Nothing stands in the path of tokens."""
        self._resting = False
        if type(response.content) is aiohttp.StreamReader:  # its parser makes no other
            response.content.__class__ = TokenBody
        self._pieces = _pieces(response, WHOLE if whole else STREAM)

    async def next(self) -> bytes | None:
        """What has come, as soon as something has; None at the end. Raises `TransportBroke`."""
        try:
            if not self._rests:
                return await anext(self._pieces, None)
            if self._resting:
                self._resting = False
                if (transport := self._transport()) is not None:
                    transport.resume_reading()
            return await self._response.content.readany() or None
        except Exception as error:
            raise TransportBroke from error

    def rest(self) -> None:
        """Leave the socket alone until `next` is asked again."""
        transport = self._transport() if self._rests else None
        if transport is not None and not transport.is_closing():
            transport.pause_reading()
            self._resting = True

    def _transport(self) -> asyncio.Transport | None:
        connection = self._response.connection  # none any more once all of the body is here
        return connection.transport if connection is not None else None


class ModelLine:
    """One credential's way to an address, with all that is the same in each of its calls. Connections are made at first use."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """`url` is what is posted to. Raises `aiohttp.InvalidURL` for what is no address, `OSError` for authorities that cannot be read."""
        try:
            self._url = URL(url)
        except ValueError as error:
            raise aiohttp.InvalidURL(url) from error
        self._headers = dict(headers)
        self._trusted = trusted()
        self._proxy, self._proxy_auth = proxy_of(url)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def asked(self, body: bytes, connect_seconds: float) -> AsyncGenerator[ModelAnswer]:
        """The answer to a request; leaving the block closes its connection. Raises `TransportBroke`, `RequestNotTaken`."""
        with theirs(RequestNotTaken):
            response = await self._sent(body, connect_seconds)
            try:
                refused = None if 200 <= response.status < 300 else await _refused(response)
            except BaseException:
                await _left(response)
                raise
        del body
        try:
            if refused is not None:
                raise refused
            yield ModelAnswer(response)
        finally:
            await _left(response)

    async def _sent(self, body: bytes, connect_seconds: float) -> aiohttp.ClientResponse:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return await self._session.post(
            self._url,
            headers=self._headers,
            data=io.BytesIO(body) if len(body) > LARGE_BYTES else body,
            allow_redirects=False,
            proxy=self._proxy,
            proxy_auth=self._proxy_auth,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        )

    async def aclose(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()


async def _left(response: aiohttp.ClientResponse) -> None:
    with contextlib.suppress(Exception):  # what was read counts, however the connection is taken down
        await response.__aexit__(None, None, None)


async def _refused(response: aiohttp.ClientResponse) -> RequestNotTaken:
    data = b"".join([piece async for piece in _pieces(response, ERROR)])
    try:
        text = data.decode(response.charset or "utf-8", "replace").strip()
    except LookupError:  # a charset that nobody knows
        text = data.decode("utf-8", "replace").strip()
    said: Json = text
    with contextlib.suppress(ValueError, RecursionError):
        said = cast("Json", json.loads(text))
    body = said.get("error", said) if isinstance(said, dict) else said
    return RequestNotTaken(response.status, body, dict(response.headers.items()))


def _pieces(response: aiohttp.ClientResponse, limits: BodyLimits) -> AsyncGenerator[bytes]:
    packed = response.headers.get("content-encoding", "").strip().lower() in PACKED
    return bounded(_raw(response), limits, packed=packed)


async def _raw(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    while data := await response.content.readany():
        yield data


def proxy_of(url: str) -> tuple[URL | None, aiohttp.BasicAuth | None]:
    """The proxy that the environment names for an address (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY), and who we are for it."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None, None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    if not found:
        return None, None
    address = URL(found if "://" in found else f"http://{found}")
    return address.with_user(None), aiohttp.BasicAuth.from_url(address)


@cache
def trusted() -> ssl.SSLContext:
    """Whom all connections trust: what SSL_CERT_FILE or SSL_CERT_DIR name, else the system's authorities. Reading them takes 50 ms. Raises
    `OSError` for a file that is not there."""
    if file := os.environ.get("SSL_CERT_FILE"):
        return ssl.create_default_context(cafile=file)
    if folder := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    if sys.platform in ("win32", "darwin"):
        import httpx2  # it asks the system's own store

        return httpx2.create_ssl_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()
    file = next((one for one in (paths.openssl_cafile, *CA_FILES) if Path(one).is_file()), None)
    folder = paths.openssl_capath if Path(paths.openssl_capath).is_dir() else None
    if file or folder:
        context.load_verify_locations(file, folder)
    return context
