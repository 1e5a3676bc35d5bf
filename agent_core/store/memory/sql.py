"""Memory of a batch, read and written."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, or_, select

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs
from agent_core.store.database.keys import among, begins, padded
from agent_core.store.memory.rows import AGENT_MARK, LISTS

_key = (t.memory.c.scope, t.memory.c.kind, t.memory.c.name)
_KNOWN = select(*_key).where(among(_key, bindparam("keys", expanding=True)))
_GONE = delete(t.memory).where(*(column == bindparam(f"which_{column.name}") for column in _key))


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Which entries are there."""
    for keys in padded(wanted.memory):
        facts.memory.update((row[0], row[1], row[2]) for row in conn.execute(_KNOWN, {"keys": keys}))


def store(conn: Connection, facts: Facts) -> None:
    """What is gone."""
    if facts.memory_gone:
        names = [f"which_{column.name}" for column in _key]
        conn.execute(_GONE, [dict(zip(names, entry, strict=True)) for entry in facts.memory_gone])


def of_scope(scope: str, dialect: str) -> ColumnElement[bool]:
    """What is remembered under a scope, and the lists in each of its workspaces. (A name may hold a slash, a workspace's does not.)"""
    m = t.memory.c
    workspace = func.substr(m.scope, len(scope) + 2)
    below = and_(begins(m.scope, f"{scope}/", dialect), ~workspace.contains("/"))
    agents = begins(m.scope, f"{scope}{AGENT_MARK}", dialect)
    return or_(m.scope == scope, agents, and_(m.kind == LISTS, below))
