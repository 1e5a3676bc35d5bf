"""A batch in one transaction: read, decide, write, with a fixed number of statements, however many operations there are.

Law (tests/store/test_owned.py): who trusts, and looks where that was wrong, gets the same answers and rows as who always looks.

The functions take a synchronous SQLAlchemy `Connection` inside a transaction; on SQLite it is the writer's own, on PostgreSQL
asyncpg behind `AsyncConnection.run_sync`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.batch.owned import Owned
from agent_core.store.budgets import sql as budgets
from agent_core.store.database.mapping import Mapped
from agent_core.store.database.ownership import Who
from agent_core.store.deliveries import sql as deliveries
from agent_core.store.errors import StoreError
from agent_core.store.inbox import sql as inbox
from agent_core.store.keeping import pieces
from agent_core.store.memory import sql as memory
from agent_core.store.people import sql as people
from agent_core.store.schedules import sql as schedules
from agent_core.store.sessions import sql as sessions
from agent_core.store.slices.sql import put_cursors
from agent_core.store.troubles import sql as troubles
from agent_core.store.turns import sql as turns
from agent_core.store.webhooks import sql as webhooks

Outcome: TypeAlias = "tuple[object, StoreError | None]"
"""An operation's answer, or why it was refused."""
_ADDED = (t.EVENT, t.TROUBLE)
_PUT = (t.GATE, t.PERSON, t.PLACE, t.AUDIT, t.INCIDENT, t.SCHEDULE)
_PUT_THEN = (t.MEMORY, t.RECEIVER)
"""In this order, so that two writers on PostgreSQL lock alike. Parts have a statement of their own."""


class NotAllNew(Exception):
    """A message that was taken for new may not be: nothing of the batch may be stored, and it is to be decided with a look at what there is."""


def carry_out(
    conn: Connection,
    ops: Sequence[tuple[Op[object], object]],
    who: Who,
    owned: Owned | None = None,
    *,
    trusting: bool = False,
) -> list[Outcome]:
    """Read the facts, decide each operation in order, write what they changed. One transaction is open on `conn`.

    What `owned` has kept is not read; it notes what there is when this is committed. Nearly every message is new, and the index of their keys
    says if one is not: who is `trusting` asks nothing before, and raises `NotAllNew` where what is stored may decide.
    """
    wanted = Needs()
    for op, _ in ops:
        op.need(wanted)
    wanted.trusting = trusting and bool(wanted.messages)
    facts = Facts(who.node)
    if owned is not None:
        owned.recall(conn, wanted, facts)
    load(conn, wanted, facts, who)
    facts.offered = {piece.digest: piece for op, _ in ops for piece in op.cut_out()}
    outcomes = decided(facts, ops, trusting=wanted.trusting)
    try:
        store(conn, facts)
    except IntegrityError as error:
        if wanted.trusting:
            raise NotAllNew from error
        raise
    if owned is not None:
        owned.note(facts)
    return outcomes


def decided(facts: Facts, ops: Sequence[tuple[Op[object], object]], *, trusting: bool = False) -> list[Outcome]:
    """What each comes to, in their order. Raises `NotAllNew` if one is refused that was `trusting`."""
    outcomes: list[Outcome] = []
    for op, previous in ops:
        try:
            outcomes.append((op.decide(facts, previous), None))
        except StoreError as refusal:
            if trusting:
                raise NotAllNew from refusal
            outcomes.append((None, refusal))
    return outcomes


def load(conn: Connection, wanted: Needs, facts: Facts, who: Who) -> Facts:
    """Every row that `wanted` names: sessions first, which orders those who lock."""
    if wanted.sessions or wanted.session_keys or wanted.claims:
        sessions.load(conn, wanted, facts, who)
    if wanted.turns or wanted.calls or facts.turns:
        turns.load(conn, wanted, facts)
    if wanted.inbox or wanted.messages or wanted.rewordings:
        inbox.load(conn, wanted, facts)
    if wanted.memory:
        memory.load(conn, wanted, facts)
    if wanted.incidents:
        troubles.load(conn, wanted, facts)
    if wanted.schedules:
        schedules.load(conn, wanted, facts)
    if wanted.pots or wanted.reservations:
        budgets.load(conn, wanted, facts)
    return facts


def store(conn: Connection, facts: Facts) -> None:
    """Write what is new or other. The order satisfies foreign keys."""
    if facts.inbox or facts.offered:
        _store_pieces(conn, facts)
    sessions.store(conn, facts)
    turns.store(conn, facts)
    if facts.inbox:
        inbox.store(conn, facts)
    _add(conn, facts, _ADDED)
    if facts.puts:
        deliveries.store(conn, facts)
    if facts.memory_gone:
        memory.store(conn, facts)
    if facts.puts:
        _put(conn, facts, _PUT)
        if rows := facts.puts.get(t.CURSOR):
            put_cursors(conn, [rows[key] for key in sorted(rows)], facts.node)
        _put(conn, facts, _PUT_THEN)
    _add(conn, facts, (t.OCCURRENCE,))
    if facts.pointed or facts.unlinked:
        people.store(conn, facts)
    if facts.pots or facts.reservations:
        budgets.store(conn, facts)
    if facts.puts or facts.hooks_settled:
        webhooks.store(conn, facts)


def _put(conn: Connection, facts: Facts, tables: Sequence[Mapped[Any]]) -> None:
    for mapped in tables:
        if rows := facts.puts.get(mapped):
            mapped.put(conn, [mapped.values(rows[key].row) for key in sorted(rows)])


def _add(conn: Connection, facts: Facts, tables: Sequence[Mapped[Any]]) -> None:
    for mapped in tables:
        if rows := facts.given.get(mapped):
            mapped.add(conn, [mapped.values(one.row, **one.more) for one in rows])


def _store_pieces(conn: Connection, facts: Facts) -> None:
    """What the bodies need that this batch adds; what is worded anew gives up what it needed before."""
    reworded = [m for m in facts.inbox.values() if m.stored is not None and m.stored.body != m.row.body]
    if reworded:
        pieces.release(conn, [m.stored.body for m in reworded if m.stored is not None])
    if facts.offered:
        events = [added.row for added in facts.added(t.EVENT)]
        told = [*(m.row for m in facts.inbox.values() if m.new), *(m.row for m in reworded)]
        bodies = [*(event.body for event in events), *(m.body for m in told)]
        at = max([*(event.at for event in events), *(m.received_at for m in told)], default=0)
        pieces.add(conn, facts.offered, bodies, at)
