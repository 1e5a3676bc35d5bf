"""What retention asks of the store, and its transactions: each removes a little, says how long it took, and can be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from sqlalchemy import (
    BigInteger,
    Connection,
    and_,
    bindparam,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy import text as sql_text

from agent_core.limits.retention import DAY_MS, MOST_SECONDS, SessionAge
from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.keys import padded
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping import pieces
from agent_core.store.keeping.packing import MARK, Piece, PieceForm, missing, needed
from agent_core.store.turns.rows import TurnState

GIVEN_BACK_SECONDS, GIVEN_BACK_MOST = MOST_SECONDS / 2, 512
"""So long, and so many pages of a SQLite file, one transaction gives back; to commit them takes some time as well."""
SESSIONS_AT_ONCE = 500
_u, _s, _j, _p, _d, _i = t.turns.c, t.sessions.c, t.journal.c, t.pieces.c, t.deliveries.c, t.inbox.c
_packed_journal = func.substr(_j.body, 1, 1) == MARK
_packed_inbox = func.substr(_i.body, 1, 1) == MARK
_UNSETTLED = [s.value for s in (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)]
_to_be_shown = exists().where(_d.origin == _u.turn, _d.state.in_(_UNSETTLED))


@dataclass(frozen=True, slots=True)
class OldTurn:
    """A closed turn whose journal is old."""

    turn: str
    session: str
    number: int
    closed_at: int
    undone: bool


@dataclass(frozen=True, slots=True)
class OldFile:
    """A picture or another file of a message that nobody has sent for long."""

    digest: bytes
    size: int
    at: int


@dataclass(frozen=True, slots=True)
class OldSession:
    """A conversation that nobody has spoken in for long."""

    session: str
    key: str


@dataclass(frozen=True, slots=True)
class Removed:
    """What one transaction did."""

    count: int
    seconds: float
    """Nobody else could write meanwhile; what waited before it is not in it, the commit is."""


_n, _NODE = t.nodes.c, bindparam("node", 0, BigInteger)
_STARTED = select(func.max(func.coalesce(_n.ended_at, _n.started_at))).where(_n.node < _NODE)
_BEGAN = select(_n.started_at).where(_n.node == _NODE).scalar_subquery()
_HEARD = select(_i.received_at).where(_i.received_at < _BEGAN).order_by(_i.id.desc()).limit(1)


class Retaining(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def known_until(self, node: int) -> int:
        """The latest time that is stored from before this process, ms; 0 if there is none. What came since was stamped by its own clock."""
        found = [row[0] for query in (_STARTED, _HEARD) for row in await self._asks.always(query, node=node)]
        return max((int(one) for one in found if one is not None), default=0)

    async def old_turns(self, before: int, after: tuple[int, str], limit: int) -> list[OldTurn]:
        """Closed turns that still have a journal and were closed before a time, the oldest first, behind the last one seen."""
        closed = (_u.state == TurnState.CLOSED.value, _u.removed == "", _u.closed_at < before)
        query = select(_u.turn, _u.session, _u.number, _u.closed_at, _u.undone).where(
            *closed, tuple_(_u.closed_at, _u.turn) > tuple_(*after), ~_to_be_shown
        )
        rows = await self._asks.all(query.order_by(_u.closed_at, _u.turn).limit(limit))
        return [OldTurn(r[0], r[1], r[2], r[3], bool(r[4])) for r in rows]

    async def conversations_of(
        self, sessions: Collection[str], told: int, quiet_before: int, known: dict[str, int]
    ) -> dict[str, SessionAge]:
        """What these sessions need of their past, if `told` turns of it are put before the model.

        Those in which nobody has spoken since `quiet_before` need nothing. From which turn on the others need theirs is put into `known`
        and not asked again: that turn only becomes a later one.
        """
        found: dict[str, SessionAge] = {}
        for keys in padded(sorted(sessions)):
            highest = select(func.coalesce(func.max(_u.number), 0)).where(_u.session == _s.session).scalar_subquery()
            rows = await self._asks.all(select(_s.session, _s.last_at, _s.since, highest).where(_s.session.in_(keys)))
            for session, last_at, since, last in rows:
                if last_at >= quiet_before and session not in known:
                    known[session] = await self._first_told(session, since, told) if last > since + told else 0
                found[session] = SessionAge(last_at, since, known.get(session, 0))
        return found

    async def _first_told(self, session: str, since: int, told: int) -> int:
        mine = (_u.session == session, _u.number > since, _u.undone == 0, _u.state == TurnState.CLOSED.value)
        last = await self._asks.all(select(_u.number).where(*mine).order_by(_u.number.desc()).offset(told - 1).limit(1))
        return int(last[0][0]) if last else 0

    async def old_files(self, before: int, limit: int, after: tuple[int, bytes]) -> list[OldFile]:
        """Files that nobody has sent since a time, the oldest first, behind the last one seen."""
        query = select(_p.digest, _p.size, _p.at).where(
            _p.form == PieceForm.BYTES.value,
            _p.how != pieces.GONE,
            _p.at < before,
            tuple_(_p.at, _p.digest) > tuple_(*after),
        )
        rows = await self._asks.all(query.order_by(_p.at, _p.digest).limit(limit))
        return [OldFile(bytes(r[0]), int(r[1]), int(r[2])) for r in rows]

    async def files_in_use(self, before: int, told: int) -> set[bytes]:
        """The digests of what open turns, waiting messages, and conversations that go on (somebody spoke since `before`) need."""
        open_turns = select(_j.body).join(t.turns, t.rows_of_turn()).where(_u.state == TurnState.OPEN.value)
        waiting = select(_i.body).where(_i.state == InboxState.NEW.value, _packed_inbox)
        bodies = [bytes(r[0]) for q in (open_turns.where(_packed_journal), waiting) for r in await self._asks.all(q)]
        reached = await self._reached(bodies)
        # What a younger turn needs is younger itself: a file is as old as the last message that brought it.
        brought_long_ago = _u.opened_at < before + DAY_MS
        living = [str(row[0]) for row in await self._asks.all(select(_s.session).where(_s.last_at >= before))]
        for first in range(0, len(living), SESSIONS_AT_ONCE):
            some = await self.conversations_of(living[first : first + SESSIONS_AT_ONCE], told, before, {})
            short = [session for session, one in some.items() if not one.since and not one.first_told]
            shown = [_u.session.in_(keys) for keys in padded(short)]
            shown += [
                and_(_u.session == session, _u.number >= max(one.since + 1, one.first_told))
                for session, one in some.items()
                if one.since or one.first_told
            ]
            for which in shown:
                packed = select(_j.body).join(t.turns, t.rows_of_turn())
                rows = await self._asks.all(packed.where(which, brought_long_ago, _u.undone == 0, _packed_journal))
                reached |= await self._reached([bytes(row[0]) for row in rows])
        return reached

    async def _reached(self, bodies: Sequence[bytes]) -> set[bytes]:
        """All digests that these bodies need, directly or not."""
        found: dict[bytes, Piece] = {}
        reached: set[bytes] = set()
        while wanted := missing(bodies, found) - reached:
            reached |= wanted
            for keys in padded(sorted(wanted)):
                inner = (PieceForm.BODY.value, PieceForm.RUN.value)
                query = select(_p.digest, _p.form, _p.stored, _p.how).where(_p.digest.in_(keys), _p.form.in_(inner))
                found.update((bytes(r[0]), pieces.read(r)) for r in await self._asks.all(query))
        return reached | {digest for body in bodies for digest in needed(body)} | found.keys()

    async def old_sessions(self, before: int, limit: int, after: str) -> list[OldSession]:
        """Sessions that nobody has spoken in since a time, of which only numbers are left, behind the last one seen."""
        kept = exists().where(_u.session == _s.session, or_(_u.removed == "", _u.state == TurnState.OPEN.value))
        waiting = exists().where(_i.session == _s.session)
        shown = exists().where(_d.session == _s.session)
        planned = exists().where(t.schedules.c.session_key == _s.key)
        pointed = exists().where(or_(t.places.c.continues == _s.key, t.places.c.place == _s.key))
        # What a chat has set stays; a program, and who has the page open, make as many conversations as they like, each with something attached: a title.
        unset = or_(_s.policy.is_(None), *(self._asks.begins(_s.key, door) for door in ("api/", "web/")))
        query = select(_s.session, _s.key).where(
            _s.session > after, _s.last_at < before, unset, _s.quarantined.is_(None),
            ~kept, ~waiting, ~shown, ~planned, ~pointed,
        )  # fmt: skip
        rows = await self._asks.all(query.order_by(_s.session).limit(limit))
        return [OldSession(*row) for row in rows]

    async def database_bytes(self) -> int:
        """How large the database is; of SQLite without its log."""
        if self._asks.readers.dialect == "sqlite":
            count, size = [
                int(
                    (await self._asks.all(select(literal_column(name, t.Int)).select_from(sql_text(f"pragma_{name}"))))[
                        0
                    ][0]
                )
                for name in ("page_count", "page_size")
            ]
            return count * size
        return int((await self._asks.all(select(func.pg_database_size(func.current_database()))))[0][0])


_REMOVABLE = select(_u.turn).where(
    _u.turn.in_(bindparam("keys", expanding=True)), _u.state == TurnState.CLOSED.value, _u.removed == "", ~_to_be_shown
)
_THEIR_ROWS = t.rows_of_turns(_u.turn.in_(bindparam("keys", expanding=True)))
_PACKED_ROWS = _THEIR_ROWS.with_only_columns(_j.body).where(_packed_journal)


def remove_journals(turns: Collection[str], why: str) -> Callable[[Connection], int]:
    """The journals of those of `turns` that are closed and shown are gone; that they were there stays known, and why they went."""

    def body(conn: Connection) -> int:
        found: list[str] = []
        for keys in padded(turns):
            found += conn.execute(_REMOVABLE, {"keys": keys}).scalars()
        drop_journals(conn, found)
        for keys in padded(found):
            conn.execute(update(t.turns).where(_u.turn.in_(keys)).values(removed=why))
        return len(found)

    return body


def drop_journals(conn: Connection, turns: Collection[str]) -> None:
    """Whatever is stored about what happened in these turns."""
    for keys in padded(turns):
        pieces.release(conn, [bytes(one) for one in conn.execute(_PACKED_ROWS, {"keys": keys}).scalars()])
        conn.execute(delete(t.journal).where(_j.id.in_(_THEIR_ROWS)), {"keys": keys})
        conn.execute(delete(t.tool_calls).where(t.tool_calls.c.turn.in_(keys)))


def empty_message(message: int, body: bytes) -> Callable[[Connection], None]:
    """What a message said is gone, and `body` stands in its place: that it came stays known. One that still waits keeps it."""

    def doing(conn: Connection) -> None:
        over = and_(_i.id == message, _i.state != InboxState.NEW.value)
        old = conn.execute(select(_i.body).where(over)).scalars().all()
        pieces.release(conn, [bytes(one) for one in old])
        conn.execute(update(t.inbox).where(over).values(body=body))

    return doing


def remove_files(files: Collection[bytes], before: int) -> Callable[[Connection], int]:
    """The contents of these files are gone, unless somebody has sent them again since `before`."""

    def body(conn: Connection) -> int:
        count = 0
        for keys in padded(files):
            stale = and_(_p.digest.in_(keys), _p.at < before, _p.how != pieces.GONE)
            count += conn.execute(update(t.pieces).where(stale).values(stored=b"", how=pieces.GONE)).rowcount
        return count

    return body


def remove_sessions(sessions: Collection[str], before: int) -> Callable[[Connection], int]:
    """The numbers of these sessions' turns are gone, and they themselves, if nobody has spoken in them meanwhile."""

    def body(conn: Connection) -> int:
        found: list[str] = []
        for keys in padded(sessions):
            quiet = select(_s.session).where(_s.session.in_(keys), _s.last_at < before)
            busy = select(_i.session).where(_i.session.in_(keys))
            waiting = set(conn.execute(busy).scalars())
            found += [one for one in conn.execute(quiet).scalars() if one not in waiting]
        for keys in padded(found):
            mine = select(_u.turn).where(_u.session.in_(keys))
            for table in (t.troubles, t.tool_calls):
                conn.execute(delete(table).where(table.c.turn.in_(mine)))
            conn.execute(delete(t.reservations).where(t.reservations.c.session.in_(keys)))
            conn.execute(delete(t.turns).where(_u.session.in_(keys)))
            conn.execute(delete(t.sessions).where(_s.session.in_(keys)))
        return len(found)

    return body


def give_back(conn: Connection) -> int:
    """Pages of a SQLite file that hold nothing any more go back to the disk: as many as take some milliseconds, until it answers 0."""
    if conn.dialect.name != "sqlite" or not conn.exec_driver_sql("PRAGMA auto_vacuum").scalar_one():
        return 0
    free = int(conn.exec_driver_sql("PRAGMA freelist_count").scalar_one())
    began, count, cursor = time.perf_counter(), 0, conn.connection.cursor()
    while count < min(free, GIVEN_BACK_MOST) and time.perf_counter() - began < GIVEN_BACK_SECONDS:
        # The driver takes one step, whatever the number: that is one page
        cursor.execute("PRAGMA incremental_vacuum(1)")
        count += 1
    cursor.close()
    return count
