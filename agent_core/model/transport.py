"""The way to a model's address: connections of aiohttp's, and answers whose socket is read when somebody wants it.

The SDK's own client is not in it: with what it is made of it costs 9 MiB and a fifth of a second at the first call, and built each request anew. Of
a stream of which people see a frame twenty times a second it read, parsed and queued each piece. Here the socket is left alone between two
reads of a body that rests: what comes meanwhile waits in the kernel, and comes at once. A steady body is read when a frame begins, from the socket itself,
and no task is woken for it.

Known to be weak: proxies are those that speak HTTP; SOCKS is none of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import ssl
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextvars import copy_context
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import parse_content_type
from aiohttp.http import RawResponseMessage, StreamWriter
from aiohttp.tracing import Trace
from typing_extensions import override
from yarl import URL

from agent_core.bell import Frames
from agent_core.few import Few
from agent_core.jsonvalue import Json
from agent_core.model.reach import ALONE, AskedByOthers, Lives, Theirs, TransportBroke
from agent_core.model.stream.bodies import ERROR, PACKED, STREAM, WHOLE, BodyLimits, bounded

LARGE_BYTES, PIECE_BYTES = 262_144, 65_536
"""A larger request is sent in pieces, between which others have their turn."""
SOCKET_BYTES = 32_768
"""What a frame takes of a socket at most. A stream of which more has come is none that is read by frames."""
HTTP_OK, HTTP_SWITCHING = 200, 101
UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
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
        """What it says: of JSON with an object as its ``error`` that alone, else all of it; text where it is no JSON."""
        self.headers = headers


class TokenBody(aiohttp.StreamReader):
    """A body whose pieces are read together. aiohttp's own reader notes where each chunk of HTTP's ends, asks of each whether reading should go
    on, and has them taken one by one: of a stream of tokens that cost more than what is in them. Its two queues cost 1.4 KiB a stream."""

    __slots__ = ()

    def begin(self) -> None:
        """Read so from here on."""
        pieces: Any = [*self._buffer]
        self._buffer, self._http_chunk_splits = pieces, None

    begin_http_chunk_receiving = end_http_chunk_receiving = cast("Any", int)
    """What stands around a chunk is nothing here. Both are called for each, and this is the least that can be called: it makes a nought, without a step of
    Python's."""

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

    def small(self, most: int) -> bool:
        """Something can be `taken` that is no end and no more than `most` bytes."""
        return 0 < self._size <= most and self._exception is None

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

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        few: Any = Few[object]()
        self._buffer = few


class OwnAnswers(aiohttp.TCPConnector):
    """Connections by which nothing has come that nobody asked for: aiohttp would take it for the answer to the next request."""

    @override
    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is None or not connection.protocol.should_close:
                return connection
            connection.close()


class LeanConnector(OwnAnswers):
    """Connections that hold little."""

    def begin(self) -> None:
        """Make them so from here on."""
        self._factory = partial(LeanHandler, loop=self._loop)


class HttpAnswer:
    """The head of an answer, and its connection as long as more of its body may come. It holds nothing of what was asked for it."""

    __slots__ = ("_sending", "connection", "content", "headers", "status")

    def __init__(
        self,
        connection: Connection,
        head: RawResponseMessage,
        content: aiohttp.StreamReader,
        sending: asyncio.Task[None] | None,
    ) -> None:
        """`sending` is what still goes out of a large request."""
        self.status = head.code
        self.headers = head.headers
        self.content = content
        self.connection: Connection | None = connection
        """None once all of the body is here: it serves the next request."""
        self._sending = sending
        content.on_eof(self.leave)

    def leave(self) -> None:
        """Nothing more is wanted: a connection by which more would come is closed, and so is one by which a request was refused, because servers hang up
        then without saying so."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        sending = self._sending is not None and not self._sending.done()
        if self._sending is not None:
            self._sending.cancel()
        if sending or not 200 <= self.status < 300:
            connection.close()
        else:
            connection.release()


class ModelAnswer:
    """An answer that takes a request, its body not read yet."""

    __slots__ = ("_body", "_frame", "_handle", "_pieces", "_response", "_resting", "headers", "status")

    def __init__(self, response: HttpAnswer) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        encoding = response.headers.get("content-encoding", "").strip().lower()
        whole = "application/json" in response.headers.get("content-type", "")
        self._resting = False
        self._frame: asyncio.Future[None] | None = None
        self._handle: int | None = None
        """The socket's, for `come`; -1 where it is read by its transport alone. None: not looked at yet."""
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

    @property
    def waits(self) -> bool:
        """More of it may come."""
        return self._response.connection is not None and self._response.connection.protocol is not None

    def rest(self) -> None:
        """Leave the socket alone until `go_on`."""
        if self._resting:
            return
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

    def in_frames(self, frames: Frames, taker: Taker, most: int) -> asyncio.Future[None]:
        """Have it read once a frame, and as soon as something comes where a frame brought nothing, without a task: over when the taker says of what came
        that this is no way any more, and for the end and what is larger than `most`, which `next` has. Raises what the taker raises."""
        self.rest()
        return _InFrames(self, self._body, frames, taker, most).over

    def come(self, most: int) -> bytes:
        """What is there of a body that rests, in the socket as well, up to `most` bytes; nothing if there is none, or more, or what is to be raised."""
        body, transport = self._body, self._transport()
        assert body is not None
        if not body.here and transport is not None and not transport.is_closing():
            self._read(transport, body)
        return body.taken() if body.small(most) else b""

    def _read(self, transport: asyncio.Transport, body: TokenBody) -> None:
        """Read what lies in the socket, without the loop: to have that look takes two calls of the kernel and a task that is woken."""
        if self._handle is None:
            self._handle = _handle_of(transport)
        if self._handle < 0:
            return
        try:
            data = os.read(self._handle, SOCKET_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:  # it is told once, and the loop would find an end
            body.set_exception(aiohttp.ClientOSError(*error.args), error)
            return
        connection = self._response.connection
        if not data or connection is None or connection.protocol is None:
            return  # at the end the transport finds it, too
        connection.protocol.data_received(data)
        if self._response.connection is None and not transport.is_closing():
            transport.resume_reading()  # it serves others

    def _transport(self) -> asyncio.Transport | None:
        if self._body is None:
            return None
        connection = self._response.connection  # none any more once all of the body is here
        return connection.transport if connection is not None else None


class Taker(Protocol):
    """Whoever takes what comes of a steady body."""

    def take_frame(self, data: bytes) -> bool:
        """It has come; whether that is the way to go on."""
        ...


class _InFrames:
    """How a steady body is read: see `ModelAnswer.in_frames`. One that is packed is read by its task, which is woken once a frame."""

    __slots__ = ("_answer", "_body", "_context", "_frames", "_most", "_taker", "over")

    def __init__(self, answer: ModelAnswer, body: TokenBody | None, frames: Frames, taker: Taker, most: int) -> None:
        self._answer = answer
        self._body = body
        self._frames = frames
        self._taker = taker
        self._most = most
        self._context = copy_context()
        self.over: asyncio.Future[None] = frames.loop.create_future()
        """Done when a task is needed; cancelled with whoever waits."""
        frames.begins(self._begins, self._context)

    def _begins(self) -> None:
        """A frame."""
        if self.over.done():
            return
        if self._body is not None and (data := self._answer.come(self._most)):
            self._taken(data)
        elif self._body is None or self._body.here or not self._answer.waits:
            self._leave()
        else:
            self._answer.go_on()
            self._body.change().add_done_callback(self._came, context=self._context)

    def _leave(self) -> None:
        """Let the task go on."""
        self._answer.go_on()
        self.over.set_result(None)

    def _came(self, change: asyncio.Future[None]) -> None:
        """Something is here that no frame had found."""
        if not self.over.done() and (data := self._answer.come(self._most)):
            self._taken(data)
            return
        if not change.cancelled():
            change.exception()  # the body has it too, for the task; of one that nobody takes out the loop complains
        if not self.over.done():
            self._leave()

    def _taken(self, data: bytes) -> None:
        try:
            steady = self._taker.take_frame(data)
        except Exception as error:  # noqa: BLE001 - it belongs to the task that waits
            self.over.set_exception(error)
            return
        if steady:
            self._answer.rest()
            self._frames.begins(self._begins, self._context)
        else:
            self._leave()


def _handle_of(transport: asyncio.Transport) -> int:
    """The handle of a transport's socket, if what can be read from it is the body as it is; else -1."""
    if os.name != "posix" or transport.get_extra_info("sslcontext") is not None:
        return -1
    handle: int = transport.get_extra_info("socket").fileno()
    return handle if handle >= 0 and not os.get_blocking(handle) else -1


class ModelLine:
    """One credential's way to an address, with all that is the same in each of its calls. Connections are made at first use."""

    def __init__(self, url: str, headers: Mapping[str, str], lives: Lives = ALONE) -> None:
        """`url` is what is posted to, as long as this process `lives`. Raises `aiohttp.InvalidURL` for what is no address, `OSError` for
        authorities that cannot be read, ValueError for headers that cannot be sent."""
        try:
            self._url, named = named_in(url)
        except ValueError as error:
            raise aiohttp.InvalidURL(url) from error
        if self._url.scheme not in ("http", "https"):
            raise aiohttp.NonHttpUrlClientError(self._url)
        self._lives = lives
        self._trusted = trusted()
        self._proxy, self._proxy_auth = proxy_of(url)
        self._head = self._headed(headers, named)
        self._way: tuple[LeanConnector, aiohttp.ClientRequest] | None = None
        """What makes connections, and by what it knows where to."""

    def _headed(self, headers: Mapping[str, str], named: aiohttp.BasicAuth | None) -> bytes:
        """The head of each request, up to the length of its body. `named` is who we are by the address."""
        url, plain = self._url, self._url.scheme == "http"
        told = {"Host": url.host_port_subcomponent or "", **headers}
        if named is not None:
            if any(name.lower() == "authorization" for name in headers):
                raise ValueError("who asks is told by a key and by the address, and a request can say one of them")
            told["Authorization"] = named.encode()
        if plain and self._proxy_auth is not None:
            told["Proxy-Authorization"] = self._proxy_auth.encode()
        lines = [f"{name}: {value}" for name, value in told.items()]
        if any(UNSENDABLE.search(line) for line in lines):
            raise ValueError("a header holds what no header can")
        target = str(url) if plain and self._proxy is not None else url.raw_path_qs
        return "\r\n".join([f"POST {target} HTTP/1.1", *lines, "Content-Length: "]).encode()

    def asked(self, body: bytes, connect_seconds: float) -> AskedAnswer:
        """The answer to a request; leaving the block closes its connection. Entering raises `TransportBroke`, `RequestNotTaken`, `AskedByOthers`."""
        return AskedAnswer(self, body, connect_seconds)

    async def sent(self, body: bytes, connect_seconds: float) -> HttpAnswer:
        """Send a request; its answer, whatever that says.

        Not by a session of aiohttp's: that makes each request anew, of parts that never differ, with a task that sends it one step of the loop
        later. Of aiohttp are the connections, and what reads an answer.
        """
        connection, sending = await self._connected(connect_seconds), None
        try:
            protocol = connection.protocol
            assert protocol is not None
            protocol.set_response_params(read_until_eof=True, auto_decompress=False)
            sending = await self._send(body, protocol)
            head, content = await protocol.read()
            while head.code < HTTP_OK and head.code != HTTP_SWITCHING:  # it only says that it has heard
                head, content = await protocol.read()
            return HttpAnswer(connection, head, content, sending)
        except BaseException:
            if sending is not None:
                sending.cancel()
            connection.close()
            raise

    async def _connected(self, seconds: float) -> Connection:
        if self._way is None:
            connector = LeanConnector(limit=MAX_CONNECTIONS, ssl=self._trusted, keepalive_timeout=KEPT_SECONDS)
            connector.begin()
            where = aiohttp.ClientRequest("POST", self._url, proxy=self._proxy, proxy_auth=self._proxy_auth)
            self._way = connector, where
        connector, where = self._way
        try:
            return await connector.connect(where, [], aiohttp.ClientTimeout(total=None, sock_connect=seconds))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(str(self._url)) from error

    async def _send(self, body: bytes, protocol: ResponseHandler) -> asyncio.Task[None] | None:
        """Look whether the request may still go out, in the very step that hands its bytes to the socket: whoever was stopped between an earlier
        look and this one asks nothing. What is left of a large body is sent by the task."""
        if not await _may_go_out(self._lives):
            raise AskedByOthers
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("the connection is closed")
        large = len(body) > LARGE_BYTES
        transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body[:PIECE_BYTES] if large else body))
        return asyncio.create_task(_in_pieces(body, protocol, self._lives)) if large else None

    async def aclose(self) -> None:
        """Close its connections."""
        if self._way is not None:
            await self._way[0].close()


async def _may_go_out(lives: Lives) -> bool:
    """Whether this process still is the one that asks, as soon as that is known."""
    for _ in range(round(LOOKS_SECONDS / LOOK_SECONDS)):
        if not lives.may_return():
            break
        await asyncio.sleep(LOOK_SECONDS)
    return lives.lease_ok()


async def _in_pieces(body: bytes, protocol: ResponseHandler, lives: Lives) -> None:
    """Send what stands behind the first piece, as the socket takes it, and each in the very step that has looked: of a request that was stopped in between
    the server never has all. That the connection is lost is heard by whoever reads the answer."""
    writer = StreamWriter(protocol, asyncio.get_running_loop())
    with contextlib.suppress(ConnectionError):
        for at in range(PIECE_BYTES, len(body), PIECE_BYTES):
            await writer.drain()
            if not await _may_go_out(lives):
                protocol.set_exception(AskedByOthers())
                return
            await writer.write(body[at : at + PIECE_BYTES])


class AskedAnswer:
    """A request that is sent when the block is entered."""

    __slots__ = ("_body", "_connect_seconds", "_line", "_response")

    def __init__(self, line: ModelLine, body: bytes, connect_seconds: float) -> None:
        self._line = line
        self._body = body
        self._connect_seconds = connect_seconds
        self._response: HttpAnswer | None = None

    async def __aenter__(self) -> ModelAnswer:
        body, self._body = self._body, b""  # which may be large, and is not needed once it is sent
        with Theirs(RequestNotTaken, AskedByOthers):
            response = self._response = await self._line.sent(body, self._connect_seconds)
            try:
                await _taken(response)
                return ModelAnswer(response)
            except BaseException:
                response.leave()
                raise

    async def __aexit__(self, *_: object) -> None:
        if self._response is not None:
            self._response.leave()


async def _taken(response: HttpAnswer) -> None:
    """Raises `RequestNotTaken`, with what the server says."""
    if 200 <= response.status < 300:
        return
    data = b"".join([piece async for piece in _pieces(response, ERROR)])
    _, named = parse_content_type(response.headers.get("content-type", ""))
    try:
        text = data.decode(named.get("charset", "utf-8"), "replace").strip()
    except LookupError:  # a charset that nobody knows
        text = data.decode("utf-8", "replace").strip()
    said: Json = text
    with contextlib.suppress(ValueError, RecursionError):
        said = cast("Json", json.loads(text))
    inner = said.get("error") if isinstance(said, dict) else None
    body = inner if isinstance(inner, dict | list) else said  # a text is a title: what is meant may stand beside it
    raise RequestNotTaken(response.status, body, dict(response.headers.items()))


def _pieces(response: HttpAnswer, limits: BodyLimits) -> AsyncGenerator[bytes]:
    packed = response.headers.get("content-encoding", "").strip().lower() in PACKED
    return bounded(_raw(response), limits, packed=packed)


async def _raw(response: HttpAnswer) -> AsyncIterator[bytes]:
    while data := await response.content.readany():
        yield data


def proxy_of(url: str) -> tuple[URL | None, aiohttp.BasicAuth | None]:
    """The proxy that the environment names for an address (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY), and who we are for it; none where what it says
    names no host, as for most programs."""
    parts = urlsplit(url)
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None, None
    named = getproxies()
    found = named.get(parts.scheme) or named.get("all")
    found = found and (found if "://" in found else f"http://{found}")
    return named_in(found) if found and urlsplit(found).hostname else (None, None)


def named_in(url: str) -> tuple[URL, aiohttp.BasicAuth | None]:
    """An address, and who we are there."""
    address = URL(url)
    return address.with_user(None), aiohttp.BasicAuth.from_url(address, encoding="utf-8")


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
