"""Removing ended messages, settled parts, failures and paid calls that are old, each kind by itself, a little at a time.

Theory. What is old stands at the beginning of its table: ids are made so that they sort by time. So each kind is walked from its beginning, some
rows a transaction, up to the first such walk that meets nothing old. What is old and still needed is passed. So a transaction takes as long
as the rows that it looks at, however large the table is; only what there is little of is looked through whole (`the_rest`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    Table,
    and_,
    case,
    delete,
    exists,
    func,
    select,
    tuple_,
)

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.budgets.rows import ReservationState
from agent_core.store.budgets.sql import KEEP_POTS_MS
from agent_core.store.database.keys import among, padded
from agent_core.store.database.ownership import Who
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.inbox import unread
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping import pieces
from agent_core.store.schedules.rows import ScheduleState
from agent_core.store.turns.rows import TurnState
from agent_core.store.webhooks.rows import HookState

Key: TypeAlias = "tuple[int | str, ...]"
_i, _d, _r, _b, _h = t.inbox.c, t.deliveries.c, t.reservations.c, t.budgets.c, t.hooks.c


@dataclass(frozen=True, slots=True)
class Old:
    """Until when each kind is old, ms; None if it is kept for ever."""

    messages: int | None
    failures: int | None
    audit: int | None


NEVER_MS = -(1 << 62)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much `prune` removed."""

    messages: int
    nodes: int
    parts: int = 0
    failures: int = 0
    seconds: float = 0
    """Of the longest transaction."""
    damaged: str = ""
    """Why something of a kind could not be looked at; empty if all could."""


@dataclass(frozen=True, slots=True)
class PrunedTable:
    """Rows of a table, in an order in which what is old comes first."""

    counted: str
    """As what they count in `Pruned`; empty: not at all."""
    table: Table
    key: tuple[Column[int] | Column[str], ...]
    at: Column[int]
    before: int
    """When a row is old."""
    over: ColumnElement[bool]
    """Which of the old ones may go."""
    among: ColumnElement[bool] | None = None
    """Which rows of the table it is about."""
    sorted_by_time: bool = True
    first: Callable[[Connection, Sequence[Key]], None] | None = None
    """What has to go before them."""


@dataclass(frozen=True, slots=True)
class Walked:
    """What one transaction came to."""

    count: int
    after: Key | None
    """Behind this the next one goes on; None: nothing old is left."""


def walk(kind: PrunedTable, after: Key | None, most: int) -> Callable[[Connection], Walked]:
    """Look at the next `most` rows of a kind, and remove what is old and over among them."""

    def body(conn: Connection) -> Walked:
        old = kind.at < kind.before
        goes = case((and_(old, kind.over), 1), else_=0)
        query = select(*kind.key, case((old, 1), else_=0), goes).order_by(*kind.key).limit(most)
        if kind.among is not None:
            query = query.where(kind.among)
        if after is not None:
            query = query.where(tuple_(*kind.key) > tuple_(*after))
        rows: list[Key] = [tuple(row) for row in conn.execute(query)]
        gone: list[Key] = [row[:-2] for row in rows if row[-1]]
        if gone and kind.first is not None:
            kind.first(conn, gone)
        for some in padded(gone):
            conn.execute(delete(kind.table).where(among(kind.key, some)))
        ends = len(rows) < most or (kind.sorted_by_time and not any(row[-2] for row in rows))
        return Walked(len(gone), None if ends else rows[-1][:-2])

    return body


def _message_bodies(conn: Connection, gone: Sequence[Key]) -> None:
    for some in padded([key[0] for key in gone]):
        bodies = conn.execute(select(_i.body).where(_i.id.in_(some))).scalars().all()
        pieces.release(conn, [bytes(body) for body in bodies])


_of_open_turn = exists().where(t.turns.c.turn == _i.turn, t.turns.c.state == TurnState.OPEN.value).correlate(t.inbox)
_ended = and_(
    _i.state != InboxState.NEW.value,
    ~_of_open_turn,
    # On SQLite the next id is the highest plus one: the highest must stay, or ids would come again.
    _i.id < select(func.max(t.inbox.alias("every").c.id)).scalar_subquery(),
)
_settled = and_(
    _d.state.in_([s.value for s in (DeliveryState.SENT, DeliveryState.SKIPPED, DeliveryState.FAILED)]),
    ~exists().where(t.turns.c.turn == _d.origin, t.turns.c.state == TurnState.OPEN.value).correlate(t.deliveries),
)


def kinds(old: Old) -> list[PrunedTable]:
    """What is walked, in this order."""
    messages = old.messages if old.messages is not None else NEVER_MS
    failures = old.failures if old.failures is not None else NEVER_MS
    pots = messages - KEEP_POTS_MS
    of_turns = _b.held_tokens == 0
    return [
        PrunedTable("messages", t.inbox, (_i.id,), _i.received_at, messages, _ended, first=_message_bodies),
        PrunedTable("parts", t.deliveries, (_d.id,), _d.at, messages, _settled),
        PrunedTable("", t.hooks, (_h.number,), _h.at, messages, _h.state != HookState.WAITING.value),
        PrunedTable("failures", t.troubles, (t.troubles.c.turn, t.troubles.c.number), t.troubles.c.at, failures, _any(t.troubles.c.at)),
        PrunedTable("", t.reservations, (_r.call,), _r.at, messages, _r.state == ReservationState.SETTLED.value),
        PrunedTable("", t.budgets, (_b.scope, _b.window), _b.at, messages, of_turns, _b.until == 0, sorted_by_time=False),
        PrunedTable("", t.budgets, (_b.until, _b.scope, _b.window), _b.until, pots, _any(_b.until), _b.until > 0),
    ]  # fmt: skip


def _any(column: Column[int]) -> ColumnElement[bool]:
    """Whatever is old may go."""
    return column.is_not(None)


_later = t.adapter_states.alias("later")


def idle_nodes(old: Old, node: int) -> Select[tuple[int]]:
    """Earlier starts that own nothing. Asked beside the writer: whose the conversations are is asked of all of them."""
    n, before = t.nodes.c, old.messages if old.messages is not None else NEVER_MS
    owners = (select(one.c.owner).where(one.c.owner.is_not(None)) for one in (t.sessions, t.slices))
    return select(n.node).where(n.started_at < before, n.node != node, *(n.node.not_in(one) for one in owners))


def dead_node(who: Who, node: int) -> Callable[[Connection], int]:
    """A node that owns nothing, if it is dead. One at a time: SQLite looks through all conversations for one that names it."""

    def body(conn: Connection) -> int:
        gone = who.dead(conn, {node})
        if gone:
            conn.execute(delete(t.nodes).where(t.nodes.c.node == node))
        return len(gone)

    return body


def the_rest(old: Old) -> Callable[[Connection], None]:
    """What there is little of."""
    before = old.messages if old.messages is not None else NEVER_MS
    failures = old.failures if old.failures is not None else NEVER_MS

    def body(conn: Connection) -> None:
        # The state of an adapter that was in force at that time stays.
        passed = exists().where(
            _later.c.account == t.adapter_states.c.account,
            _later.c.at > t.adapter_states.c.at,
            _later.c.at <= before,
        )
        conn.execute(delete(t.adapter_states).where(passed))
        conn.execute(delete(t.link_codes).where(t.link_codes.c.until < before))
        unread.prune(conn, failures)
        conn.execute(delete(t.occurrences).where(t.occurrences.c.at < before))
        s = t.schedules.c
        claimed = exists().where(t.occurrences.c.schedule == s.schedule)
        over = s.state.in_([ScheduleState.DONE.value, ScheduleState.CANCELLED.value])
        conn.execute(delete(t.schedules).where(s.at < before, over, ~claimed))
        if old.audit is not None:
            conn.execute(delete(t.audit).where(t.audit.c.at < old.audit))

    return body
