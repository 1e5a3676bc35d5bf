"""Parts of a batch, written."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Insert, bindparam, case, exists, select

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts
from agent_core.store.database.direct import do
from agent_core.store.database.mapping import inserting
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.turns.rows import FORGOTTEN

_GIVEN = [t.deliveries.c[name] for name in (*t.PART.names, "session", "epoch")]
_PART = select(*(bindparam(column.name, type_=column.type) for column in _GIVEN)).where(
    ~exists().where(
        t.turns.c.turn == bindparam("origin", type_=t.deliveries.c.origin.type), t.turns.c.removed == FORGOTTEN
    )
)
"""A part, but none of a turn that is forgotten: its surface may still take back what it showed, and would store their words again."""


@cache
def put(dialect: str) -> Insert:
    made = inserting(t.deliveries, dialect)
    made = made.from_select(_GIVEN, _PART, include_defaults=False)
    fixed = {*t.PART.identity, "id", "session", "suspicion"}
    whole: dict[str, ColumnElement[Any]] = {
        column.name: made.excluded[column.name] for column in t.deliveries.c if column.name not in fixed
    }
    # What is there is no suspect any more.
    whole["suspicion"] = case((made.excluded.state == DeliveryState.SENT.value, 0), else_=t.deliveries.c.suspicion)
    return made.on_conflict_do_update(index_elements=t.PART.identity, set_=whole)


def store(conn: Connection, facts: Facts) -> None:
    """Parts as they are to be."""
    if parts := facts.puts.get(t.PART):
        do(conn, put(conn.dialect.name), [t.PART.values(one.row, **one.more) for one in parts.values()])
