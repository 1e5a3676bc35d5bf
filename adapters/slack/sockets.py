"""Socket Mode with several sockets at once, each replaced before it goes. https://docs.slack.dev/apis/events-api/using-socket-mode

Slack gives each event to one of the app's sockets. A socket that is to end is told so by a frame; the library's own client then
closes it before it opens another, and acknowledges what came by the old one on the new. Here the new socket is open before the old
one goes, and an envelope is acknowledged where it came in. What was given to a socket that had died already is told again by Slack
after some seconds, to another one.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from bisect import insort
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import field
from enum import StrEnum
from functools import partial
from operator import attrgetter
from typing import Any

import aiohttp
import orjson
import structlog

from adapters.contract.chat import CallFailed, Fate
from adapters.contract.supervision import AdapterDown, AllConnections, Connections
from adapters.slack.inbound import table
from agent_core.patience import Limit
from agent_core.records import dataclass
from agent_core.retry import Retry

log = structlog.get_logger("slack")

MOST_SOCKETS = 10
"""That Slack allows an app."""
DIAL_SECONDS = 15.0
HEARTBEAT_SECONDS = 8.0
"""A ping each; without an answer in half of that the socket is dead."""
LINGER_SECONDS = 12.0
"""An old socket is read for so long after its successor is open (a warning comes about ten seconds before the end)."""
SOCKET = Retry(0.2, 30.0, factor=3.5)
"""Between tries, while another socket works."""
SWITCHED_OFF = (
    "Socket Mode is switched off. Switch it on: api.slack.com/apps, your app, Socket Mode, Enable Socket Mode."
)


ALL = frozenset({""})
"""The party of those who say none."""


class Farewell(StrEnum):
    """Why Slack ends a socket, as far as it makes a difference."""

    LINK_DISABLED = "link_disabled"
    TOO_MANY = "too_many_websockets"


@dataclass(eq=False, slots=True)
class SocketLink:
    ws: aiohttp.ClientWebSocketResponse
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    """It ends, or has ended."""
    reason: str = ""


Handle = Callable[[object], Awaitable[bool]]
"""Takes an envelope's payload in; whether it is to be acknowledged."""


class Sockets:
    """Keeps `count` sockets open, those of them that are ours. `open_url` gives an address for one each time; it raises `CallFailed`."""

    def __init__(
        self,
        count: int,
        open_url: Callable[[], Awaitable[str]],
        handle: Handle,
        *,
        proxy: str = "",
        on_life: Callable[[], None] = lambda: None,
        on_gap: Callable[[], None] = lambda: None,
        on_hello: Callable[[bool], None] = lambda _: None,
        held: Connections | None = None,
    ) -> None:
        """`held` says which of them are ours. `on_hello` is told whether Slack has more open than we have."""
        self._count = count
        self._held = held or AllConnections()
        self._open_url = open_url
        self._handle = handle
        self._proxy = proxy
        self._on_life = on_life
        self._on_gap = on_gap
        self._on_hello = on_hello
        self._alive: set[SocketLink] = set()
        self._gap = False
        """Something may not have come: no socket was open for some time, or one died without a word."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def alive(self) -> int:
        """How many sockets are open."""
        return len(self._alive)

    @property
    def whole(self) -> bool:
        """A socket is open, and nothing is known that may not have come."""
        return bool(self._alive) and not self._gap

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled; `up` is called when the first is open. Raises `AdapterDown` or `CallFailed` if there is none."""
        slots: list[asyncio.Task[None]] = []
        async with aiohttp.ClientSession() as http:
            try:
                first = await self._dial(http)
                up()
                first_of = {number for number in range(self._count) if self._held.has(number)}
                spare = [first]
                slots = [
                    self._begin(self._held.while_had(number, partial(self._slot, http, number, first_of, spare)))
                    for number in range(self._count)
                ]
                done, _ = await asyncio.wait(slots, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                await self._end()
                await asyncio.gather(*slots, return_exceptions=True)  # several may have failed: one of them is told

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        links, self._alive = self._alive, set()
        await asyncio.gather(*self._tasks, *(link.ws.close() for link in links), return_exceptions=True)

    async def _slot(
        self, http: aiohttp.ClientSession, number: int, first_of: set[int], spare: list[SocketLink]
    ) -> None:
        """One socket after the other; the next one is open before the last one goes, if that says that it will. `first_of` are the slots with
        which all began, of which one has an open socket already."""
        handed = self._held.handed(number)
        if number in first_of:
            first_of.discard(number)
        elif not handed:
            self._gap = True  # whoever had it is gone without a word
        link = spare.pop() if spare else None
        try:
            while True:
                link = link or await self._next(http)
                self._begin(self._serve(link))
                await link.leaving.wait()
                old, link = link, None
                if old.reason == Farewell.LINK_DISABLED:
                    raise AdapterDown(SWITCHED_OFF, fatal=True)
                if old.reason == Farewell.TOO_MANY:
                    await self._patience(SOCKET.most, "Slack has too many sockets of this app open.")
                link = await self._next(http)
                self._begin(self._retire(old))
        finally:
            if link is not None:  # it is another gateway's now
                link.leaving.set()
                await link.ws.close()

    async def _next(self, http: aiohttp.ClientSession) -> SocketLink:
        """A new socket. While another one works, it is tried again and again; else whoever supervises decides."""
        for attempt in itertools.count(1):
            try:
                link = await self._dial(http)
            except CallFailed as error:
                if not self._alive:
                    raise
                log.info("slack.socket_not_opened", words=error.words)
                await self._patience(max(error.retry_after, SOCKET.seconds(attempt)), error.words)
            else:
                if self._gap:
                    self._gap = False
                    self._on_gap()
                return link
        raise AssertionError("counting has no end")

    async def _patience(self, seconds: float, words: str) -> None:
        if not self._alive:
            raise AdapterDown(words, wait_seconds=seconds)
        await asyncio.sleep(seconds)

    async def _dial(self, http: aiohttp.ClientSession) -> SocketLink:
        """A socket that is open. Raises `CallFailed`."""
        await self._held.may_open()
        url = await self._open_url()
        try:
            async with Limit(DIAL_SECONDS):
                ws = await http.ws_connect(
                    url, heartbeat=HEARTBEAT_SECONDS, proxy=self._proxy or None, max_msg_size=16 * 1024 * 1024
                )
        except (aiohttp.ClientError, OSError) as error:  # a time-out is one of the latter
            raise CallFailed(Fate.NOT_SENT, f"no socket could be opened ({type(error).__name__})") from error
        link = SocketLink(ws)
        self._alive.add(link)
        self._on_life()
        return link

    async def _retire(self, link: SocketLink) -> None:
        """Its successor is open: what still comes by it is taken, and then it goes."""
        await asyncio.sleep(LINGER_SECONDS)
        await link.ws.close()

    async def _serve(self, link: SocketLink) -> None:
        """Take in what comes by a socket, until it ends."""
        try:
            async for message in link.ws:
                if message.type is aiohttp.WSMsgType.TEXT:
                    self._on_life()
                    self._frame(link, message.data)
        except (aiohttp.ClientError, OSError) as error:
            log.info("slack.socket_broken", error=type(error).__name__)
        finally:
            self._alive.discard(link)
            # One that ends without a word may have been dead for a while, and Slack gave it its share of the events.
            self._gap = self._gap or not self._alive or not link.leaving.is_set()
            link.leaving.set()
            with contextlib.suppress(aiohttp.ClientError, OSError):
                await link.ws.close()

    def _frame(self, link: SocketLink, text: str) -> None:
        try:
            frame = table(json.loads(text))  # it takes halves of surrogate pairs, unlike stricter readers
        except (ValueError, RecursionError):
            log.warning("slack.odd_frame")
            return
        if frame.get("type") == "hello":
            number = frame.get("num_connections")
            self._on_hello(isinstance(number, int) and number > len(self._alive))
        elif frame.get("type") == "disconnect":
            link.reason = str(frame.get("reason") or "")
            link.leaving.set()
        elif envelope := frame.get("envelope_id"):
            self._begin(self._envelope(link, str(envelope), frame.get("payload")))

    async def _envelope(self, link: SocketLink, envelope: str, payload: object) -> None:
        try:
            if not await self._handle(payload):
                return  # not acknowledged: it comes again
        except Exception:
            log.exception("slack.envelope_failed")
            return  # likewise
        with contextlib.suppress(aiohttp.ClientError, OSError, RuntimeError):
            await link.ws.send_str(orjson.dumps({"envelope_id": envelope}).decode())


@dataclass(eq=False, slots=True)
class _Waits:
    """Somebody who waits for a turn; `settled` when no older one is waited for any more."""

    place: tuple[int, int]
    """Its age, and when it came."""
    parties: frozenset[str]
    turn: asyncio.Future[None]
    settled: bool = False


class InOrder:
    """A lock for each party that lets in the oldest that waits for it. Whoever has several needs all of them.

    Slack tells by several sockets at once, and parallel requests are read in an order of their own. Whoever takes something in waits for a
    moment (`settle_seconds`), in which what is older can still come, and then in the order of what was said. Those who have no party in common do not
    wait for each other.

    Laws (tests/adapters/test_inorder.py): of each party one at a time; of those that wait, the one with the lowest number is next, and of equal ones the
    one that came first; whoever is cancelled (or fails) while waiting holds nobody up.
    """

    def __init__(self, settle_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        self._lines: dict[str, list[_Waits]] = {}
        """Who waits, by party, the oldest first."""
        self._busy: set[str] = set()
        self._count = 0

    @asynccontextmanager
    async def turn(self, number: int, parties: frozenset[str] = ALL) -> AsyncGenerator[None]:
        """Come back when it is the turn of `number` (any measure of age, lower is older), and let the next in at the end."""
        self._count += 1
        loop = asyncio.get_running_loop()
        mine = _Waits((number, self._count), parties, loop.create_future())
        for party in parties:
            insort(self._lines.setdefault(party, []), mine, key=attrgetter("place"))
        timer = loop.call_later(self._settle_seconds, self._settle, mine)
        try:
            await mine.turn
        except BaseException:
            if mine.turn.cancelled():
                self._gone(mine)
            else:
                self._busy -= parties
            self._let_in(parties)
            raise
        finally:
            timer.cancel()
        try:
            yield
        finally:
            self._busy -= parties
            self._let_in(parties)

    def _settle(self, one: _Waits) -> None:
        """What is older than it, and came later, waits no longer than it."""
        for party in one.parties:
            for other in self._lines.get(party, ()):
                if other.place < one.place:
                    other.settled = True
        one.settled = True
        self._let_in(one.parties)

    def _let_in(self, parties: frozenset[str]) -> None:
        """Who is the first that waits for one of these, if it is so for all that it needs."""
        for party in parties:
            line = self._lines.get(party)
            if line and line[0].settled and self._is_next(line[0]):
                one = line[0]
                self._gone(one)
                if not one.turn.done():
                    self._busy |= one.parties
                    one.turn.set_result(None)

    def _is_next(self, one: _Waits) -> bool:
        return self._busy.isdisjoint(one.parties) and all(self._lines[party][0] is one for party in one.parties)

    def _gone(self, one: _Waits) -> None:
        for party in one.parties:
            if line := self._lines.get(party):
                if one in line:
                    line.remove(one)
                if not line:
                    del self._lines[party]
