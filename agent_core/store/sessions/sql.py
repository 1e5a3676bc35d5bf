"""Sessions of a batch, read and written.

Session rows are locked in the order of their keys, so that two writers on PostgreSQL do not deadlock; SQLite has one writer and ignores
the locking clauses.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, literal_column, select, update

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, SessionFact
from agent_core.store.database import direct
from agent_core.store.database.keys import padded
from agent_core.store.database.ownership import Who
from agent_core.store.sessions.rows import ONCE
from agent_core.store.slices.sql import divided, rights

_open_turn = (
    select(t.turns.c.turn)
    .where(t.turns.c.session == t.sessions.c.session, t.turns.c.state == literal_column("'open'"))
    .scalar_subquery()
)
_last_number = (
    select(func.coalesce(func.max(t.turns.c.number), 0))
    .where(t.turns.c.session == t.sessions.c.session)
    .scalar_subquery()
)
_last_waiting = (
    select(func.max(t.inbox.c.id))
    .where(
        t.inbox.c.session == t.sessions.c.session,
        t.inbox.c.state == literal_column("'new'"),
        t.inbox.c.lane == literal_column("'normal'"),
    )
    .scalar_subquery()
)
_SESSION = t.SESSION.query.add_columns(_last_number, _open_turn)
BY_ID = (
    _SESSION.where(t.sessions.c.session.in_(bindparam("keys", expanding=True)))
    .order_by(t.sessions.c.session)
    .with_for_update(key_share=True, of=t.sessions)
)
BY_KEY = _SESSION.where(t.NAMED, t.sessions.c.key.in_(bindparam("keys", expanding=True)))
_DIVIDED = {query: query.add_columns(_last_waiting) for query in (BY_ID, BY_KEY)}
"""The same where other nodes store messages, too."""
_TOUCH = (
    update(t.nodes)
    .where(t.nodes.c.node == bindparam("which"))
    .values(started_at=t.nodes.c.started_at + 1 - 2 * (t.nodes.c.started_at % 2))
)
"""Flips the last bit of a millisecond: SQLite writes no page whose content stays the same, so such a write would prove nothing."""


def load(conn: Connection, wanted: Needs, facts: Facts, who: Who) -> None:
    """Sessions by their ids and by their keys, and which of their owners are dead where that matters."""
    _found(conn, BY_ID, sorted(wanted.sessions), facts)
    # What was found by its id is not looked for by its key as well.
    named = {key for key in wanted.session_keys if not key.startswith(ONCE) and key not in facts.sessions_by_key}
    _found(conn, BY_KEY, named, facts)
    claimed = [facts.sessions[session].row for session in wanted.claims if session in facts.sessions]
    others = [row for row in claimed if row.owner != who.node]
    owners = {row.owner for row in others if row.owner is not None}
    facts.dead = who.dead(conn, owners) if owners else frozenset()
    facts.rights = rights(conn, who, [row.key for row in others]) if others else {}


def _found(conn: Connection, query: Select[*tuple[Any, ...]], names: Collection[str], facts: Facts) -> None:
    """A session found both by its id and by its key is one record."""
    more = 0
    if divided(conn):
        query, more = _DIVIDED[query], 1
    for keys in padded(names):
        for row in direct.found(conn, query, keys):
            found, beside = t.SESSION.make(row), row[len(row) - 2 - more :]
            fact = facts.sessions.get(found.session) or SessionFact(found, found, *beside)
            facts.sessions[found.session] = facts.sessions_by_key[found.key] = fact


def store(conn: Connection, facts: Facts) -> None:
    """Sessions that are new or other."""
    t.SESSION.add_new(conn, facts.sessions.values())
    t.SESSION.store_changed(conn, facts.sessions.values())
    if facts.touched:
        direct.do(conn, _TOUCH, [{"which": facts.node}])
