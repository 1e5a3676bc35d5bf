"""What an auditor reads: the rows themselves, page by page, without what the store makes of them for others.

Law: each page is a few questions that steps in an index answer, and has at most as many rows as were asked for; between two pages the
database belongs to others. Nothing is joined that could be missing: what an auditor looks for is a row that is not there.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import EnumType
from itertools import accumulate
from typing import Any, Generic, TypeAlias, TypeVar

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
    tuple_,
    union_all,
)

from agent_core.limits.budgets import Amount
from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.budgets.rows import DAILY, PotRow, ReservationRow, ReservationState
from agent_core.store.database.asks import Always, StoreReading
from agent_core.store.database.keys import among
from agent_core.store.database.ownership import LIVES
from agent_core.store.deliveries.rows import DeliveryRow, GateRow, made_for
from agent_core.store.errors import Damaged
from agent_core.store.inbox.rows import CursorRow, InboxRow, InboxState, UnreadRow
from agent_core.store.keeping.packing import MARK, PieceForm, is_whole, needed
from agent_core.store.keeping.pieces import GONE, read
from agent_core.store.keeping.rows import ForgetRow
from agent_core.store.schedules.rows import OccurrenceRow, ScheduleRow, ScheduleState
from agent_core.store.sessions.rows import NodeRow, SessionRow
from agent_core.store.turns.rows import ROWS_A_TURN, JournalRow, ToolCallRow, TurnRow, TurnState, timed
from agent_core.store.webhooks.rows import HookRow, HookState, ReceiverRow, StoredHook

T = TypeVar("T")
PotKey: TypeAlias = "tuple[str, int]"
"""Scope and window."""

AROUND = 1_000
"""So far from those that a turn says it began with, messages are looked for that say the same of it."""
LONG_MS = 24 * 3_600_000
"""By so much a clock may have been set between two things that are stored."""
MOMENT_MS = 1_000
"""So far from each other, two times of one moment may be stored."""
ENDED = "turn.ended"
"""What a webhook is told once of each turn."""
CURSORS = 500
"""So many positions are read at a time."""
CALLS = 500
"""So many model calls."""
PIECES_BYTES = 4 * 1024 * 1024
"""So much of pieces is read at once."""
NO_TIME = 2**62
CLAIMED_MOST = 5_000
COUNTED = 1_000
"""So many pieces are counted at a time."""
OPEN_MOST = 500
"""So many open turns, and so many waiting messages, are looked at in one pass."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row of a journal as it is kept: with the epoch of its writer."""

    id: int
    epoch: int
    row: JournalRow


@dataclass(frozen=True, slots=True)
class KeptPart:
    """A part as it is kept."""

    id: int
    session: str
    epoch: int
    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """A turn with all that is stored of it."""

    turn: TurnRow
    session: SessionRow | None
    before: TurnRow | None
    """The turn with the next lower number of its session that is still there."""
    journal: tuple[KeptRow, ...] = ()
    unreadable: str = ""
    """Why its journal cannot be read; empty if it can."""
    messages: tuple[InboxRow, ...] = ()
    parts: tuple[KeptPart, ...] = ()
    calls: tuple[ToolCallRow, ...] = ()
    parts_before: tuple[KeptPart, ...] = ()
    """Of the turn before."""
    heard_before: int = 0
    """The number of one of its messages that the turn before has heard as well; 0 if there is none."""
    last: int = 0
    """The number of the last turn of its session; 0 if that was not asked."""
    emptied: frozenset[str] = frozenset()
    """Chats for which parts of it were made and in which nothing is recorded any more, of any turn."""


@dataclass(frozen=True, slots=True)
class MessageEvidence:
    """A message, its session, and the turn that has taken it, or may have heard it."""

    message: InboxRow
    session: SessionRow | None
    turn: TurnRow | None
    """Which has taken it; None if it names none, or one that is not there."""
    open_turn: TurnRow | None = None
    """Of its session."""
    passed: int = 0
    """The number of a later message of its session that a turn has taken; 0 if there is none."""
    around: tuple[TurnRow, ...] = ()
    """Turns of its session that may have been open when it came; only of a message that is done without one."""
    heard: TurnRow | None = None
    """That one of them whose journal has it."""
    told: bool = False
    """Something was shown in a chat because of it."""
    came_by: int | None = None
    """When messages that came after it had come: by then it had as well. None if none did, or it does not wait."""
    beside: tuple[int, ...] = ()
    """When those just behind and before it came; asked only of one that says it came after its turn had begun. All in ms."""


@dataclass(frozen=True, slots=True)
class PieceEvidence:
    """Something large that was cut out of messages and journals (`packing`)."""

    number: int
    size: int
    """Bytes."""
    whole: bool
    """Its content is the one that it was stored with; also if that was removed since."""
    at: int
    refs: int = 1
    """How often it counts as needed: what nobody needs is gone in the same commit."""


@dataclass(frozen=True, slots=True)
class Unpaid:
    """A turn that is over and used more than was counted for its calls, though how much each of them used is known."""

    turn: str
    session: str
    used: int
    """Tokens, as the turn says."""
    paid: int
    """Tokens of its calls."""
    at: int | None
    """When it ended, ms."""


@dataclass(frozen=True, slots=True)
class LedgerEvidence:
    """Pots, and the calls that something is, or was, held for in them. Of a budget for years there are more calls than anybody can hold."""

    pots: tuple[PotRow, ...]
    under_way: tuple[ReservationRow, ...]
    """All calls that something is held for."""
    spent: Mapping[PotKey, Amount]
    """What calls used that are over."""
    steady: bool
    """Nobody changed anything while they were read."""
    since: int = 0
    """All calls are among them that were made after this time, ms."""
    unpaid: tuple[Unpaid, ...] = ()
    calls: Mapping[PotKey, int] | None = None
    """How many calls are over; None if they were not counted."""
    guessed: Mapping[PotKey, Amount] | None = None
    """What of it was estimated."""


@dataclass(frozen=True, slots=True)
class PieceCount:
    """A piece that counts as needed, or is needed, more often than the other."""

    number: int
    """0: it is not there."""
    counted: int
    """By itself."""
    needed: int
    """By what is stored: in so many gaps."""


@dataclass(frozen=True, slots=True)
class ClaimedTime:
    """An occurrence of a schedule that was claimed, with what its schedule and its message say of it."""

    row: OccurrenceRow
    done_to: int
    """Of its schedule."""
    message_key: str | None
    """Of the message that came of it; None if that is not there."""


def turn_of_call(call: ReservationRow) -> str:
    """The turn that a call was made for."""
    return call.call.partition(":")[0]


def spent_by(calls: Iterable[ReservationRow]) -> dict[PotKey, Amount]:
    """What these used, by their pots."""
    found = defaultdict[PotKey, Amount](Amount)
    for call in calls:
        for key in call.keys:
            found[key] += call.used
    return dict(found)


@dataclass(frozen=True, slots=True)
class HookEvidence:
    """What is to be told outside."""

    first_due: tuple[HookRow, ...]
    """Of each receiver the message that is to be tried next, of those that were due at a time."""
    unfounded: tuple[HookRow, ...]
    """Sent and never tried; or given up, and nobody says why."""
    receivers: tuple[ReceiverRow, ...]
    to_come: tuple[HookRow, ...] = ()
    """Those that wait for a time that is too far away."""
    twice: tuple[tuple[str, str], ...] = ()
    """(receiver, turn) where it was told more than once that this has ended."""


Cursor = tuple[int, str]
"""(when a turn was closed, its id), or (the number of a message or part, nothing): behind this the next page begins."""


@dataclass(frozen=True, slots=True)
class EvidencePage(Generic[T]):
    """Rows in their order, and those of which nobody can make anything: one of these hides no other."""

    rows: tuple[T, ...]
    keys: tuple[Cursor, ...]
    """Of all, in their order."""
    senseless: tuple[tuple[str, str], ...] = ()
    """(its id, why)."""


_u, _i, _d, _j, _n, _r = t.turns.c, t.inbox.c, t.deliveries.c, t.journal.c, t.nodes.c, t.reservations.c
_CLOSED = (
    and_(text("turns.state = 'closed'"), text("turns.removed = ''")),
    and_(text("turns.removed <> ''"), _u.state == TurnState.CLOSED.value),
)
"""As they stand in two indexes: what is kept of whom, and of whom it is not."""
_UNDER_WAY = text("reservations.state = 'open'")
_CALLS_BEHIND = t.RESERVATION.query.order_by(_r.call).limit(CALLS)
_PARTS = t.PART.query.add_columns(_d.session, _d.epoch)
"""Behind these comes a part's number (`_kept_part`)."""
_KEYS: BindParameter[Any] = bindparam("keys", expanding=True)
# What is asked of each turn and each message, by the keys of what is looked for.
_SESSION = t.SESSION.query.where(t.sessions.c.session.in_(_KEYS))
_TURN = t.TURN.query.where(_u.turn.in_(_KEYS))
_OPEN_TURN = t.TURN.query.where(_u.session.in_(_KEYS), _u.state == TurnState.OPEN.value).limit(1)
_MESSAGE = t.MESSAGE.query.where(_i.id.in_(_KEYS))
_CALLS = t.CALL.query.where(t.tool_calls.c.turn.in_(_KEYS))
_PARTS_OF = _PARTS.add_columns(_d.id).where(_d.origin.in_(_KEYS)).order_by(_d.id).limit(OPEN_MOST)
_SHOWN = select(_d.id).where(_d.origin.in_(_KEYS)).limit(1)


_BY_STATE = tuple(
    (one, one.table.c[one.names[place]], tuple(kind))
    for one in (t.SCHEDULE, t.OCCURRENCE, t.HOOK, t.UNREAD, t.PERSON, t.INCIDENT, t.RESERVATION, t.PIECE)
    for place, kind in one.readers
    if isinstance(kind, EnumType)
)
"""Tables that are asked by the state of their rows, with that column and all states: a row in another one is found by nobody."""


class EvidenceReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def nodes(self) -> list[NodeRow]:
        """The processes that have opened the store, the newest first; a hundred at most."""
        return await self._asks.made(t.NODE.query.order_by(_n.node.desc()).limit(100), t.NODE.make)

    async def living(self) -> frozenset[int] | None:
        """The processes that hold the lock on their number now; None where there are no such locks (SQLite)."""
        if self._asks.readers.dialect != "postgresql":
            return None
        return frozenset(int(row[0]) for row in await self._asks.all(select(_n.node).where(LIVES)))

    async def closed_turns(self, after: Cursor, limit: int) -> EvidencePage[TurnRow]:
        """Turns that are closed, in the order of their closing, behind `after`."""
        behind, order = tuple_(_u.closed_at, _u.turn) > tuple_(*after), (_u.closed_at, _u.turn)
        # each by its index: there is none of all that are closed, and to sort them is to read every turn that ever was
        each = [select(_u.turn).where(one, behind).order_by(*order).limit(limit).subquery().c.turn for one in _CLOSED]
        query = t.TURN.query.where(_u.turn.in_(union_all(*map(select, each)))).order_by(*order)
        return await self._page(query.limit(limit), t.TURN.make, *order)

    async def undated(self) -> EvidencePage[TurnRow]:
        """Turns that are closed, and do not say when: in the order of their closing they are nowhere."""
        each = [
            select(_u.turn).where(one, _u.closed_at.is_(None)).limit(OPEN_MOST).subquery().c.turn for one in _CLOSED
        ]
        query = t.TURN.query.where(_u.turn.in_(union_all(*map(select, each))))
        return await self._page(query.order_by(_u.opened_at, _u.turn), t.TURN.make, _u.opened_at, _u.turn)

    async def undelivered(self) -> EvidencePage[TurnRow]:
        """Closed turns with a part that is still to be sent or changed."""
        # not distinct: for that SQLite reads all parts in the order of their origins
        origins = select(_d.origin).where(t.OPEN_PARTS).limit(OPEN_MOST)
        query = t.TURN.query.where(_u.turn.in_(origins), _u.state == TurnState.CLOSED.value)
        return await self._page(query, t.TURN.make, _u.opened_at, _u.turn)

    async def open_turns(self) -> EvidencePage[TurnRow]:
        """Open turns, those that were opened first."""
        query = t.TURN.query.where(text("turns.state = 'open'")).order_by(_u.opened_at, _u.turn).limit(OPEN_MOST)
        return await self._page(query, t.TURN.make, _u.opened_at, _u.turn)

    async def _page(
        self, query: Select[*tuple[Any, ...]], make: Callable[[Row[*tuple[Any, ...]]], T], *key: Column[Any]
    ) -> EvidencePage[T]:
        """What `query` finds: together, or row by row where one of them stands for nothing. Raises `Damaged` if not even keys can be read."""
        try:
            found = await self._asks.made(query.add_columns(*key), lambda row: (_cursor(row[-len(key) :]), make(row)))
            return EvidencePage(tuple(one for _, one in found), tuple(at for at, _ in found))
        except Damaged:
            keys = [tuple(row) for row in await self._asks.all(query.with_only_columns(*key))]
        rows, senseless = list[T](), list[tuple[str, str]]()
        for values in keys:
            this = (column == value for column, value in zip(key, values, strict=True))
            try:
                rows += await self._asks.made(query.add_columns(*key).where(*this), make)
            except Damaged as error:
                number, name = _cursor(values)
                senseless.append((name or str(number), str(error)))
        return EvidencePage(tuple(rows), tuple(map(_cursor, keys)), tuple(senseless))

    async def turn(self, turn: str) -> TurnRow | None:
        """One turn as it is now."""
        return next(iter(await self._always(_TURN, turn, t.TURN.make)), None)

    async def message(self, number: int) -> InboxRow | None:
        """One message as it is now."""
        return next(iter(await self._always(_MESSAGE, number, t.MESSAGE.make)), None)

    async def _always(
        self, query: Select[*tuple[Any, ...]], key: object, make: Callable[[Sequence[Any]], T]
    ) -> list[T]:
        rows = await self._asks.always(query, (key,))
        with self._asks.sense():
            return [make(row) for row in rows]

    async def known(self, turns: Sequence[str]) -> frozenset[str]:
        """Those of these turns that are there."""
        query = select(_u.turn).where(_u.turn.in_(sorted(set(turns))))
        return frozenset(str(row[0]) for row in await self._asks.all(query))

    async def stored(self, numbers: Sequence[int]) -> frozenset[int]:
        """Those of these messages that are there."""
        query = select(_i.id).where(_i.id.in_(sorted(set(numbers))))
        return frozenset(int(row[0]) for row in await self._asks.all(query)) if numbers else frozenset()

    async def of_turn(self, turn: TurnRow) -> TurnEvidence:
        """All that is stored of a turn. A journal that cannot be read is told as such."""
        mine = t.TURN.query.where(_u.session == turn.session, _u.number < turn.number)
        # By their numbers: who looks for a turn's name among the messages of a long conversation reads them all.
        heard = t.MESSAGE.query.where(
            _i.id.in_([turn.first_message, turn.last_message])
            | and_(
                _i.session == turn.session, _i.turn == turn.turn,
                _i.id >= turn.first_message - AROUND, _i.id <= max(turn.last_message, turn.first_message) + AROUND,
            )
        )  # fmt: skip
        unreadable, journal = "", tuple[KeptRow, ...]()
        try:
            journal = await self._journal(turn)
        except Damaged as error:
            unreadable = str(error)
        found = await self._asks.each(
            Always(_SESSION, (turn.session,)),
            mine.order_by(_u.number.desc()).limit(1),
            heard.limit(OPEN_MOST),
            Always(_CALLS, (turn.turn,)),
            Always(_PARTS_OF, (turn.turn,)),
            select(func.max(_u.number)).where(_u.session == turn.session),
        )
        with self._asks.sense():
            sessions, before = [t.SESSION.make(row) for row in found[0]], [t.TURN.make(row) for row in found[1]]
            messages, calls = [t.MESSAGE.make(row) for row in found[2]], [t.CALL.make(row) for row in found[3]]
            parts = tuple(_kept_part(row) for row in found[4])
        messages = [await self._whole(one) if one.id == turn.first_message else one for one in messages]
        return TurnEvidence(
            turn, next(iter(sessions), None), next(iter(before), None), journal, unreadable,
            tuple(sorted(messages, key=lambda one: one.id)), parts, tuple(calls),
            await self._parts_before(before), await self._heard_before(messages, before),
            int(found[5][0][0] or 0), await self._emptied(parts),
        )  # fmt: skip

    async def _parts_before(self, before: Sequence[TurnRow]) -> tuple[KeptPart, ...]:
        """Those of the turn before. That they cannot be read is told of that one, which has them."""
        try:
            return await self.parts_of(before[0].turn) if before else ()
        except Damaged:
            return ()

    async def _emptied(self, parts: Sequence[KeptPart]) -> frozenset[str]:
        """Those of the chats that these were made for of which nothing is left. Asked only of parts that stand elsewhere."""
        astray = {made_for(one.row) for one in parts if not one.row.key.startswith(f"{one.row.surface}/")}
        found: set[str] = set()
        for chat in astray:
            there = select(_d.id).where(self._asks.begins(_d.surface, chat)).limit(1)
            if not await self._asks.all(there):
                found.add(chat)
        return frozenset(found)

    async def _whole(self, message: InboxRow) -> InboxRow:
        """A message with what is large in it. What cannot be put together again stays as it is, and cannot be read."""
        try:
            (body,) = await self._asks.whole([message.body])
        except Damaged:
            return message
        return replace(message, body=body)

    async def _heard_before(self, messages: Sequence[InboxRow], before: Sequence[TurnRow]) -> int:
        """Which of these the turn before has heard. Asked only of what came while that was open."""
        for one in messages:
            while_open = any(turn.closed_at is None or one.received_at <= turn.closed_at for turn in before)
            if while_open and await self._heard(one.id, before) is not None:
                return one.id
        return 0

    async def _journal(self, turn: TurnRow) -> tuple[KeptRow, ...]:
        first = turn.first_message * ROWS_A_TURN
        query = t.EVENT.query.add_columns(_j.id, _j.epoch).where(_j.id >= first, _j.id < first + ROWS_A_TURN)
        rows = await self._asks.all(query.order_by(_j.id))
        with self._asks.sense():
            made = [t.EVENT.make(row) for row in rows]
        bodies = await self._asks.whole([timed(one.body, one.at) for one in made])
        whole = [JournalRow(one.seq, one.kind, body, one.at) for one, body in zip(made, bodies, strict=True)]
        return tuple(KeptRow(int(row[-2]), int(row[-1]), one) for row, one in zip(rows, whole, strict=True))

    async def parts_of(self, origin: str) -> tuple[KeptPart, ...]:
        """All parts of a turn, or of what is said beside turns."""
        return tuple(await self._always(_PARTS_OF, origin, _kept_part))

    async def same_receipts(self, parts: Sequence[KeptPart]) -> tuple[KeptPart, ...]:
        """Parts of any origin whose message the platform calls as that of one of these."""
        ids = sorted({one.row.platform_id for one in parts if one.row.platform_id})
        if not ids:
            return ()
        alike = and_(text("platform_id is not null"), _d.platform_id.in_(ids))
        query = _PARTS.add_columns(_d.id).where(alike).order_by(_d.id).limit(OPEN_MOST)
        return tuple(await self._asks.made(query, _kept_part))

    async def parts(self, after: int, limit: int) -> EvidencePage[KeptPart]:
        """Parts behind a number. One that stands for nothing is named as what it is: a number alone is a message's."""
        page = await self._page(_PARTS.where(_d.id > after).order_by(_d.id).limit(limit), _kept_part, _d.id)
        return replace(page, senseless=tuple((f"delivery:{number}", why) for number, why in page.senseless))

    async def messages(self, after: int, limit: int) -> EvidencePage[InboxRow]:
        """Messages behind a number, as they are stored."""
        query = t.MESSAGE.query.where(_i.id > after).order_by(_i.id).limit(limit)
        return await self._page(query, t.MESSAGE.make, _i.id)

    async def waiting(self) -> EvidencePage[InboxRow]:
        """Messages that no turn has taken."""
        # in an order that no index has: else SQLite reads all messages in that one's
        query = t.MESSAGE.query.where(text("inbox.state = 'new'")).order_by(_i.arrival, _i.id).limit(OPEN_MOST)
        return await self._page(query, t.MESSAGE.make, _i.id)

    async def of_message(self, message: InboxRow, *, look_around: bool) -> MessageEvidence:
        """What became of a message. `look_around` if no turn has it, and it may have been heard by one."""
        later = select(_i.id).where(_i.session == message.session, _i.id > message.id, _i.turn.is_not(None))
        sessions, taken, opened, passed, told = await self._asks.each(
            Always(_SESSION, (message.session,)),
            Always(_TURN, (message.turn or "",)),
            Always(_OPEN_TURN, (message.session,)),
            later.order_by(_i.id).limit(1),
            Always(_SHOWN, _answers(message.id)),
        )
        around, heard = tuple[TurnRow, ...](), None
        if look_around:
            before = t.TURN.query.where(_u.session == message.session, _u.first_message < message.id)
            found = before.order_by(_u.number.desc()).limit(3)
            around = tuple(await self._asks.made(found, t.TURN.make))
            heard = await self._heard(message.id, around)
        with self._asks.sense():
            session = t.SESSION.make(sessions[0]) if sessions else None
            mine, running = (t.TURN.make(rows[0]) if rows else None for rows in (taken, opened))
        number = int(passed[0][0]) if passed else 0
        message, came_by, beside = await self._whole(message), None, tuple[int, ...]()
        if message.state is InboxState.NEW:
            came_by = min(await self._came(_i.id > message.id, _i.id), default=None)
        if mine is not None and message.received_at - mine.opened_at > MOMENT_MS:
            behind, before = (
                await self._came(_i.id > message.id, _i.id),
                await self._came(_i.id < message.id, _i.id.desc()),
            )
            beside = (*behind[:1], *before[:1])
        return MessageEvidence(
            message, session, mine, running, number, around, heard, bool(told), came_by, beside
        )  # fmt: skip

    async def _came(self, which: ColumnElement[bool], order: ColumnElement[Any]) -> list[int]:
        """When the next few messages came."""
        query = select(_i.received_at).where(which).order_by(order).limit(5)
        return [int(row[0]) for row in await self._asks.all(query)]

    async def _heard(self, inbox: int, turns: Sequence[TurnRow]) -> TurnRow | None:
        """In which of these journals a message stands as having come into its turn."""
        for turn in turns:
            first = turn.first_message * ROWS_A_TURN
            query = select(_j.body).where(_j.id >= first, _j.id < first + ROWS_A_TURN, _j.kind == "Steered")
            bodies = await self._asks.whole([bytes(row[0]) for row in await self._asks.all(query)])
            if any(re.search(rf'"inbox":{inbox}\b'.encode(), body) for body in bodies):
                return turn
        return None

    async def pieces(self, after: int, limit: int) -> list[PieceEvidence]:
        """The next ones behind a number, `limit` at most: as many as have a few MiB together, and one at least."""
        p = t.pieces.c
        sizes = await self._asks.all(select(p.piece, p.size).where(p.piece > after).order_by(p.piece).limit(limit))
        if not sizes:
            return []
        running = accumulate(int(row[1]) for row in sizes)
        last = max(
            [int(sizes[0][0]), *(int(row[0]) for row, sum_ in zip(sizes, running, strict=True) if sum_ <= PIECES_BYTES)]
        )
        query = select(p.digest, p.form, p.stored, p.how, p.piece, p.size, p.at, p.refs)
        return await self._asks.made(query.where(p.piece > after, p.piece <= last).order_by(p.piece), _piece_seen)

    async def ledger(self, newest: int) -> LedgerEvidence:
        """The pots of model calls, with their calls; of these so many of the latest, and the pots that count longer than since then. 0: all."""
        found = (
            await self._asks.all(select(_r.call, _r.at).order_by(_r.call.desc()).offset(newest).limit(1))
            if newest
            else ()
        )
        first, since = (str(found[0][0]).partition(":")[0], int(found[0][1])) if found else ("", 0)
        opened = await self._asks.made(t.RESERVATION.query.where(_UNDER_WAY), t.RESERVATION.make)
        before, spent = await self._pots(since, opened), defaultdict[PotKey, Amount](Amount)
        count, guessed = Counter[PotKey](), defaultdict[PotKey, Amount](Amount)
        unpaid, cut = list[Unpaid](), list[ReservationRow]()
        async for calls in self._calls(first, since):
            over = [one for one in calls if one.state is ReservationState.SETTLED]
            with self._asks.sense():
                count.update(key for one in over for key in one.keys)
                both = (spent, spent_by(over)), (guessed, spent_by(one for one in over if one.estimated))
            for sums, found_here in both:
                for key, used in found_here.items():
                    sums[key] += used
            last = turn_of_call(calls[-1])
            unpaid += await self._unpaid([one for one in (*cut, *calls) if turn_of_call(one) != last])
            cut = [one for one in (*cut, *calls) if turn_of_call(one) == last]  # there may be more of it
        unpaid += await self._unpaid(cut)
        steady = before == await self._pots(since, opened)
        return LedgerEvidence(
            tuple(before.values()), tuple(opened), spent, steady, since, tuple(unpaid), count, guessed
        )  # fmt: skip

    async def _unpaid(self, calls: Sequence[ReservationRow]) -> list[Unpaid]:
        """Those of the turns with these calls, which are all of theirs, that used more."""
        paid = Counter[str]()
        for one in calls:
            paid[turn_of_call(one)] += one.used_tokens
        guessed = {turn_of_call(one) for one in calls if one.estimated or one.state is not ReservationState.SETTLED}
        known = sorted(paid.keys() - guessed)
        if not known:
            return []
        query = select(_u.turn, _u.session, _u.input_tokens, _u.output_tokens, _u.closed_at)
        rows = await self._asks.all(query.where(_u.turn.in_(known), _u.state == TurnState.CLOSED.value))
        found = [Unpaid(str(row[0]), str(row[1]), int(row[2]) + int(row[3]), paid[str(row[0])], row[4]) for row in rows]
        return [one for one in found if one.used > one.paid]

    async def _calls(self, first: str, since: int) -> AsyncGenerator[Sequence[ReservationRow]]:
        """Those of the turns that begin with this one, and of those before that ended after `since`, or have not ended."""
        which = (*(one & (_u.closed_at >= since) for one in _CLOSED), text("turns.state = 'open'"))
        lasting = union_all(*(select(_u.session, _u.turn).where(one) for one in which)).subquery().c
        for session, turn in await self._asks.all(select(lasting.session, lasting.turn)) if first else ():
            if turn < first:  # asked of SQLite, it would go through all that are
                mine = _r.session == str(session), self._asks.begins(_r.call, f"{turn}:")
                yield await self._asks.made(t.RESERVATION.query.where(*mine), t.RESERVATION.make)
        while calls := await self._asks.made(_CALLS_BEHIND.where(_r.call > first), t.RESERVATION.make):
            yield calls
            first = calls[-1].call

    async def _pots(self, since: int, opened: Sequence[ReservationRow]) -> dict[PotKey, PotRow]:
        """Those that count longer than until then, and those of these calls."""
        b = t.budgets.c
        with self._asks.sense():
            keys = sorted({key for one in opened for key in one.keys})
        which = [and_(~self._asks.begins(b.scope, DAILY), *((b.until > since,) if since else ()))]
        which += [among((b.scope, b.window), keys)] if since and keys else []
        rows = [row for one in which for row in await self._asks.made(t.POT.query.where(one), t.POT.make)]
        return {(row.scope, row.window): row for row in sorted(rows, key=lambda row: (row.scope, row.window))}

    async def overdue(self, before: int) -> list[ScheduleRow]:
        """Active schedules with an occurrence that was due before a time and was not claimed, or with none at all."""
        c = t.schedules.c
        found = list[ScheduleRow]()
        # A step each in the index of what is active
        for which in (
            and_(c.next_at.is_(None), c.at < before),
            c.next_at < before,
        ):
            query = t.SCHEDULE.query.where(text("schedules.state = 'active'"), which).order_by(c.next_at)
            found += await self._asks.made(query.limit(OPEN_MOST), t.SCHEDULE.make)
        return found

    async def to_come(self) -> list[ScheduleRow]:
        """Active schedules, those that come last first; and such as are over."""
        c = t.schedules.c
        found = list[ScheduleRow]()
        # What is over is found in the order of the ids: by its time, all that ever was would be sorted.
        for state, order in ((ScheduleState.ACTIVE, c.next_at.desc()), (ScheduleState.DONE, c.schedule.desc())):
            query = t.SCHEDULE.query.where(
                c.state == state.value, c.next_at.is_not(None) | (c.state != ScheduleState.ACTIVE.value)
            )
            found += await self._asks.made(query.order_by(order).limit(OPEN_MOST), t.SCHEDULE.make)
        return found

    async def hooks(self, before: int, newest: int, ahead: int) -> HookEvidence:
        """What should have been told outside before a time, what waits until after `ahead`, and what is said falsely of so many of the latest; 0: of all."""
        h = t.hooks.c
        due = select(func.min(h.number)).where(text("hooks.state = 'waiting'"), h.retry_at <= before, h.at <= before)
        numbers = [int(row[0]) for row in await self._asks.all(due.group_by(h.receiver))]
        first = await self._asks.made(t.HOOK.query.where(h.number.in_(numbers)), t.HOOK.make) if numbers else []
        never = and_(h.state == HookState.SENT.value, h.attempt == 0)
        unfounded = or_(never, and_(h.state == HookState.GIVEN_UP.value, h.cause == ""))
        last = select(func.max(h.number)).scalar_subquery()
        late = t.HOOK.query.where(h.number > last - newest) if newest else t.HOOK.query
        odd = await self._asks.made(late.where(unfounded).limit(OPEN_MOST), t.HOOK.make)
        to_come = t.HOOK.query.where(text("hooks.state = 'waiting'"), (h.at > ahead) | (h.retry_at > ahead))
        ended = and_(h.event == ENDED, h.turn != "", *((h.number > last - newest,) if newest else ()))
        told = select(h.receiver, h.turn).where(ended).group_by(h.receiver, h.turn).having(func.count() > 1)
        return HookEvidence(
            tuple(first), tuple(odd), tuple(await self._asks.made(t.RECEIVER.query, t.RECEIVER.make)),
            tuple(await self._asks.made(to_come.limit(OPEN_MOST), t.HOOK.make)),
            tuple((str(row[0]), str(row[1])) for row in await self._asks.all(told.limit(OPEN_MOST))),
        )  # fmt: skip

    @property
    def counts_on(self) -> bool:
        """Numbers are given one after the other, so that one that is missing was taken out. PostgreSQL leaves out numbers of its own accord."""
        return self._asks.readers.dialect == "sqlite"

    async def hooks_behind(self, after: int, limit: int) -> list[StoredHook]:
        """What is told outside, behind a number."""
        query = t.HOOK.query.add_columns(t.hooks.c.number).where(t.hooks.c.number > after)
        rows = await self._asks.all(query.order_by(t.hooks.c.number).limit(limit))
        with self._asks.sense():
            return [StoredHook(int(row[-1]), t.HOOK.make(row)) for row in rows]

    async def last_hook(self) -> int:
        """The number of what is to be told outside last; 0 if nothing is."""
        return int((await self._asks.all(select(func.coalesce(func.max(t.hooks.c.number), 0))))[0][0])

    async def turns_named(self, turns: Sequence[str]) -> dict[str, TurnRow]:
        """Those of these turns that are there."""
        found = await self._asks.made(t.TURN.query.where(_u.turn.in_(sorted(set(turns)))), t.TURN.make) if turns else []
        return {one.turn: one for one in found}

    async def anybody_forgotten(self) -> bool:
        """Whether anybody, or any conversation, ever was, or is being forgotten: then rows are gone that were in the middle."""
        return bool(await self._asks.all(select(t.forgets.c.forget).limit(1)))

    async def claimed(self) -> list[ClaimedTime]:
        """Occurrences that were claimed."""
        c = t.occurrences.c
        query = t.OCCURRENCE.query.add_columns(t.schedules.c.done_to, _i.platform_key).select_from(
            t.occurrences.join(t.schedules, t.schedules.c.schedule == c.schedule).outerjoin(t.inbox, _i.id == c.inbox)
        )
        rows = await self._asks.all(query.order_by(c.schedule, c.due_at.desc()).limit(CLAIMED_MOST))
        with self._asks.sense():
            return [ClaimedTime(t.OCCURRENCE.make(row), int(row[-2]), row[-1]) for row in rows]

    async def gates(self, after: int) -> list[GateRow]:
        """Pauses of platforms that last beyond a time."""
        query = t.GATE.query.where(t.gates.c.not_before > after)
        return await self._asks.made(query.limit(OPEN_MOST), t.GATE.make)

    async def owned_by_nobody(self) -> list[tuple[str, int]]:
        """Conversations, and slices, of a process that was never there, with its number. Reads whole tables."""
        found: list[tuple[str, int]] = []
        for name, owner in ((t.sessions.c.session, t.sessions.c.owner), (t.slices.c.slice, t.slices.c.owner)):
            query = select(name, owner).where(owner.is_not(None), owner.not_in(select(_n.node))).limit(OPEN_MOST)
            found += [(str(row[0]), int(row[1])) for row in await self._asks.all(query)]
        return found

    async def miscounted(self) -> list[PieceCount]:
        """Pieces that count as needed more or less often than they are. Reads whatever has gaps; of what changes meanwhile nothing is said."""
        before = {digest: refs for _, digest, refs in await self._counts()}
        found = Counter[bytes]()
        try:
            async for digests in self._gaps():
                found.update(digests)
        except (ValueError, TypeError, zlib.error):
            return []  # what cannot be read is told where it stands, and cannot be counted
        numbers, after = dict[bytes, int](), dict[bytes, int]()
        for number, digest, refs in await self._counts():
            numbers[digest], after[digest] = number, refs
        odd = [
            PieceCount(numbers[one], refs, found[one])
            for one, refs in after.items()
            if before.get(one) == refs != found[one]
        ]
        lost = [PieceCount(0, 0, count) for one, count in found.items() if one not in before and one not in after]
        return [*odd, *lost]

    async def _counts(self) -> list[tuple[int, bytes, int]]:
        """(number, digest, how often it counts as needed) of all pieces."""
        p, found = t.pieces.c, list[tuple[int, bytes, int]]()
        query = select(p.piece, p.digest, p.refs).order_by(p.piece).limit(COUNTED)
        while rows := await self._asks.all(query.where(p.piece > (found[-1][0] if found else 0))):
            found += [(int(row[0]), bytes(row[1]), int(row[2])) for row in rows]
        return found

    async def _gaps(self) -> AsyncGenerator[Sequence[bytes]]:
        """The digests of all pieces that are needed, as often as they are, some at a time. Raises ValueError, TypeError, zlib.error."""
        last = int((await self._asks.all(select(func.coalesce(func.max(_i.id), 0))))[0][0])
        copied = select(func.coalesce(func.min(_u.first_message), 0)).where(t.NO_MESSAGE)
        lowest = int((await self._asks.all(copied))[0][0])
        for first in range(lowest, last + 1, AROUND):
            behind = first + AROUND
            for key, body, one in ((_j.id, _j.body, ROWS_A_TURN), (_i.id, _i.body, 1)):
                packed = select(body).where(key >= first * one, key < behind * one, func.substr(body, 1, 1) == MARK)
                yield [digest for row in await self._asks.all(packed) for digest in needed(bytes(row[0]))]
        p, after = t.pieces.c, 0
        inner = p.form.in_([PieceForm.BODY.value, PieceForm.RUN.value])
        query = select(p.digest, p.form, p.stored, p.how, p.piece).where(inner).order_by(p.piece).limit(COUNTED)
        while rows := await self._asks.all(query.where(p.piece > after)):
            after = int(rows[-1][-1])
            yield [digest for row in rows for digest in read(row).below]

    async def in_no_state(self) -> list[tuple[str, str]]:
        """(table and key, column) of rows in a state that does not exist. Reads whole tables."""
        found = list[tuple[str, str]]()
        for one, column, states in _BY_STATE:
            keys = [one.table.c[name] for name in one.keys]
            query = select(*keys).where(column.not_in([str(state) for state in states])).limit(OPEN_MOST)
            for row in await self._asks.all(query):
                found.append((f"{one.table.name} {'/'.join(map(str, row))}", column.name))
        return found

    async def untold(self) -> list[UnreadRow]:
        """What could not be taken in and is not over, of which somebody is still to be told."""
        c = t.unread.c
        query = t.UNREAD.query.where(text("unread.state <> 'done'"), c.chat != "", c.told == 0)
        return await self._asks.made(query.order_by(c.received_at).limit(OPEN_MOST), t.UNREAD.make)

    async def forgetting(self) -> list[ForgetRow]:
        """Whoever is still to be forgotten."""
        return await self._asks.made(
            t.FORGET.query.where(t.forgets.c.done_at.is_(None)).limit(OPEN_MOST), t.FORGET.make
        )

    async def cursors(self, after: tuple[str, str]) -> list[CursorRow]:
        """How far platforms were read, behind an account's channel."""
        c = t.cursors.c
        query = t.CURSOR.query.where(tuple_(c.account, c.channel) > tuple_(*after)).order_by(c.account, c.channel)
        return await self._asks.made(query.limit(CURSORS), t.CURSOR.make)

    async def latest(self) -> int:
        """When the last of the newest messages came, ms; 0 if there is none."""
        return max(await self._came(_i.id > 0, _i.id.desc()), default=0)

    async def numbers_before(self, at: int) -> tuple[int, int, int]:
        """The numbers of the last message, part and piece that were there at a time, as far as the newest thousand of each tell."""
        heard = select(_i.id, _i.received_at).order_by(_i.id.desc()).limit(1_000).subquery()
        shown = select(_d.id, _d.at).order_by(_d.id.desc()).limit(1_000).subquery()
        p = t.pieces.c
        cut = select(p.piece.label("id"), p.at).order_by(p.piece.desc()).limit(1_000).subquery()
        found: list[int] = []
        for newest, when in ((heard, heard.c.received_at), (shown, shown.c.at), (cut, cut.c.at)):
            # Of those that came since; where none did, the last is it
            first = func.min(case((when >= at, newest.c.id)))
            before = select(func.coalesce(first - 1, func.max(newest.c.id), 0))
            found.append(int((await self._asks.all(before))[0][0]))
        return found[0], found[1], found[2]


def _answers(inbox: int) -> list[str]:
    """Under which origins a chat was shown something because of a message that is no turn's."""
    return [f"{kind}:{inbox}" for kind in ("inbox", "queue", "forget", "reword")]


def _piece_seen(row: Row[*tuple[Any, ...]]) -> PieceEvidence:
    try:
        piece = read(row)
        whole = row[3] == GONE or (is_whole(piece) and len(piece.content) == int(row[5]))
    except (ValueError, zlib.error):
        whole = False
    return PieceEvidence(int(row[4]), int(row[5]), whole, int(row[6]), int(row[7]))


def _kept_part(row: Sequence[Any]) -> KeptPart:
    return KeptPart(int(row[-1]), str(row[-3]), int(row[-2]), t.PART.make(row))


def _cursor(key: Sequence[Any]) -> Cursor:
    """Where a row lies, by the columns that name it: a number, or a time and a name. SQLite keeps a text also as a time: behind all that are one."""
    at = key[0] or 0
    return at if isinstance(at, int) else NO_TIME, str(key[1]) if len(key) > 1 else ""
