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
from functools import cache, partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from multidict import CIMultiDict, CIMultiDictProxy
from typing_extensions import override
from yarl import URL

from agent_core.few import Few
from agent_core.jsonvalue import Json
from agent_core.model.reach import ALONE, AskedByOthers, Lives, TransportBroke, theirs
from agent_core.model.stream.bodies import ERROR, PACKED, STREAM, WHOLE, BodyLimits, bounded

LARGE_BYTES = 262_144
"""A larger request is sent in pieces, between which others have their turn."""
KEPT_SECONDS = 5.0
"""How long a connection that nobody uses is kept."""
LOOK_SECONDS, LOOKS_SECONDS = 0.1, 60.0
"""So often, and for so long at most, a request that is ready waits until it is known whether this process lives."""
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
    on, and has them taken one by one: of a stream of tokens that cost more than what is in them. Its two queues cost 1.4 KiB a stream."""

    __slots__ = ()

    def begin(self) -> None:
        """Read so from here on."""
        pieces: Any = [*self._buffer]
        self._buffer, self._http_chunk_splits = pieces, None

    @override
    def begin_http_chunk_receiving(self) -> None: ...

    @override
    def end_http_chunk_receiving(self) -> None: ...

    @override
    def feed_data(self, data: bytes, size: int = 0) -> bool:
        if data:
            self._buffer.append(data)
            self._size += len(data)
            if self._waiter is not None:
                self.wake()
            if self._size > self._high_water:
                self._protocol.pause_reading()
        return False

    @property
    def here(self) -> bool:
        """Something can be `taken`, if only the end."""
        return bool(self._buffer) or self._eof or self._exception is not None

    def change(self) -> asyncio.Future[None]:
        """Over as soon as something may be here. Raises `RuntimeError` if nothing can come any more."""
        if not (self._protocol.connected or self.here):
            raise RuntimeError("the connection is closed")
        self._waiter = self._loop.create_future()
        return self._waiter

    def wake(self) -> None:
        """Let whoever waits look."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def taken(self) -> bytes:
        """All that has come; nothing at the end. Raises why it broke."""
        pieces = self._buffer
        if self._exception is not None:
            raise self._exception
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        full, self._size = self._size > self._high_water, 0
        if full:
            self._protocol.resume_reading()
        return data


class LeanHandler(ResponseHandler):
    """A connection whose heads of answers, one at a time, are in no deque."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lives: Lives) -> None:
        super().__init__(loop)
        self.lives = lives
        few: Any = Few[object]()
        self._buffer = few


class LeanConnector(aiohttp.TCPConnector):
    """Connections that hold little."""

    def begin(self, lives: Lives) -> None:
        """Make them so from here on, for requests that go out while this process `lives`."""
        self._factory = partial(LeanHandler, loop=self._loop, lives=lives)


class LastLook(aiohttp.ClientRequest):
    """A request that looks whether it may still go out in the very step that hands its bytes to the socket: whoever was stopped between an earlier look
    and this one asks nothing. Of a large body that is the step that begins to read it."""

    @override
    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        protocol = conn.protocol
        assert isinstance(protocol, LeanHandler)
        for _ in range(round(LOOKS_SECONDS / LOOK_SECONDS)):
            if not protocol.lives.may_return():
                break
            await asyncio.sleep(LOOK_SECONDS)
        if not protocol.lives.lease_ok():
            protocol.set_exception(AskedByOthers())
            return
        await super().write_bytes(writer, conn, content_length)


class LeanResponse(aiohttp.ClientResponse):
    """An answer that lets go what was asked for it, and its head as it came, once that is read: both live as long as the stream otherwise."""

    @override
    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        await super().start(connection)
        self._raw_headers, self._request_info = (), _asked(self.method)
        return self


@cache
def _asked(method: str) -> aiohttp.RequestInfo:
    """What aiohttp would say of a request in errors of its own, none of which we let it raise."""
    return aiohttp.RequestInfo(URL(), method, CIMultiDictProxy(CIMultiDict[str]()), URL())


class ModelAnswer:
    """An answer that takes a request, its body not read yet."""

    __slots__ = ("_body", "_frame", "_pieces", "_response", "_resting", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        encoding = response.headers.get("content-encoding", "").strip().lower()
        whole = "application/json" in response.headers.get("content-type", "")
        self._resting = False
        self._frame: asyncio.Future[None] | None = None
        self._body: TokenBody | None = None
        """Nothing stands in the path of tokens."""
        if not whole and encoding in ("", "identity") and type(response.content) is aiohttp.StreamReader:
            response.content.__class__ = TokenBody  # its parser makes no other
            self._body = cast("TokenBody", response.content)
            self._body.begin()
        self._pieces = _pieces(response, WHOLE if whole else STREAM) if self._body is None else None

    async def next(self) -> bytes | None:
        """What has come, as soon as something has and it does not rest; None at the end. Raises `TransportBroke`."""
        try:
            body = self._body
            if body is not None:
                while self._resting or not body.here:
                    await body.change()
                return body.taken() or None
            while self._resting:
                self._frame = asyncio.get_running_loop().create_future()
                await self._frame
            return await anext(self._pieces, None) if self._pieces is not None else None
        except Exception as error:
            raise TransportBroke from error

    def rest(self) -> None:
        """Leave the socket alone until `go_on`."""
        self._resting = True
        transport = self._transport()
        if transport is not None and not transport.is_closing():
            transport.pause_reading()

    def go_on(self) -> None:
        """Read again what comes. Does nothing where the answer has been left."""
        self._resting = False
        transport = self._transport()
        if transport is not None and not transport.is_closing():
            transport.resume_reading()
        if self._body is not None:
            if self._body.here:
                self._body.wake()
        elif self._frame is not None and not self._frame.done():
            self._frame.set_result(None)

    def _transport(self) -> asyncio.Transport | None:
        if self._body is None:
            return None
        connection = self._response.connection  # none any more once all of the body is here
        return connection.transport if connection is not None else None


class ModelLine:
    """One credential's way to an address, with all that is the same in each of its calls. Connections are made at first use."""

    def __init__(self, url: str, headers: Mapping[str, str], lives: Lives = ALONE) -> None:
        """`url` is what is posted to, as long as this process `lives`. Raises `aiohttp.InvalidURL` for what is no address, `OSError` for authorities that cannot be read."""
        try:
            self._url = URL(url)
        except ValueError as error:
            raise aiohttp.InvalidURL(url) from error
        self._headers = CIMultiDict(headers)
        self._lives = lives
        self._trusted = trusted()
        self._proxy, self._proxy_auth = proxy_of(url)
        self._session: aiohttp.ClientSession | None = None

    def asked(self, body: bytes, connect_seconds: float) -> AskedAnswer:
        """The answer to a request; leaving the block closes its connection. Entering raises `TransportBroke`, `RequestNotTaken`, `AskedByOthers`."""
        return AskedAnswer(self, body, connect_seconds)

    async def sent(self, body: bytes, connect_seconds: float) -> aiohttp.ClientResponse:
        """Send a request; its answer, whatever that says."""
        if self._session is None:
            connector = LeanConnector(limit=MAX_CONNECTIONS, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS)
            connector.begin(self._lives)
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                request_class=LastLook,
                response_class=LeanResponse,
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


class AskedAnswer:
    """A request that is sent when the block is entered."""

    __slots__ = ("_body", "_connect_seconds", "_line", "_response")

    def __init__(self, line: ModelLine, body: bytes, connect_seconds: float) -> None:
        self._line = line
        self._body = body
        self._connect_seconds = connect_seconds
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> ModelAnswer:
        body, self._body = self._body, b""  # which may be large, and is not needed once it is sent
        with theirs(RequestNotTaken, AskedByOthers):
            response = await self._line.sent(body, self._connect_seconds)
            try:
                await _taken(response)
                answer = ModelAnswer(response)
            except BaseException:
                await _left(response)
                raise
        self._response = response
        return answer

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            await _left(self._response)


async def _left(response: aiohttp.ClientResponse) -> None:
    with contextlib.suppress(Exception):  # what was read counts, however the connection is taken down
        await response.__aexit__(None, None, None)


async def _taken(response: aiohttp.ClientResponse) -> None:
    """Raises `RequestNotTaken`, with what the server says."""
    if 200 <= response.status < 300:
        return
    data = b"".join([piece async for piece in _pieces(response, ERROR)])
    try:
        text = data.decode(response.charset or "utf-8", "replace").strip()
    except LookupError:  # a charset that nobody knows
        text = data.decode("utf-8", "replace").strip()
    said: Json = text
    with contextlib.suppress(ValueError, RecursionError):
        said = cast("Json", json.loads(text))
    body = said.get("error", said) if isinstance(said, dict) else said
    raise RequestNotTaken(response.status, body, dict(response.headers.items()))


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
