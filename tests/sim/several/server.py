"""The simulated server of several gateways: who holds which lock, whom it hears, and the words that it passes on.

What is stored is a SQLite file, in which one transaction follows the other. What PostgreSQL has beside tables is here: locks that go with the connection
that holds them, connections that end when they are silent for 4 s, words for whoever listens. All that decides is the real code: `SimPulse` is
`PulseLock` on such a connection.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import sqlite3
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Insert,
    Text,
    bindparam,
    exists,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy import cast as as_type

import agent_core.store.database.ownership as ownership
import agent_core.store.sessions.sql as sessions
import agent_core.store.sessions.takeups as takeups
import agent_core.store.slices.access as access
import agent_core.store.slices.sql as sql
from agent_core.ports import Clock, Ids
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreAsks
from agent_core.store.database.lines import CONNECT_SECONDS, SqliteLine, sqlite_readers
from agent_core.store.database.mapping import inserting
from agent_core.store.database.node import Node
from agent_core.store.database.ownership import PulseLock, Who
from agent_core.store.database.place import SqlitePlace
from agent_core.store.database.way import ServerAway
from agent_core.store.database.writer import Writer
from agent_core.store.sessions import upkeep
from agent_core.store.slices.rows import ACCOUNT, slice_of
from agent_core.store.store import Store, store_of
from tests.sim.loop import SimLoop

WAY_SECONDS = (0.0005, 0.001, 0.02)
LOST_WORDS = 0.1


@dataclass(eq=False)
class Link:
    """A pulse's connection, as the server sees it."""

    pulse: SimPulse
    heard: float
    locks: set[int] = field(default_factory=set[int])
    open: bool = True


class Server:
    """One database server. `watch` it whenever time has passed."""

    def __init__(self, path: Path, seed: int, lost: float) -> None:
        self.path = path
        self.lost = lost
        """The share of words that nobody hears."""
        self.now = 0.0
        self.draw = random.Random(seed)
        self.links: list[Link] = []
        self.resting: list[Connection] = []
        """Connections that read, of all gateways: their engine is one, and has few."""
        self.listening: list[SimCalls] = []
        self.cut_off: set[SimLoop] = set()
        """Processes that nothing reaches and that reach nothing."""

    def watch(self, now: float) -> None:
        """Connections that were silent for too long are ended."""
        self.now = now
        for link in [one for one in self.links if now - one.heard > ownership.LEASE_SECONDS]:
            self.end(link)

    def silent_at(self) -> list[float]:
        """When connections will have been silent for too long."""
        return [one.heard + ownership.LEASE_SECONDS + 0.001 for one in self.links]

    def end(self, link: Link) -> None:
        if link.open:
            link.open = False
            self.links.remove(link)
            if link.pulse.loop not in self.cut_off:
                link.pulse.loop.call_soon(link.pulse._gone, cast("Any", link), None)

    def lock(self, link: Link, key: int, *, shared: bool = False) -> bool:
        if not shared and any(key in other.locks for other in self.links if other is not link):
            return False
        link.locks.add(key)
        return True

    def heard(self) -> list[int]:
        """Whose pulse was heard a moment ago."""
        recent = [link for link in self.links if self.now - link.heard < ownership.HEARD_SECONDS]
        return [key - ownership.LOCK_SPACE for link in recent for key in link.locks]

    def lives(self, node: int) -> bool:
        """Somebody holds the lock on this number."""
        return any(ownership.LOCK_SPACE + node in link.locks for link in self.links)

    def taken(self, node: int) -> int | None:
        database = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        try:
            found = database.execute("SELECT taken_by FROM nodes WHERE node = ?", (node,)).fetchone()
            return found[0] if found is not None else node
        finally:
            database.close()


SERVER: list[Server] = []
"""That of this scenario."""


class _Found:
    """What the server answers."""

    def __init__(self, *rows: tuple[object, ...]) -> None:
        self._rows = rows

    def scalar_one(self) -> object:
        return self._rows[0][0]

    def scalars(self) -> list[Any]:
        return [row[0] for row in self._rows]

    def first(self) -> tuple[object, ...] | None:
        return self._rows[0] if self._rows else None

    def all(self) -> list[tuple[object, ...]]:
        return [*self._rows]


class SimPulse(PulseLock):
    """The real one, on a connection to the simulated server."""

    def __init__(self, loop: SimLoop, clock: Clock) -> None:
        super().__init__(cast("Any", SqlitePlace(Path("sim"))), cast("Any", None), clock.monotonic)
        self.loop, self._server = loop, SERVER[-1]
        self._pending: asyncio.Future[Any] | None = None

    async def connect(self) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            await self._trip(lambda: None)
        link = Link(self, self._server.now)
        self._server.links.append(link)
        self._conn, self._pid = cast("Any", link), id(link)
        self._ended.clear()

    async def disconnect(self) -> None:
        link, self._conn = cast("Any", self._conn), None
        if link is not None and self.loop not in self._server.cut_off:
            self._server.end(link)

    def _cut(self) -> None:
        if self._pending is not None and not self._pending.done():
            self._pending.set_exception(ServerAway("cut"))

    async def _ask(self, query: Any, **values: Any) -> Any:
        link: Link | None = cast("Any", self._conn)
        if link is None:
            raise ServerAway("there is no connection")
        return await self._trip(lambda: self._answer(link, query, values))

    async def _trip(self, answer: Callable[[], Any]) -> Any:
        """There and back; nothing comes back while this process is cut off."""
        self._pending = done = self.loop.create_future()

        def arrives() -> None:
            if done.done() or self.loop in self._server.cut_off:
                return
            try:
                done.set_result(answer())
            except ServerAway as error:
                done.set_exception(error)

        self.loop.call_later(self.loop.random.choice(WAY_SECONDS), arrives)
        return await done

    def _answer(self, link: Link, query: Any, values: Mapping[str, Any]) -> _Found:
        if not link.open:
            raise ServerAway("the connection was ended")
        link.heard = self._server.now
        if query is ownership._LOCK or query is ownership._NUMBER:
            return _Found((self._server.lock(link, values["key"]),))
        if query is ownership._SHARED:
            return _Found((self._server.lock(link, values["key"], shared=True),))
        if query is ownership._STANDS:
            return _Found((self._server.taken(values["me"]),))
        if query is ownership._HEARD:
            return _Found(*((node,) for node in self._server.heard()))
        if query is ownership._END_OLD:
            for old in [one for one in self._server.links if id(one) == values["pid"]]:
                self._server.end(old)
        return _Found()

    def _asked(self, conn: Connection, nodes: Collection[int], query: Any, more: Mapping[str, int]) -> frozenset[int]:
        free = {node for node in nodes if node != self._node and not self._server.lives(node)}
        if query is ownership._TAKEN and free:
            told = t.nodes.c.node.in_(sorted(free)) & t.nodes.c.taken_by.is_(None)
            conn.execute(update(t.nodes).where(told).values(taken_by=more["me"]))
        return frozenset(free)


class SimCalls:
    """`NodeCalls`: words come a little later, some never."""

    def __init__(self, _place: object, heard: Callable[[str], None], missed: Callable[[], None]) -> None:
        self._loop, self._server, self._heard = cast("Any", asyncio.get_running_loop()), SERVER[-1], heard

    def call(self, word: str, /, *, soon: bool = True) -> None:
        del soon
        server = self._server
        for other in server.listening:
            reached = self._loop not in server.cut_off and other._loop not in server.cut_off
            if other is not self and reached and server.draw.random() >= server.lost:
                other._loop.call_later(server.draw.choice((0.001, 0.01, 0.3)), other._heard, word)

    async def run(self) -> None:
        self._server.listening.append(self)
        try:
            await asyncio.Event().wait()
        finally:
            self._server.listening.remove(self)


@asynccontextmanager
async def shared_store(path: Path, loop: SimLoop, clock: Clock, ids: Ids) -> AsyncGenerator[Store]:
    """As `open_store` of one of several, on the simulated server."""
    place = SqlitePlace(path)
    async with AsyncExitStack() as stack:
        pulse = SimPulse(loop, clock)
        stack.push_async_callback(pulse.disconnect)
        async with asyncio.timeout(ownership.AGAIN_SECONDS):
            await pulse.connect()
            await pulse.serve(None, shared=True)
        beating = asyncio.ensure_future(pulse.beat())
        stack.callback(beating.cancel)
        line = SqliteLine(place)
        node = await line.transact(
            lambda conn: upkeep.register(conn, upkeep.Arrival(ids.new("n"), clock.now_ms(), "sim"))
        )
        await pulse.be(node)
        readers = sqlite_readers(path)
        cast("Any", readers)._resting = SERVER[-1].resting
        writer = Writer(line, who := Who(node, pulse.dead))
        writer.start()
        stack.push_async_callback(writer.close)
        store = store_of(StoreAsks(readers, place.shown), Node(writer, who, pulse, clock, place.shown))
        yield store
        if not pulse.lost.is_set():
            await store.depart()


def _cursors(tenured: bool) -> Insert:
    """As `sql._cursors`, in SQLite's words."""
    said = {name: bindparam(name, type_=Text) for name in ("account", "channel", "last_seen")}
    one = select(literal(1)).select_from(t.slices)
    if tenured:
        name = t.slices.c.slice.concat("@").concat(as_type(t.slices.c.epoch, Text))
        held = select(text("value")).select_from(func.json_each(bindparam("held", type_=Text)))
        may = exists(one.where(t.slices.c.owner == bindparam("by_node"), name.in_(held)))
    else:
        base = literal(ACCOUNT, Text).concat(said["account"])
        may = ~exists(one.where(t.slices.c.slice == base, t.slices.c.owner != bindparam("by_node")))
    made = inserting(t.cursors, "sqlite").from_select([*said], select(*said.values()).where(may))
    return made.on_conflict_do_update(
        index_elements=["account", "channel"], set_={"last_seen": made.excluded.last_seen}
    )


def _slice_in(key: Column[str], names: Collection[str] | None) -> ColumnElement[bool]:
    return func.sim_slice(key).in_(bindparam("keys", expanding=True) if names is None else sorted(names))


def _divided(_: object) -> bool:
    return True


def _lives(node: int) -> bool:
    return SERVER[-1].lives(node)


def install() -> None:
    """Once a process, after `world.install`: what only PostgreSQL can be asked is asked of the simulated server."""
    connect = sqlite3.connect

    def connected(*arguments: Any, **more: Any) -> sqlite3.Connection:
        made = connect(*arguments, **more)
        made.create_function("sim_slice", 1, slice_of)
        made.create_function("sim_lives", 1, _lives)
        return made

    modules: tuple[Any, ...] = (sqlite3, importlib.import_module("sqlite3.dbapi2"))
    for module in modules:
        module.connect = connected
    asked, seen, left, together = (
        cast("Any", one) for one in (sql, access, takeups, importlib.import_module("gateway.several.together"))
    )
    cast("Any", sessions).divided = _divided
    asked.divided, asked._cursors = _divided, _cursors
    c = t.nodes.c
    peers = select(c.node, c.address, c.version, c.started_at, c.serves).order_by(c.node)
    seen.PEERS = living = peers.where(c.ended_at.is_(None), c.taken_by.is_(None), func.sim_lives(c.node) == 1)
    seen.DIVISION = sql.both(living)
    left.slice_in = _slice_in
    together.NodeCalls = SimCalls
    postgresql: Any = importlib.import_module("sqlalchemy.dialects.postgresql")
    postgresql.insert = importlib.import_module("sqlalchemy.dialects.sqlite").insert
