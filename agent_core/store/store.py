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
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, assert_never

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from agent_core.limits.budgets import Amount, Granted, Pot, Refused, Settled
from agent_core.limits.reckoning import Leap
from agent_core.limits.retention import Keep, cutoff, next_size
from agent_core.ports import Clock, Ids
from agent_core.store.audit import AuditRow
from agent_core.store.budgets.rows import Charge
from agent_core.store.database.lines import PostgresLine, SqliteLine, postgres_engine, prepare_file, sqlite_readers
from agent_core.store.database.ownership import FileLock, FileOwnership, Ownership, pulse
from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.trouble import in_words, opening
from agent_core.store.database.upgrade import ensure_schema
from agent_core.store.database.writer import Figures, Writer
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, GateRow
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
from agent_core.store.inbox import unread
from agent_core.store.inbox.rows import Accepted, NewMessage
from agent_core.store.inbox.unread import UnreadRow
from agent_core.store.keeping import pruning
from agent_core.store.keeping.packing import LOOKED_AT_BYTES, Packed, Piece, pack
from agent_core.store.keeping.pruning import Pruned
from agent_core.store.keeping.retaining import Removed
from agent_core.store.ops import (
    Accept,
    Act,
    Append,
    Claim,
    Close,
    DeleteMemory,
    Drop,
    MoveCursor,
    PutDeliveries,
    PutGate,
    PutIncident,
    PutMemory,
    PutPerson,
    PutPlace,
    PutSchedule,
    Reserve,
    Respond,
    Reword,
    Settle,
    Start,
    Touch,
    Unlink,
)
from agent_core.store.people import links as people
from agent_core.store.people.rows import LinkCode, LinkRow, PersonRow, PlaceRow, Redeemed
from agent_core.store.reads import Reads
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions import asides, takeups, upkeep
from agent_core.store.sessions.asides import Fresh
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.sql import Who
from agent_core.store.troubles.rows import IncidentRow, TroubleRow
from agent_core.store.turns.rows import FinishedCall, IntendedCall, JournalRow, OpenTurn

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
PRUNE_AT_ONCE = 100
"""How many rows the first pruning transaction looks at; then it is as many as take some milliseconds."""
PRUNE_MOST = 2_000
LOG_TRIES = 50
PAUSE = 3
"""Between two transactions that remove something the writer is the others' for so many times as long."""
KEEP = Keep()
T = TypeVar("T")


class Store(Reads):
    """The open store of this node. Made by `open_store`; all reads are methods of `Reads`."""

    def __init__(
        self, engine: AsyncEngine, writer: Writer, who: Who, ownership: Ownership, clock: Clock, shown: str
    ) -> None:
        super().__init__(engine, shown)
        self._writer = writer
        self._who = who
        self._clock = clock
        self.ownership = ownership
        """Ask `ownership.lease_ok()` before every send; watch `ownership.lost`."""
        self.shown = shown
        """The place in words, without a password."""
        self.memory = Memory(self, writer)
        """What `remember`, `recall` and `todo` use."""

    @property
    def node(self) -> int:
        """The number of this node, new at every start."""
        return self._who.node

    @property
    def figures(self) -> Figures:
        """The writer's counts, for metrics."""
        return self._writer.figures

    @property
    def waiting(self) -> int:
        """Writes that wait for their commit."""
        return self._writer.waiting

    def astray(self) -> bool:
        """Whether the files that others see are not those that are written here, as far as a look at their names tells. From any thread."""
        line = self._writer.line
        return isinstance(line, SqliteLine) and line.astray()

    @property
    def logs_saved(self) -> int:
        """How often the log of a SQLite database was taken away, and all that it held copied into the file."""
        line = self._writer.line
        return line.saved if isinstance(line, SqliteLine) else 0

    def on_commit(self, told: Callable[[int, float, bool], None]) -> None:
        """From now on `told` is called for each commit: how many writes, how many seconds, whether they are stored."""
        self._writer.on_commit = told

    async def accept(self, message: NewMessage) -> Accepted:
        """Promises: the message is stored once, with its cursor; only now may it be acknowledged to the platform.

        With a claim: the occurrence is claimed in the same commit; Conflict, and nothing is stored, if it was before. The session is made if its key is new, and is then this node's without a `claim` of its own. If the same (account, platform_key) is stored already, nothing changes, and the
        stored one is told with its turn.
        """
        packed = await _packed(message.body)
        message = replace(message, body=packed.body)
        op = Accept(message, claims=self.ownership.lease_ok(), pieces=packed.pieces)
        accepted = await self._writer.submit(op)
        assert isinstance(accepted, Accepted)
        return accepted

    async def move_cursor(self, account: str, channel: str, last_seen: str) -> None:
        """Promises: reading of `channel` goes on after `last_seen`; for what was read and is no message to accept."""
        await self._writer.submit(MoveCursor(account, channel, last_seen))

    async def keep_unread(self, row: UnreadRow, cursor: tuple[str, str] | None) -> bool:
        """Promises: what could not be taken in is kept as it came, with its cursor; only now may it be acknowledged to the platform.

        False if it was kept before; then nothing of it changes.
        """
        return await self._writer.alone(unread.keep(row, cursor))

    async def change_unread(self, row: UnreadRow) -> None:
        """Promises: it is stored what became of it. Before it is tried again, and after."""
        await self._writer.alone(unread.change(row))

    async def claim(self, session: str) -> int:
        """Promises: the session is this node's, under the epoch returned (at least 1). A turn that a dead node left open in it is
        still to be taken up.

        Raises OwnedElsewhere if a living node owns it, LeaseLost, Conflict.
        """
        self._must_live()
        epoch = await self._writer.submit(Claim(session))
        assert isinstance(epoch, int)
        return epoch

    async def start(
        self,
        session: str,
        epoch: int,
        turn: str,
        inbox_ids: Sequence[int],
        row: JournalRow,
        opened_at: int,
        deadline: int,
        judged: Sequence[JournalRow] = (),
    ) -> None:
        """Promises: the turn is open, its messages are taken by it alone, and its journal begins with `row` (number 0), and `judged`.

        Raises Conflict if the session has an open turn, or a message is not new, or not of this session.
        """
        rows, pieces = await _packed_rows([row, *judged])
        start = Start(session, epoch, turn, tuple(inbox_ids), tuple(rows), opened_at, deadline, pieces)
        await self._writer.submit(start)

    async def append(self, session: str, epoch: int, turn: str, rows: Sequence[JournalRow]) -> None:
        """Promises: `rows` are in the journal; only now may they be shown or acted on.

        Raises Conflict if they would leave a hole or the turn is closed, Fenced if a stored row differs.
        """
        rows, pieces = await _packed_rows(rows)
        await self._writer.submit(Append(session, epoch, turn, tuple(rows), pieces=pieces))

    async def intend(
        self, session: str, epoch: int, turn: str, rows: Sequence[JournalRow], calls: Sequence[IntendedCall]
    ) -> None:
        """Promises: as `append`, and that `calls` are recorded as intended: from here on they may have run."""
        rows, pieces = await _packed_rows(rows)
        await self._writer.submit(Append(session, epoch, turn, tuple(rows), intended=tuple(calls), pieces=pieces))

    async def finish_call(
        self, session: str, epoch: int, turn: str, rows: Sequence[JournalRow], calls: Sequence[FinishedCall]
    ) -> None:
        """Promises: as `append`, and that the outcomes of `calls` are recorded; only now may the model see the results.

        Raises Conflict if a call was never intended, Fenced if it has another outcome already.
        """
        rows, pieces = await _packed_rows(rows)
        await self._writer.submit(Append(session, epoch, turn, tuple(rows), finished=tuple(calls), pieces=pieces))

    async def close(
        self,
        session: str,
        epoch: int,
        turn: str,
        rows: Sequence[JournalRow],
        exit: str,  # noqa: A002 - the word of the design for how a turn ends
        closed_at: int,
        deliveries: Sequence[DeliveryRow] = (),
        used: tuple[int, int] = (0, 0),
        heard: Sequence[int] = (),
        troubles: Sequence[TroubleRow] = (),
    ) -> None:
        """Promises: the exit's rows, the closed turn, its messages done and `deliveries` wanted are there together or not at all.

        `used` are the tokens of the turn, in and out; `heard` are messages that came into the running turn; `troubles` is what
        went wrong in it. Raises Fenced if the turn has ended already in another way.
        """
        rows, pieces = await _packed_rows(rows)
        await self._writer.submit(
            Close(
                session,
                epoch,
                turn,
                tuple(rows),
                exit,
                closed_at,
                tuple(deliveries),
                *used,
                tuple(heard),
                tuple(troubles),
                pieces,
            )
        )

    async def respond(
        self,
        session: str,
        epoch: int,
        inbox_id: int,
        change: SessionChange,
        deliveries: Sequence[DeliveryRow],
        schedules: Sequence[ScheduleRow] = (),
    ) -> None:
        """Promises: a command is done, with what it changes and what is to be said, together or not at all.

        Raises Conflict if one of `schedules` is not as it was seen.
        """
        await self._writer.submit(Respond(session, epoch, inbox_id, change, tuple(deliveries), tuple(schedules)))

    async def change(self, session: str, epoch: int, change: SessionChange) -> None:
        """Promises: the session is changed like this."""
        await self._writer.submit(Respond(session, epoch, 0, change, ()))

    async def reword(
        self, account: str, platform_key: str, body: bytes, charges: tuple[Charge, ...] = (), at: int = 0
    ) -> bool:
        """Promises: a message that no turn has taken yet now reads like this, and what is new in it counts for the day. False if it is too
        late, or unknown. Raises `NoRoomToday`."""
        packed = await _packed(body)
        op = Reword(account, platform_key, packed.body, packed.pieces, charges, at)
        return await self._writer.submit(op) is True

    async def put_deliveries(self, session: str, epoch: int, deliveries: Sequence[DeliveryRow]) -> None:
        """Promises: these parts are stored as they are given. Before a part is sent, and after, see `gateway.delivery.outbox`."""
        await self._writer.submit(PutDeliveries(session, epoch, tuple(deliveries)))

    async def act(
        self, audit: AuditRow, session: str = "", epoch: int = 0, deliveries: Sequence[DeliveryRow] = ()
    ) -> None:
        """Promises: it is noted what was done by hand, and `deliveries` of `session` are stored, together or not at all."""
        await self._writer.submit(Act(audit, session, epoch, tuple(deliveries)))

    async def move_chat(self, account: str, old: str, new: str) -> None:
        """Promises: the sessions and the parts of chat `old` of `account` (``platform/bot/``) are those of chat `new` now."""
        await self._writer.alone(upkeep.move_chat(account, old, new))

    async def note_adapter(self, row: AdapterStateRow) -> None:
        """Promises: it is stored how an adapter is doing from then on."""
        await self._writer.alone(upkeep.note_adapter(row))

    async def put_incident(self, incident: IncidentRow) -> bool:
        """Promises: the incident is stored as it is. Answers whether it opens or closes by this."""
        return await self._writer.submit(PutIncident(incident)) is True

    async def put_gate(self, gate: GateRow) -> None:
        """Promises: also after a restart nothing is sent there before the time."""
        await self._writer.submit(PutGate(gate))

    async def put_person(self, person: PersonRow) -> None:
        """Promises: what is known of a person, and what they may do, is stored. Who is revoked is unlinked as well."""
        await self._writer.submit(PutPerson(person))

    async def put_place(self, place: PlaceRow) -> None:
        """Promises: the private chat is known. If it was before, nothing changes."""
        await self._writer.submit(PutPlace(place))

    async def put_link_code(self, code: LinkCode) -> None:
        """Promises: whoever types this code in another account joins it with the code's; an older code does nothing any more."""
        await self._writer.alone(people.put_code(code))

    async def redeem(self, code: str, by: LinkRow, message: str, most: int) -> Redeemed:
        """Promises: if the answer is `JOINED`, the code's account and `by` are one person's, and the code joins nobody else.

        `by.who` is used if neither account has joined any other. The same `message` gets the same answer again.
        """
        return await self._writer.alone(people.redeem(code, by, message, self._clock.now_ms(), most))

    async def unlink(self, account: str, person: str) -> None:
        """Promises: the account is joined with no other, its code is void, and nothing goes on across its border."""
        await self._writer.submit(Unlink(account, person))

    async def reserve(
        self, session: str, epoch: int, call: str, amount: Amount, pots: Sequence[Pot], at: int
    ) -> Granted | Refused:
        """Promises: `amount` is held for `call` in all `pots`, or, if one of them is full, in none; only now may the model be called."""
        answer = await self._writer.submit(Reserve(session, epoch, call, amount, tuple(pots), at))
        assert isinstance(answer, Granted | Refused)
        return answer

    async def settle(
        self, session: str, epoch: int, call: str, used: Amount, pots: Sequence[Pot], at: int, *, estimated: bool
    ) -> Settled:
        """Promises: nothing is held for `call` any more, and what it used is spent. Raises Fenced if it is settled otherwise already."""
        answer = await self._writer.submit(Settle(session, epoch, call, used, estimated, tuple(pots), at))
        assert isinstance(answer, Settled)
        return answer

    async def put_schedule(self, schedule: ScheduleRow) -> None:
        """Promises: the schedule is stored like this. Raises Conflict if it is not as it was seen (`rev` less one)."""
        await self._writer.submit(PutSchedule(schedule))

    async def drop(self, inbox_id: int, reason: str) -> None:
        """Promises: the message will never be part of a turn, and `reason` says why. Raises Conflict unless it is new."""
        await self._writer.submit(Drop(inbox_id, reason))

    async def take_over(self, make_row: upkeep.MakeRow) -> list[OpenTurn]:
        """Promises: the sessions of dead nodes have a new epoch, and each open turn's journal ends with the row from `make_row`.

        `make_row(turn, seq, epoch)` is called inside the transaction, on the writer's thread, once an attempt; it must be quick
        and use the number given. Sessions with an open turn or waiting messages are this node's now. Returns the open turns
        taken. Tool calls are left as they are; what dead nodes held of budgets counts as used. Raises LeaseLost.
        """
        self._must_live()
        return await self._writer.alone(upkeep.take_over(make_row, self._who))

    async def take_up(
        self, make_row: upkeep.MakeRow, sessions: Collection[str], charges: takeups.Charges
    ) -> takeups.Taken:
        """Promises: those of `sessions` whose owner is dead are this node's, and it is stored how often what `charges` names was
        taken up; only now may anything be done with it. The journal of each of its turns ends with the row from `make_row`.

        What dead nodes held of budgets counts as used. Raises LeaseLost.
        """
        self._must_live()
        return await self._writer.alone(takeups.take_up(make_row, self._who, sessions, charges))

    async def set_aside(self, session: str, words: str, fresh: str) -> Fresh | None:
        """Promises: `session` has no key any more, and the new session `fresh` has it. None if it is a living node's, or not there."""
        self._must_live()
        return await self._writer.alone(asides.set_aside(session, words, fresh, self._clock.now_ms(), self._who))

    async def drop_unread(self, inbox_id: int, words: str) -> None:
        """Promises: the message of a session that was set aside will not be part of a turn, and `words` say why."""
        await self._writer.alone(asides.drop(inbox_id, words))

    async def end_unread(self, turn: str, ending: str) -> None:
        """Promises: the turn, whose journal cannot be read, is over."""
        await self._writer.alone(asides.end_turn(turn, ending, self._clock.now_ms()))

    async def charge(self, charges: takeups.Charges) -> None:
        """Promises: these suspicions are stored."""
        await self._writer.alone(lambda conn: takeups.charge(conn, charges))

    async def dead_among(self, nodes: Collection[int]) -> frozenset[int]:
        """Which of these nodes are dead, as far as can be seen just now."""
        others = frozenset(nodes) - {self.node}
        if not others:
            return frozenset()
        try:
            async with self._engine.connect() as conn:
                return await conn.run_sync(lambda one: self.ownership.dead(one, others))
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise StorageUnavailable(f"The database {self._shown} cannot be read: {in_words(error)}.") from error

    async def depart(self) -> None:
        """Promises: this node has ended in order; what it leaves open, it leaves on purpose."""
        await self._writer.alone(takeups.depart(self.node, self._clock.now_ms()))

    async def prune(self, now_ms: int, keep: Keep = KEEP, leaps: tuple[Leap, ...] = ()) -> Pruned:
        """Promises: gone is what is old at `now_ms` of ended messages, settled parts, failures and entries of what was done by hand;
        nothing of an open turn, and no message that a platform may bring again.

        Goes in small transactions with pauses in between, so that others are hardly held up.
        """
        now = min(now_ms, self._clock.now_ms())
        messages, failures, audit = (
            cutoff(now, days, leaps) for days in (keep.bodies_days, keep.failures_days, keep.audit_days)
        )
        old = pruning.Old(messages, failures, audit)
        gone: Counter[str] = Counter()
        longest = 0.0
        for kind in pruning.kinds(old):
            after, most = None, PRUNE_AT_ONCE
            while True:
                walked, seconds = await self._writer.timed(pruning.walk(kind, after, most))
                gone[kind.counted] += walked.count
                longest, after = max(longest, seconds), walked.after
                if after is None:
                    break
                most = next_size(most, seconds, PRUNE_MOST)
                await asyncio.sleep(seconds * PAUSE)
        nodes, seconds = await self._writer.timed(pruning.the_rest(old, self._who))
        return Pruned(gone["messages"], nodes, gone["parts"], gone["failures"], max(longest, seconds))

    async def remove(self, body: Callable[[Connection], T]) -> T:
        """Promises: one of the transactions of `retaining` or `forgetting` is committed."""
        return await self._writer.alone(body)

    async def remove_some(self, body: Callable[[Connection], int]) -> Removed:
        """Promises: as `remove`, for those that say how much they have removed; and how long nobody else could write is told."""
        return Removed(*await self._writer.timed(body))

    async def scrub(self, most_bytes: int | None) -> bool:
        """Promises: of a SQLite database, nothing that was removed is in its log any more; and, if the answer is True, nothing is left
        between the rows of its file either, because it was written anew. Files larger than `most_bytes` are not.

        On PostgreSQL that is the server's work, and the answer is True.
        """
        line = self._writer.line
        if not isinstance(line, SqliteLine):
            return True
        with opening(self.shown):
            for _ in range(LOG_TRIES):
                if await line.emptied_log():
                    break
                await asyncio.sleep(0.1)
            if most_bytes is not None and await self.retaining.database_bytes() > most_bytes:
                return False
            await line.rewrite()
        return True

    async def check(self, timeout_seconds: float = 5.0, room_bytes: int = 0) -> None:
        """Promises: a write got through just now, in the same commits as everybody's; one that needed so much room. Raises StorageUnavailable."""
        try:
            async with asyncio.timeout(timeout_seconds):
                if room_bytes:  # what cannot be made smaller, and is gone again at once
                    await self._writer.submit(PutMemory("", PROBE, "", os.urandom(room_bytes), self._clock.now_ms()))
                    await self._writer.submit(DeleteMemory("", PROBE, ""))
                await self._writer.submit(Touch())
        except TimeoutError:
            raise StorageUnavailable(f"The database {self.shown} took no write within {timeout_seconds:g} s.") from None

    def _must_live(self) -> None:
        if not self.ownership.lease_ok():
            raise LeaseLost(f"Node {self.node} has lost its lock in {self.shown}; open the store again as a new node.")


async def _packed(body: bytes) -> Packed:
    """A body as it is stored; a large one is looked at beside the loop."""
    return Packed(body) if len(body) < LOOKED_AT_BYTES else await asyncio.to_thread(pack, body)


async def _packed_rows(rows: Sequence[JournalRow]) -> tuple[list[JournalRow], tuple[Piece, ...]]:
    packed = [await _packed(row.body) for row in rows]
    made = [replace(row, body=one.body) for row, one in zip(rows, packed, strict=True)]
    return made, tuple(piece for one in packed for piece in one.pieces)


class Memory:
    """Implements `agent_core.tools.base.MemoryStore`: durable when the call returns."""

    def __init__(self, reads: Reads, writer: Writer) -> None:
        self._reads = reads
        self._writer = writer

    async def put(self, scope: str, kind: str, name: str, value: str, *, at_ms: int) -> None:
        """Store or replace one entry."""
        await self._writer.submit(PutMemory(scope, kind, name, value.encode(), at_ms))

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        """Remove one entry; True if it was there."""
        return await self._writer.submit(DeleteMemory(scope, kind, name)) is True

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        return await self._reads.memories(scope, kind)


@asynccontextmanager
async def open_store(url_or_path: str | Path, *, clock: Clock, ids: Ids, version: str) -> AsyncGenerator[Store]:
    """The store at a path (SQLite) or URL (``sqlite:///…``, ``postgresql://…``), upgraded if need be, for the block.

    Raises CannotOpen or one of its kinds: AlreadyRunning, DatabaseTooNew, NotOurDatabase.
    """
    place = parse_place(url_or_path)
    arrival = upkeep.Arrival(ids.new("n"), clock.now_ms(), version)
    async with AsyncExitStack() as stack:
        match place:
            case SqlitePlace():
                store = await _open_sqlite(stack, place, arrival, clock)
            case PostgresPlace():
                store = await _open_postgres(stack, place, arrival, clock)
            case _:
                assert_never(place)
        yield store
        with suppress(StoreError):  # then it counts as having died, which is the safe side
            await store.depart()


async def _open_sqlite(stack: AsyncExitStack, place: SqlitePlace, arrival: upkeep.Arrival, clock: Clock) -> Store:
    with opening(place.shown):
        await asyncio.to_thread(place.there)
        await asyncio.to_thread(prepare_file, place.path)
        lock = await FileLock.acquire(place.path)
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
    writer = Writer(line, who)
    writer.start()
    stack.push_async_callback(writer.close)
    return Store(readers, writer, who, ownership, clock, place.shown)


async def _open_postgres(stack: AsyncExitStack, place: PostgresPlace, arrival: upkeep.Arrival, clock: Clock) -> Store:
    engine = postgres_engine(place, name="writer", autocommit=False)
    stack.push_async_callback(engine.dispose)
    line = PostgresLine(place, engine)
    stack.push_async_callback(line.close)
    await ensure_schema(line, place)
    with opening(place.shown):
        node = await line.transact(lambda conn: upkeep.register(conn, arrival))
    ownership = await stack.enter_async_context(pulse(place, node))
    readers = postgres_engine(place, name="reader", autocommit=True)
    stack.push_async_callback(readers.dispose)
    who = Who(node, ownership.dead)
    writer = Writer(line, who)
    writer.start()
    stack.push_async_callback(writer.close)
    return Store(readers, writer, who, ownership, clock, place.shown)
