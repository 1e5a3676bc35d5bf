"""The durable store: the named transactions of the core, each one commit, and what can be read back.

Theory. The journal is the only checkpoint. Everything that must survive goes through one writer per node, which groups commits;
a session's writes count only under the epoch of its owner, which is compared in the same transaction. All writes may be repeated
with the same content. A method that returns has committed; one that raises `StorageUnavailable` may or may not have.

All methods raise `StorageUnavailable` when the database is away, and those that write for a session raise `Fenced` when it is
somebody else's by now: then whatever the caller holds of that session is void.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import assert_never

from sqlalchemy.exc import SQLAlchemyError

from agent_core.ports import Clock, CommonClock, Ids
from agent_core.records import dataclass
from agent_core.store.apikeys.access import ApiKeys
from agent_core.store.batch import usual
from agent_core.store.batch.owned import Owned
from agent_core.store.budgets.access import Budgets
from agent_core.store.changes import Changes
from agent_core.store.database.asks import StoreAsks
from agent_core.store.database.lines import PostgresLine, SqliteLine, postgres_engine, prepare_file, sqlite_readers
from agent_core.store.database.node import Node
from agent_core.store.database.ownership import FileLock, FileOwnership, Ownership, PulseLock, Serves, Waits, Who, pulse
from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.readers import PostgresReaders
from agent_core.store.database.trouble import in_words, opening
from agent_core.store.database.upgrade import ensure_schema
from agent_core.store.database.way import Way
from agent_core.store.database.writer import Figures, Writer
from agent_core.store.deliveries.access import Deliveries
from agent_core.store.errors import (
    AlreadyRunning,
    CannotOpen,
    Conflict,
    Damaged,
    DatabaseTooNew,
    Fenced,
    LeaseLost,
    NoRoomToday,
    NotOurDatabase,
    OwnedElsewhere,
    Rejected,
    StorageFull,
    StorageUnavailable,
    StoreError,
)
from agent_core.store.inbox.access import Inbox
from agent_core.store.inbox.unread import UnreadStore
from agent_core.store.keeping.forgetting import Forgotten
from agent_core.store.keeping.keeping import Keeping
from agent_core.store.keeping.retaining import Retaining
from agent_core.store.memory.access import StoredMemory
from agent_core.store.memory.ops import DeleteMemory, PutMemory
from agent_core.store.overview import Overview
from agent_core.store.people.access import People
from agent_core.store.reads import Reads
from agent_core.store.schedules.access import Schedules
from agent_core.store.sessions import takeups, upkeep
from agent_core.store.sessions.access import Sessions
from agent_core.store.sessions.asides import Asides
from agent_core.store.sessions.ops import Touch
from agent_core.store.sessions.takeups import Left
from agent_core.store.slices.access import Slices
from agent_core.store.slices.sql import nobody_shares
from agent_core.store.troubles.access import Troubles
from agent_core.store.turns.access import Turns
from agent_core.store.webhooks.access import Hooks

__all__ = [
    "AlreadyRunning",
    "CannotOpen",
    "Conflict",
    "Damaged",
    "DatabaseTooNew",
    "Fenced",
    "LeaseLost",
    "NoRoomToday",
    "NotOurDatabase",
    "OwnedElsewhere",
    "Rejected",
    "StorageFull",
    "StorageUnavailable",
    "Store",
    "StoreError",
    "open_store",
]

PROBE = "probe"


@dataclass(frozen=True, eq=False)
class Store(Reads):
    """The open store of this node. Made by `open_store`; each aggregate's object reads and writes."""

    writing: Node
    """This process, as it writes."""
    inbox: Inbox
    unread: UnreadStore
    sessions: Sessions
    turns: Turns
    deliveries: Deliveries
    people: People
    apikeys: ApiKeys
    schedules: Schedules
    troubles: Troubles
    budgets: Budgets
    memory: StoredMemory
    """What `remember`, `recall` and `todo` use."""
    left: Left
    asides: Asides
    keeping: Keeping
    hooks: Hooks
    slices: Slices

    @property
    def shown(self) -> str:
        """The place in words, without a password."""
        return self.asks.shown

    @property
    def ownership(self) -> Ownership:
        """Ask `ownership.lease_ok()` before every send; watch `ownership.lost`."""
        return self.writing.ownership

    @property
    def way(self) -> Way | None:
        """The way to a server; None if there is none."""
        return self.ownership.way

    @property
    def writer(self) -> Writer:
        """The one that commits."""
        return self.writing.writer

    @property
    def node(self) -> int:
        """The number of this node, new at every start."""
        return self.writing.who.node

    @property
    def figures(self) -> Figures:
        """The writer's counts, for metrics."""
        return self.writer.figures

    @property
    def changes(self) -> Changes:
        """Counts what is committed."""
        return self.writer.changes

    @property
    def waiting(self) -> int:
        """Writes that wait for their commit."""
        return self.writer.waiting

    def astray(self) -> bool:
        """Whether the files that others see are not those that are written here, as far as a look at their names tells. From any thread."""
        line = self.writer.line
        return isinstance(line, SqliteLine) and line.astray()

    @property
    def logs_saved(self) -> int:
        """How often the log of a SQLite database was taken away, and all that it held copied into the file."""
        line = self.writer.line
        return line.saved if isinstance(line, SqliteLine) else 0

    def preparing(self) -> Iterator[Callable[[], object]]:
        """What makes the first turn as cheap as the second, in small steps, which may be taken by any thread."""
        line = self.writer.line
        return usual.preparing(line.dialect) if isinstance(line, SqliteLine) else iter(())

    def on_commit(self, told: Callable[[int, float, bool], None]) -> None:
        """From now on `told` is called for each commit: how many writes, how many seconds, whether they are stored."""
        self.writer.on_commit = told

    async def dead_among(self, nodes: Collection[int]) -> frozenset[int]:
        """Which of these nodes are dead, as far as can be seen just now."""
        others = frozenset(nodes) - {self.node}
        if not others:
            return frozenset()
        try:
            return await self.asks.readers.run(lambda conn: self.ownership.seem_dead(conn, others))
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise StorageUnavailable(f"The database {self.shown} cannot be read: {in_words(error)}.") from error

    async def depart(self) -> None:
        """Promises: this node has ended in order; what it leaves open, it leaves on purpose."""
        await self.writer.alone(takeups.depart(self.node, self.writing.clock.now_ms()))

    async def check(self, timeout_seconds: float = 5.0, room_bytes: int = 0) -> None:
        """Promises: a write got through just now, in the same commits as everybody's; one that needed so much room. Raises StorageUnavailable."""
        if self.ownership.may_return():
            raise StorageUnavailable(f"The database {self.shown} cannot be reached.")
        try:
            async with asyncio.timeout(timeout_seconds):
                if room_bytes:  # what cannot be made smaller, and is gone again at once
                    await self.writer.submit(
                        PutMemory("", PROBE, "", os.urandom(room_bytes), self.writing.clock.now_ms())
                    )
                    await self.writer.submit(DeleteMemory("", PROBE, ""))
                await self.writer.submit(Touch())
        except TimeoutError:
            raise StorageUnavailable(f"The database {self.shown} took no write within {timeout_seconds:g} s.") from None


def store_of(asks: StoreAsks, node: Node) -> Store:
    """All that can be asked and written."""
    return Store(
        asks=asks,
        writing=node,
        inbox=Inbox(asks, node),
        unread=UnreadStore(asks, node),
        sessions=Sessions(asks, node),
        turns=Turns(asks, node),
        deliveries=Deliveries(asks, node),
        people=People(asks, node),
        apikeys=ApiKeys(asks, node),
        schedules=Schedules(asks, node),
        troubles=Troubles(asks, node),
        budgets=Budgets(asks, node),
        memory=StoredMemory(asks, node),
        left=Left(asks, node),
        asides=Asides(asks, node),
        keeping=Keeping(asks, node),
        overview=Overview(asks),
        retaining=Retaining(asks),
        forgotten=Forgotten(asks),
        hooks=Hooks(asks, node),
        slices=Slices(asks, node),
    )


@asynccontextmanager
async def open_store(
    url_or_path: str | Path,
    *,
    clock: Clock,
    ids: Ids,
    version: str,
    serves: Serves = Serves.NOT,
    waits: Waits | None = None,
) -> AsyncGenerator[Store]:
    """The store at a path (SQLite) or URL (``sqlite:///…``, ``postgresql://…``), upgraded if need be, for the block.

    `serves` is for gateways; a command may look into a database of PostgreSQL beside them. `waits` is asked while another has it that does not
    share it, and nothing of the database is touched before that one is gone. Raises CannotOpen or one of its kinds: AlreadyRunning,
    DatabaseTooNew, NotOurDatabase. A `CommonClock` has the server's time from here on, where there is a server.
    """
    place = parse_place(url_or_path)
    async with AsyncExitStack() as stack:
        match place:
            case SqlitePlace():
                arrival = upkeep.Arrival(ids.new("n"), clock.now_ms(), version)
                store = await _open_sqlite(stack, place, arrival, clock, waits)
            case PostgresPlace():
                common = clock if isinstance(clock, CommonClock) else None
                ownership = await stack.enter_async_context(pulse(place, serves=serves, waits=waits, common=common))
                arrival = upkeep.Arrival(ids.new("n"), clock.now_ms(), version)
                store = await _open_postgres(stack, place, arrival, clock, ownership, alone=serves is Serves.ALONE)
            case _:
                assert_never(place)
        yield store
        with suppress(StoreError):  # then it counts as having died, which is the safe side
            await store.depart()


async def _open_sqlite(
    stack: AsyncExitStack, place: SqlitePlace, arrival: upkeep.Arrival, clock: Clock, waits: Waits | None
) -> Store:
    with opening(place.shown):
        await asyncio.to_thread(place.there)
        await asyncio.to_thread(prepare_file, place.path)
        lock = await FileLock.acquire(place.path, waits)
    stack.callback(lock.release)
    line = SqliteLine(place)
    stack.push_async_callback(line.close)  # the last connection: it copies the log into the file and removes it
    await ensure_schema(line, place)
    with opening(place.shown):
        node = await line.transact(lambda conn: upkeep.register(conn, arrival))
    readers = sqlite_readers(place.path)
    line.release_readers = readers.dispose
    stack.push_async_callback(readers.dispose)
    ownership = FileOwnership()
    who = Who(node, ownership.dead)
    writer = Writer(line, who, owned=Owned())
    writer.start()
    stack.push_async_callback(writer.close)
    return store_of(StoreAsks(readers, place.shown), Node(writer, who, ownership, clock, place.shown))


async def _open_postgres(
    stack: AsyncExitStack,
    place: PostgresPlace,
    arrival: upkeep.Arrival,
    clock: Clock,
    ownership: PulseLock,
    *,
    alone: bool,
) -> Store:
    from agent_core.store.batch import distant

    engine = postgres_engine(place, name="writer", autocommit=False)
    stack.push_async_callback(engine.dispose)
    line = PostgresLine(place, engine, ownership.way, (distant.WRITE,))
    stack.push_async_callback(line.close)
    await ensure_schema(line, place)
    with opening(place.shown):
        node = await line.transact(lambda conn: upkeep.register(conn, arrival))
        await ownership.be(node)
        if alone:
            await line.transact(nobody_shares)
    readers = PostgresReaders(postgres_engine(place, name="reader", autocommit=True), ownership.way)
    stack.push_async_callback(readers.dispose)
    who = Who(node, ownership.dead)
    writer = Writer(line, who, brief=distant.carry_out)
    writer.start()
    stack.push_async_callback(writer.close)
    return store_of(StoreAsks(readers, place.shown), Node(writer, who, ownership, clock, place.shown))
