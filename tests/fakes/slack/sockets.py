"""Socket Mode: the WebSockets of the app, and what befalls them.

https://docs.slack.dev/apis/events-api/using-socket-mode
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

import orjson
from aiohttp import WSMessage, WSMsgType, web

from tests.fakes.common import Bell, Clock, Json, JsonObject, cut
from tests.fakes.slack.outbox import Envelope, Outbox
from tests.fakes.slack.shapes import as_object, as_text
from tests.fakes.slack.world import APP

MAX_SOCKETS = 10
HOST = "applink-fake"
CONNECTION_SECONDS = 18_060
"""What `hello` says about how long the connection will last."""
TICKET_SECONDS = 30.0
"""How long an address of `apps.connections.open` can be used. The real figure is not documented."""


class Farewell(StrEnum):
    """The `reason` of a disconnect frame."""

    WARNING = "warning"
    """The connection will be closed in about ten seconds."""
    REFRESH = "refresh_requested"
    LINK_DISABLED = "link_disabled"
    """Somebody has switched Socket Mode off."""
    TOO_MANY = "too_many_websockets"


@dataclass(slots=True, eq=False)
class Socket:
    """One connection, as Slack sees it."""

    number: int
    """1 for the first."""
    opened_at: float
    """Monotonic seconds."""
    ws: web.WebSocketResponse | None = None
    request: web.Request | None = None
    """None for a ghost: a connection that Slack takes for alive, and at whose other end nobody is."""
    open: bool = True
    deaf: bool = False
    """Slack does not take in what comes: neither pings nor acknowledgements."""
    mute: bool = False
    """What Slack sends does not arrive."""
    closed_at: float | None = None
    told: list[Envelope] = field(default_factory=list[Envelope])
    """What was sent here."""
    acked: list[str] = field(default_factory=list[str])
    """The ids of envelopes that were acknowledged here."""
    pings: int = 0
    """Pings of the client that were answered."""
    pongs: int = 0
    """Answers to Slack's own pings."""
    unread: int = 0
    """Frames that came while Slack was deaf."""
    said: list[JsonObject] = field(default_factory=list[JsonObject])
    """What the client sent, beside acknowledgements."""

    @property
    def is_ghost(self) -> bool:
        """Whether nobody is there."""
        return self.ws is None

    async def send(self, body: JsonObject) -> bool:
        """Send a frame; False if the connection turns out to be gone."""
        if self.ws is None or self.mute:
            return True
        try:
            await self.ws.send_str(orjson.dumps(body).decode())
        except (ConnectionError, RuntimeError):
            return False
        return True


class Sockets:
    """All connections of the app."""

    def __init__(self, clock: Clock, bell: Bell, outbox: Outbox) -> None:
        self._clock = clock
        self._bell = bell
        self._outbox = outbox
        self._tickets: dict[str, float] = {}
        """Addresses that were given out, and the monotonic second at which each runs out."""
        self._turn = 0
        self._favourite: Socket | None = None
        self.all: list[Socket] = []
        """Every connection there ever was, in order."""
        self.enabled = True
        """Whether Socket Mode is switched on."""

    @property
    def open(self) -> Sequence[Socket]:
        """The connections that Slack takes for alive, ghosts among them."""
        return [socket for socket in self.all if socket.open]

    @property
    def latest(self) -> Socket:
        """The newest connection that is open."""
        assert self.open, "no socket is open"
        return self.open[-1]

    # --- what a test does ---

    def favour(self, socket: Socket | None) -> None:
        """Send everything to this one from now on; None: to each in turn."""
        self._favourite = socket

    def ghost(self) -> Socket:
        """A connection that eats what it is given: the client is gone, and Slack has not noticed."""
        socket = Socket(len(self.all) + 1, time.monotonic())
        self.all.append(socket)
        self._bell.ring()
        return socket

    def bury(self, ghost: Socket) -> None:
        """Slack notices."""
        self._gone(ghost)

    async def disconnect(self, reason: Farewell, *sockets: Socket, close: bool | None = None) -> None:
        """Say that a connection will end (all if none is named), and end it unless it is a warning only."""
        if reason is Farewell.LINK_DISABLED:
            self.enabled = False
        for socket in sockets or tuple(self.open):
            await socket.send(_farewell(reason))
            if (reason is not Farewell.WARNING) if close is None else close:
                self._gone(socket)
                if socket.ws is not None:
                    await socket.ws.close()

    def cut(self, *sockets: Socket) -> None:
        """Reset connections without a word (all if none is named)."""
        for socket in sockets or tuple(self.open):
            if socket.request is not None:
                cut(socket.request.transport)
            self._gone(socket)

    def _gone(self, socket: Socket) -> None:
        if socket.open:
            socket.open, socket.closed_at = False, time.monotonic()
            self._bell.ring()

    # --- the server's part ---

    def new_ticket(self) -> str:
        """The secret part of an address that can be dialled once."""
        ticket = str(uuid4())
        self._tickets[ticket] = self._clock.monotonic() + TICKET_SECONDS
        return ticket

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """A client dials."""
        until = self._tickets.pop(request.query.get("ticket", ""), 0.0)
        if until <= self._clock.monotonic():
            return web.Response(status=403, text="invalid ticket")
        ws = web.WebSocketResponse(autoping=False)
        await ws.prepare(request)
        if len(self.open) >= MAX_SOCKETS or not self.enabled:
            await ws.send_str(
                orjson.dumps(_farewell(Farewell.TOO_MANY if self.enabled else Farewell.LINK_DISABLED)).decode()
            )
            await ws.close()
            return ws
        socket = Socket(len(self.all) + 1, time.monotonic(), ws, request)
        self.all.append(socket)
        await socket.send(self._hello())
        self._bell.ring()
        try:
            async for message in _Frames(ws):
                await self._hear(socket, message)
        finally:
            self._gone(socket)
        return ws

    def _hello(self) -> JsonObject:
        debug: JsonObject = {"host": HOST, "build_number": 10, "approximate_connection_time": CONNECTION_SECONDS}
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "debug_info": debug,
            "connection_info": {"app_id": APP},
        }

    async def _hear(self, socket: Socket, message: WSMessage) -> None:
        if socket.deaf:
            socket.unread += 1
            return
        match message.type:
            case WSMsgType.PING if socket.ws is not None:
                socket.pings += 1
                if not socket.mute:
                    await socket.ws.pong(message.data)
            case WSMsgType.PONG:
                socket.pongs += 1
            case WSMsgType.TEXT:
                self._read(socket, str(message.data))
            case _:
                pass
        self._bell.ring()

    def _read(self, socket: Socket, text: str) -> None:
        try:
            body: Json = orjson.loads(text)
        except orjson.JSONDecodeError:
            body = {"unreadable": text}
        frame = as_object(body)
        envelope_id = as_text(frame.get("envelope_id"))
        if not envelope_id:
            socket.said.append(frame)
            return
        socket.acked.append(envelope_id)
        payload = frame.get("payload")
        self._outbox.acknowledge(envelope_id, self._clock.monotonic(), payload if isinstance(payload, dict) else None)

    async def ping(self) -> None:
        """Ask every connection whether somebody is there, as Slack does now and then."""
        for socket in self.open:
            if socket.ws is not None and not socket.mute:
                try:
                    await socket.ws.ping(f"Ping from {HOST}".encode())
                except (ConnectionError, RuntimeError):
                    self._gone(socket)

    async def tell(self, envelope: Envelope) -> None:
        """Send an envelope to exactly one connection; with none there the attempt counts, and fails by its deadline."""
        socket = self._next()
        attempt = self._outbox.attempt(envelope, self._clock.monotonic(), socket.number if socket else None)
        if socket is None:
            envelope.deadline = self._clock.monotonic()
            return
        socket.told.append(envelope)
        body: JsonObject = {
            "envelope_id": attempt.envelope_id,
            "payload": envelope.payload,
            "type": envelope.kind.value,
            "accepts_response_payload": envelope.kind.value != "events_api",
        }
        if envelope.kind.value == "events_api":
            body.update({"retry_attempt": attempt.number, "retry_reason": attempt.reason})
        if not await socket.send(body):
            self._gone(socket)

    def _next(self) -> Socket | None:
        if self._favourite is not None and self._favourite.open:
            return self._favourite
        ready = self.open
        if not ready:
            return None
        self._turn += 1
        return ready[self._turn % len(ready)]

    async def close(self) -> None:
        """End everything."""
        self.cut()


class _Frames:
    """What a client sends, pings too, until it is gone."""

    def __init__(self, ws: web.WebSocketResponse) -> None:
        self._receive: Callable[[], Awaitable[WSMessage]] = ws.receive

    def __aiter__(self) -> _Frames:
        return self

    async def __anext__(self) -> WSMessage:
        message = await self._receive()
        if message.type in {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}:
            raise StopAsyncIteration
        return message


def _farewell(reason: Farewell) -> JsonObject:
    return {"type": "disconnect", "reason": reason.value, "debug_info": {"host": HOST}}
