"""Schedules of a batch, read."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs
from agent_core.store.database.keys import padded

_SCHEDULES = (
    t.SCHEDULE.query.where(t.schedules.c.schedule.in_(bindparam("keys", expanding=True)))
    .order_by(t.schedules.c.schedule)
    .with_for_update()
)


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Schedules, locked."""
    for keys in padded(sorted(wanted.schedules)):
        facts.schedules.update((row[0], t.SCHEDULE.make(row)) for row in conn.execute(_SCHEDULES, {"keys": keys}))
