"""The part of `sql` that is about budgets: pots and what is held in them.

Pots are locked in the order of their keys, after the sessions, so that two nodes on PostgreSQL check and add one after the
other. A pot that is not there yet cannot be locked: if two nodes make it at once, the second one's batch is decided anew
(`trouble.Blame.MOMENT`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, Row, bindparam, insert, select, update

from agent_core.limits.budgets import Amount, Level
from agent_core.store import tables as t
from agent_core.store.database.keys import among, padded
from agent_core.store.facts import Facts, LevelFact, Needs, ReservationFact

OPEN = "open"
SETTLED = "settled"
KEEP_POTS_MS = 400 * 24 * 3600 * 1000
"""How long budgets of the past are kept, for whoever wants to add them up. A turn's goes with its settled calls."""

LEVEL_COLUMNS = (
    t.budgets.c.scope,
    t.budgets.c.window,
    t.budgets.c.until,
    t.budgets.c.spent_tokens,
    t.budgets.c.spent_nanos,
    t.budgets.c.held_tokens,
    t.budgets.c.held_nanos,
    t.budgets.c.estimated_tokens,
    t.budgets.c.estimated_nanos,
    t.budgets.c.calls,
    t.budgets.c.warned,
    t.budgets.c.at,
)
LEVELS = select(*LEVEL_COLUMNS).where(among((t.budgets.c.scope, t.budgets.c.window), bindparam("keys", expanding=True)))
_LEVELS_LOCKED = LEVELS.order_by(t.budgets.c.scope, t.budgets.c.window).with_for_update(key_share=True, of=t.budgets)
_RESERVATION = select(
    t.reservations.c.call,
    t.reservations.c.session,
    t.reservations.c.node,
    t.reservations.c.pots,
    t.reservations.c.held_tokens,
    t.reservations.c.held_nanos,
    t.reservations.c.state,
    t.reservations.c.used_tokens,
    t.reservations.c.used_nanos,
    t.reservations.c.estimated,
    t.reservations.c.at,
)
_RESERVATIONS_BY_CALL = _RESERVATION.where(t.reservations.c.call.in_(bindparam("keys", expanding=True)))
_HOLDERS = select(t.reservations.c.node).where(t.reservations.c.state == OPEN).distinct()
_HELD_BY = (
    _RESERVATION.where(t.reservations.c.state == OPEN, t.reservations.c.node.in_(bindparam("nodes", expanding=True)))
    .order_by(t.reservations.c.call)
    .with_for_update(key_share=True, skip_locked=True, of=t.reservations)
)
_NEW_LEVEL = insert(t.budgets)
_LEVEL_CHANGED = (
    update(t.budgets)
    .where(t.budgets.c.scope == bindparam("which_scope"), t.budgets.c.window == bindparam("which_window"))
    .values(
        {
            name: bindparam(f"new_{name}")
            for name in (
                "spent_tokens", "spent_nanos", "held_tokens", "held_nanos", "estimated_tokens", "estimated_nanos", "calls",
                "warned", "at",
            )
        }
    )
)  # fmt: skip
_NEW_RESERVATION = insert(t.reservations)
_RESERVATION_CHANGED = (
    update(t.reservations)
    .where(t.reservations.c.call == bindparam("which"))
    .values(
        state=bindparam("new_state"),
        used_tokens=bindparam("new_used_tokens"),
        used_nanos=bindparam("new_used_nanos"),
        estimated=bindparam("new_estimated"),
        at=bindparam("new_at"),
    )
)


def level_of(row: Row[*tuple[Any, ...]]) -> Level:
    return Level(
        spent=Amount(row[3], row[4]),
        held=Amount(row[5], row[6]),
        estimated=Amount(row[7], row[8]),
        calls=row[9],
        warned=bool(row[10]),
    )


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Read and lock the pots and reservations that `wanted` names."""
    for calls in padded(sorted(wanted.reservations)):
        for row in conn.execute(_RESERVATIONS_BY_CALL, {"keys": calls}):
            found = _reservation(row)
            facts.reservations[found.call] = found
    _load_levels(conn, wanted.pots, facts)


def _load_levels(conn: Connection, keys: Collection[tuple[str, int]], facts: Facts) -> None:
    for some in padded(sorted(keys)):
        for row in conn.execute(_LEVELS_LOCKED, {"keys": some}):
            facts.levels[row[0], row[1]] = LevelFact(row[0], row[1], row[2], level_of(row), row[11])


def _reservation(row: Row[*tuple[Any, ...]]) -> ReservationFact:
    used = Amount(row[7], row[8]) if row[6] == SETTLED else None
    pots = tuple((str(scope), int(window)) for scope, window in orjson.loads(row[3]))
    return ReservationFact(row[0], row[1], row[2], pots, Amount(row[4], row[5]), used, bool(row[9]), row[10])


def store(conn: Connection, facts: Facts) -> None:
    """Write what is new or dirty, in the order of its keys."""
    levels = sorted(facts.levels.values(), key=lambda fact: (fact.scope, fact.window))
    reservations = sorted(facts.reservations.values(), key=lambda fact: fact.call)
    _many(conn, _NEW_LEVEL, [_new_level(fact) for fact in levels if fact.new])
    _many(conn, _LEVEL_CHANGED, [_changed_level(fact) for fact in levels if fact.dirty and not fact.new])
    _many(conn, _NEW_RESERVATION, [_new_reservation(fact) for fact in reservations if fact.new])
    _many(conn, _RESERVATION_CHANGED, [_changed(fact) for fact in reservations if fact.dirty and not fact.new])


def _many(conn: Connection, statement: Any, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        conn.execute(statement, rows)


def _figures(fact: LevelFact) -> dict[str, object]:
    level = fact.level
    return {
        "spent_tokens": level.spent.tokens,
        "spent_nanos": level.spent.nanos,
        "held_tokens": level.held.tokens,
        "held_nanos": level.held.nanos,
        "estimated_tokens": level.estimated.tokens,
        "estimated_nanos": level.estimated.nanos,
        "calls": level.calls,
        "warned": int(level.warned),
        "at": fact.at,
    }


def _new_level(fact: LevelFact) -> dict[str, object]:
    return {"scope": fact.scope, "window": fact.window, "until": fact.until, **_figures(fact)}


def _changed_level(fact: LevelFact) -> dict[str, object]:
    figures = {f"new_{name}": value for name, value in _figures(fact).items()}
    return {"which_scope": fact.scope, "which_window": fact.window, **figures}


def _new_reservation(fact: ReservationFact) -> dict[str, object]:
    used = fact.used or Amount()
    return {
        "call": fact.call,
        "session": fact.session,
        "node": fact.node,
        "state": OPEN if fact.used is None else SETTLED,
        "pots": orjson.dumps(fact.pots).decode(),
        "held_tokens": fact.held.tokens,
        "held_nanos": fact.held.nanos,
        "used_tokens": used.tokens,
        "used_nanos": used.nanos,
        "estimated": int(fact.estimated),
        "at": fact.at,
    }


def _changed(fact: ReservationFact) -> dict[str, object]:
    assert fact.used is not None, "a reservation changes only by being settled"
    return {
        "which": fact.call,
        "new_state": SETTLED,
        "new_used_tokens": fact.used.tokens,
        "new_used_nanos": fact.used.nanos,
        "new_estimated": int(fact.estimated),
        "new_at": fact.at,
    }


def holders(conn: Connection) -> set[int]:
    """The nodes that hold something."""
    return {int(node) for node in conn.execute(_HOLDERS).scalars()}


def release(conn: Connection, dead: Collection[int], node: int) -> None:
    """Settle what dead nodes held, as if it had been used: how far their calls went, nobody knows.

    So a process that dies again and again cannot make a budget run away. No level is warned of here; the next call is.
    """
    facts = Facts(node)
    found = [_reservation(row) for row in conn.execute(_HELD_BY, {"nodes": sorted(dead)}).all()]
    facts.reservations = {fact.call: fact for fact in found}
    _load_levels(conn, {key for fact in found for key in fact.pots}, facts)
    for fact in found:
        for key in fact.pots:
            level = facts.levels[key]
            level.level = level.level.settled(fact.held, fact.held, estimated=True)
            level.dirty = True
        fact.used, fact.estimated, fact.dirty = fact.held, True, True
    store(conn, facts)
