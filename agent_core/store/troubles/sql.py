"""Incidents of a batch, read."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, literal_column, select

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs
from agent_core.store.database.keys import padded

_OPEN = select(t.incidents.c.fingerprint, t.incidents.c.incident).where(
    t.incidents.c.state == literal_column("'open'"),
    t.incidents.c.fingerprint.in_(bindparam("keys", expanding=True)),
)


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Which incidents are open about these fingerprints."""
    for keys in padded(wanted.incidents):
        facts.open_incidents.update((row[0], row[1]) for row in conn.execute(_OPEN, {"keys": keys}))
