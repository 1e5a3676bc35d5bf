"""Pots and what is held in them, read and written.

Pots are locked in the order of their keys, after the sessions, so that two nodes on PostgreSQL check and add one after the
other. A pot that is not there yet cannot be locked: if two nodes make it at once, the second one's batch is decided anew
(`trouble.Blame.MOMENT`).
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs
from agent_core.store.budgets.ops import settle
from agent_core.store.budgets.rows import ReservationRow, ReservationState
from agent_core.store.database import direct
from agent_core.store.database.keys import among, padded
from agent_core.store.database.mapping import Fact

KEEP_POTS_MS = 400 * 24 * 3600 * 1000
"""How long budgets of the past are kept, for whoever wants to add them up. A turn's goes with its settled calls."""
_POTS = (
    t.POT.query.where(among((t.budgets.c.scope, t.budgets.c.window), bindparam("keys", expanding=True)))
    .order_by(t.budgets.c.scope, t.budgets.c.window)
    .with_for_update(key_share=True, of=t.budgets)
)
_RESERVATIONS = t.RESERVATION.query.where(t.reservations.c.call.in_(bindparam("keys", expanding=True)))
_open = t.reservations.c.state == ReservationState.OPEN.value
HOLDERS = select(t.reservations.c.node).where(_open).distinct()
_HELD_BY = (
    t.RESERVATION.query.where(_open, t.reservations.c.node.in_(bindparam("nodes", expanding=True)))
    .order_by(t.reservations.c.call)
    .with_for_update(key_share=True, skip_locked=True, of=t.reservations)
)


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Read and lock the pots and reservations that `wanted` names."""
    for calls in padded(sorted(wanted.reservations)):
        for row in direct.found(conn, _RESERVATIONS, calls):
            found = t.RESERVATION.make(row)
            facts.reservations[found.call] = Fact(found, found)
    _load_pots(conn, wanted.pots, facts)


def _load_pots(conn: Connection, keys: Collection[tuple[str, int]], facts: Facts) -> None:
    for some in padded(sorted(keys)):
        for row in direct.found(conn, _POTS, some):
            found = t.POT.make(row)
            facts.pots[found.scope, found.window] = Fact(found, found)


def store(conn: Connection, facts: Facts) -> None:
    """Write what is new or other, in the order of its keys."""
    if not facts.pots and not facts.reservations:
        return
    pots = [facts.pots[key] for key in sorted(facts.pots)]
    reservations = [facts.reservations[call] for call in sorted(facts.reservations)]
    t.POT.add_new(conn, pots)
    t.POT.store_changed(conn, pots)
    t.RESERVATION.add_new(conn, reservations)
    t.RESERVATION.store_changed(conn, reservations)


def holders(conn: Connection) -> set[int]:
    """The nodes that hold something."""
    return {int(node) for node in conn.execute(HOLDERS).scalars()}


def release(conn: Connection, dead: Collection[int], node: int) -> None:
    """Settle what dead nodes held, as if it had been used: how far their calls went, nobody knows.

    So a process that dies again and again cannot make a budget run away. No level is warned of here; the next call is. No start ends because
    of a budget that is not there, or cannot be read: the auditor tells of both.
    """
    facts = Facts(node)
    found = [t.RESERVATION.make(row) for row in conn.execute(_HELD_BY, {"nodes": sorted(dead)}).all()]
    keys = {row.call: _readable(row) for row in found}
    _load_pots(conn, {key for some in keys.values() for key in some}, facts)
    for row in found:
        for pot in (facts.pots[key] for key in keys[row.call] if key in facts.pots):
            pot.row = pot.row.filled(pot.row.level.settled(row.held, row.held, estimated=True), pot.row.at)
        facts.reservations[row.call] = Fact(row, row)
        settle(facts.reservations[row.call], row.held, estimated=True, at=row.at)
    store(conn, facts)


def _readable(row: ReservationRow) -> tuple[tuple[str, int], ...]:
    """The pots of a call, as far as anybody can say."""
    try:
        return row.keys
    except (ValueError, TypeError):
        return ()
