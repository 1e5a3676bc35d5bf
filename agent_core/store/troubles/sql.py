"""Failures and incidents of a batch, read and written."""

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


def store(conn: Connection, facts: Facts) -> None:
    """Failures that are new, and incidents as they are now."""
    t.TROUBLE.add(conn, facts.rows_added(t.TROUBLE))
    t.INCIDENT.put(conn, facts.rows_put(t.INCIDENT))
