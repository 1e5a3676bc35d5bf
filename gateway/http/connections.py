"""Connections: how many there may be, and how long one may keep us waiting. What aiohttp's server does not count is counted here.

Theory. A connection costs a descriptor and some memory from its first moment, so it is counted from there on, in all and by its peer. It
then owes something until its request is whole: headers within seconds, the body at a pace. After that it is ours to answer, and what it
owes is to read. Whoever owes too long is told so where that can be done (408), and cut. While there is no room, whoever has been waited
for longest makes place for who comes: half-sent requests cannot make the gateway deaf. Who finds no place is refused once it is seen what
is asked: a few may ask whether the process lives, always, or whoever watches over it kills it when it is busiest.

A `Door` stands between the transport and aiohttp's protocol, and passes everything on; the middleware tells it when a request begins and
ends. Who is overdue is decided in `gateway.limits.patience`.

Known to be weak: people behind one address (a NAT, a proxy that is not trusted) share the bound of that address.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, cast

import orjson
import structlog
from aiohttp import StreamReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from typing_extensions import override

from adapters.contract.pacing import worth_saying
from adapters.http.common import Problem, problem_response
from adapters.http.entrance import address_of, is_among
from agent_core.beside import beside
from agent_core.few import Few
from agent_core.signals import ConnectionCut, Tell
from gateway.limits.patience import (
    HEALTH_PLACES,
    ConnectionStage,
    ConnectionStanding,
    CutOff,
    DoorLimits,
    asks_how_it_is,
    overdue,
)

log = structlog.get_logger("http")

SWEEP_SECONDS = 1.0
MOST_SAID = 200
"""Characters of what the server says of a request that it cannot read."""
YOUNG_SECONDS = 1.0
"""Who came so recently need not make place."""


def _reply(status: str, words: str, code: str) -> bytes:
    body = orjson.dumps({"error": {"message": words, "type": "server_error", "param": None, "code": code}})
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Retry-After: 5\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


REPLIES = {
    CutOff.FULL: _reply(
        "503 Service Unavailable", "Too many connections are open. Try again in a few seconds.", CutOff.FULL
    ),
    CutOff.PEER: _reply(
        "429 Too Many Requests", "Too many connections come from your address. Close some.", CutOff.PEER
    ),
    CutOff.HEADERS: _reply("408 Request Timeout", "The request's headers did not come in time.", CutOff.HEADERS),
}


class SlowBody(web.HTTPRequestTimeout):
    """The body of a request did not come in time."""


class Doorkeeper:
    """Counts connections, and looks after them. Use `open` for its life; `door` is a protocol factory for `create_server`."""

    def __init__(self, limits: DoorLimits, tell: Tell) -> None:
        self.limits = limits
        self._tell = tell
        self._doors: dict[asyncio.Protocol, Door] = {}
        self._refused: dict[Door, None] = {}
        self._beyond: set[Door] = set()
        """Inside beyond all bounds: each asks how the process is, once."""
        self._quiet: OrderedDict[Door, None] = OrderedDict()
        """Whose request is not whole, who has been waited for longest first."""
        self._peers: Counter[str] = Counter()
        self._cuts: Counter[CutOff] = Counter()

    @cached_property
    def now(self) -> Callable[[], float]:
        """The loop's clock, from the first connection on."""
        return asyncio.get_running_loop().time

    @property
    def count(self) -> int:
        """Connections that are open."""
        return len(self._doors) + len(self._refused)

    @asynccontextmanager
    async def looking(self) -> AsyncGenerator[None]:
        """It looks after the connections, for the block."""
        async with beside(self._look, "connections"):
            yield

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self.now()
            for door in [*self._doors.values(), *self._refused]:
                door.look(now)

    def door(self, make: Callable[[], asyncio.Protocol] = asyncio.Protocol) -> Door:
        """`make` gives the protocol behind it."""
        return Door(self, make)

    def door_of(self, request: web.BaseRequest) -> Door | None:
        return self._doors.get(request.protocol)

    def arrives(self, door: Door) -> asyncio.Protocol | CutOff:
        """The protocol behind the door, or why it stays shut."""
        if door.counted and self._peers[door.peer] >= self.limits.per_peer:
            return self._shut(door, CutOff.PEER)
        if len(self._doors) >= self.limits.connections and not self._place_made(door.standing.since):
            return self._shut(door, CutOff.FULL)
        return self._inside(door)

    def _inside(self, door: Door) -> asyncio.Protocol:
        inner = door.make()
        self._doors[inner] = door
        if door not in self._beyond:
            self._quiet[door] = None
        self._peers[door.peer] += 1
        return inner

    def asks(self, door: Door, begun: bytes, cut: CutOff) -> asyncio.Protocol | None:
        """The protocol behind a door that was shut for `cut`, for one request that begins so; None if it stays shut."""
        if len(self._beyond) >= HEALTH_PLACES or not asks_how_it_is(begun, cut):
            return None
        self._refused.pop(door, None)
        self._beyond.add(door)  # before it is waited for: it has no place that others could be given
        return self._inside(door)

    def _shut(self, door: Door, cut: CutOff) -> CutOff:
        if len(self._refused) < self.limits.connections // 8 + 1:
            self._refused[door] = None
        else:
            self.note(cut, door.peer)
            door.abort()
        return cut

    def _place_made(self, now: float) -> bool:
        """Whether somebody who has been waited for long has made place."""
        longest = next(iter(self._quiet), None)
        if longest is None or now - longest.standing.since < YOUNG_SECONDS:
            return False
        self.note(CutOff.CROWDED_OUT, longest.peer)
        longest.abort()
        self.goes(longest)
        return True

    def goes(self, door: Door) -> None:
        """The connection is over."""
        self._quiet.pop(door, None)
        self._refused.pop(door, None)
        self._beyond.discard(door)
        if door.inner is not None and self._doors.pop(door.inner, None) is not None:
            self._peers[door.peer] -= 1
            if self._peers[door.peer] <= 0:
                del self._peers[door.peer]

    def quiet(self, door: Door, *, yes: bool) -> None:
        """A request is waited for from now on, or not any more."""
        self._quiet.pop(door, None)
        if yes and door.inner in self._doors and door not in self._beyond:
            self._quiet[door] = None

    def note(self, cut: CutOff, peer: str) -> None:
        """Count it, and say it now and then. That somebody is idle is nothing to say."""
        self._tell(ConnectionCut(why=cut.value))
        self._cuts[cut] += 1
        if cut is not CutOff.IDLE and worth_saying(self._cuts[cut]):
            log.warning("http.cut", why=cut.value, peer=peer, open=self.count, times=self._cuts[cut])


class LeanServing(web.RequestHandler):
    """aiohttp's side of a connection, whose requests, one at a time, are in no deque."""

    __slots__ = ()

    def begin(self) -> None:
        """Before anything has come."""
        few: Any = Few[object]()
        self._messages = few

    @override
    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """What the server itself refuses reaches no middleware, and is told as everything else is."""
        # It says so in the log, and raises where an answer has begun.
        super().handle_error(request, status, exc, message)
        response = problem_response(unserved(status, exc))
        response.force_close()
        return response


class AnsweringOnly(LeanServing):
    """It answers, and hears no more: what still comes is thrown away as it is."""

    __slots__ = ()

    @override
    def data_received(self, data: bytes) -> None:
        """Nothing comes of it, and of what waits to be unpacked."""


def unserved(status: int, why: BaseException | None) -> Problem:
    """Why aiohttp's server does not serve a request, in words. Pure."""
    match why:
        case LineTooLong():
            words = "The request's first line, or one of its headers, is too long."
        case HttpProcessingError():
            first = why.message.strip().partition("\n")[0].rstrip(":. ")[:MOST_SAID]
            words = f"The request is not valid HTTP: {first}." if first else "The request is not valid HTTP."
        case _:
            return Problem(status, "The request could not be served.", "server_error", code="internal_error")
    return Problem(status, words, code="invalid_http")


def packed_rest(request: web.BaseRequest) -> bool:
    """There is more of its body than anybody has read, and it is packed: to read on, the server would unpack it, a thousand times as much."""
    return hdrs.CONTENT_ENCODING in request.headers and not request.content.is_eof()


class LeanBody(StreamReader):
    """A body whose pieces are in no deque: there are few at a time, as the socket is read no further before they are taken."""

    __slots__ = ()

    def begin(self) -> None:
        """With what has come of it."""
        few: Any = Few(self._buffer)
        self._buffer = few


class Door(asyncio.Protocol):
    """One connection."""

    __slots__ = (
        "_keeper",
        "_now",
        "_request",
        "_shut",
        "_transport",
        "counted",
        "inner",
        "make",
        "once",
        "peer",
        "standing",
    )

    def __init__(self, keeper: Doorkeeper, make: Callable[[], asyncio.Protocol]) -> None:
        self._keeper = keeper
        self.make = make
        self._transport: asyncio.Transport | None = None
        self._request: web.BaseRequest | None = None
        self.inner: asyncio.Protocol | None = None
        self.peer = ""
        self.counted = False
        """Its peer has a bound."""
        self.once = False
        """One request is taken, and no more."""
        self._shut: CutOff | None = None
        """Why there is no place for it, as long as it has not said what it asks."""
        self._now = keeper.now
        now = self._now()
        self.standing = ConnectionStanding(ConnectionStage.IDLE, now, now)

    # ------------------------------------------------------------------ from the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by name
        name: object = transport.get_extra_info("peername")
        address = address_of(str(name[0])) if isinstance(name, tuple) and name else None  # pyright: ignore[reportUnknownArgumentType]
        self.peer = str(address or "")
        self.counted = address is not None and not address.is_loopback
        self.counted = self.counted and not is_among(self.peer, self._keeper.limits.trusted)
        found = self._keeper.arrives(self)
        if isinstance(found, CutOff):
            self._shut, self.standing.stage = found, ConnectionStage.REFUSED
        else:
            self._let_in(found)

    def _let_in(self, inner: asyncio.Protocol) -> None:
        assert self._transport is not None
        self.inner = inner
        if type(inner) is web.RequestHandler:  # its server makes no other
            inner.__class__ = LeanServing
            cast("LeanServing", inner).begin()
        inner.connection_made(self._transport)
        if isinstance(inner, web.RequestHandler):
            inner.keep_alive(True)  # ends its timer: whoever sends nothing is cut by the keeper

    def data_received(self, data: bytes) -> None:
        if self._shut is not None:
            self._told_what(data, self._shut)
        if self.inner is None or self.standing.stage is ConnectionStage.REFUSED:
            return
        standing = self.standing
        now = self._now()
        if standing.stage is ConnectionStage.IDLE:
            standing.stage, standing.since = ConnectionStage.HEADERS, now
        standing.moved = now
        self.inner.data_received(data)

    def _told_what(self, begun: bytes, cut: CutOff) -> None:
        """What is asked where there is no place."""
        inner = self._keeper.asks(self, begun, cut)
        if inner is None:
            self._refuse(cut)
            return
        self._shut, self.once = None, True
        self._let_in(inner)
        self._be(ConnectionStage.IDLE)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received() if self.inner is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        self._keeper.goes(self)
        if self.inner is not None:
            self.inner.connection_lost(exc)
        self._transport = self._request = None

    def pause_writing(self) -> None:
        if self._transport is not None:
            self.standing.unread = self._transport.get_write_buffer_size()
            self.standing.unread_since = self._now()
        if self.inner is not None:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.standing.unread = 0
        if self.inner is not None:
            self.inner.resume_writing()

    # ------------------------------------------------------------------ from the middleware

    def begins(self, request: web.BaseRequest) -> None:
        """The headers of a request are whole."""
        self._request = request
        body = request.content
        if type(body) is StreamReader:
            body.__class__ = LeanBody
            cast("LeanBody", body).begin()
        self._be(ConnectionStage.SERVED if request.content.is_eof() else ConnectionStage.BODY)

    def ends(self) -> None:
        """It is answered."""
        if self._request is not None and packed_rest(self._request) and type(self.inner) is LeanServing:
            self.inner.__class__ = AnsweringOnly
        self._request = None
        self._be(ConnectionStage.IDLE)

    def _be(self, stage: ConnectionStage) -> None:
        now = self._now()
        self.standing.stage, self.standing.since, self.standing.moved = stage, now, now
        self._keeper.quiet(self, yes=stage is ConnectionStage.IDLE)

    # ------------------------------------------------------------------ from the keeper

    def look(self, now: float) -> None:
        """Cut it if it owes something for too long."""
        standing, transport = self.standing, self._transport
        if transport is None:
            return
        if standing.stage is ConnectionStage.BODY and self._request is not None and self._request.content.is_eof():
            standing.stage = ConnectionStage.SERVED
        if standing.unread:
            left = transport.get_write_buffer_size()
            if left < standing.unread:
                standing.unread_since = now
            standing.unread = left
        cut = overdue(standing, now, self._keeper.limits)
        if cut is None:
            return
        if self._shut is not None:
            self._refuse(self._shut)
            return
        if standing.stage is not ConnectionStage.REFUSED:
            self._keeper.note(cut, self.peer)
        match cut:
            case CutOff.BODY if self._request is not None:
                standing.stage = ConnectionStage.SERVED
                self._request.content.set_exception(SlowBody())
            case CutOff.HEADERS:
                self._turn_away(cut)
            case CutOff.READER:
                transport.abort()
            case _:
                transport.close()

    def _refuse(self, cut: CutOff) -> None:
        """There is no place for it."""
        self._shut = None
        self._keeper.note(cut, self.peer)
        self._turn_away(cut)

    def _turn_away(self, cut: CutOff) -> None:
        """Say why, as far as that can be done; what still comes is not looked at."""
        self.standing.stage, self.standing.since = ConnectionStage.REFUSED, self._now()
        self._keeper.quiet(self, yes=False)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(REPLIES[cut])
            if self._transport.can_write_eof():
                self._transport.write_eof()

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()
