"""Parts of a batch, written."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    Text,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    select,
)

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts
from agent_core.store.database.direct import do
from agent_core.store.database.mapping import inserting
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.turns.rows import FORGOTTEN

_GIVEN = [t.deliveries.c[name] for name in (*t.PART.names, "session", "epoch")]


def behind_in(origin: ColumnElement[str], dialect: str) -> ColumnElement[str]:
    """The same as `rows.behind`, in the database."""
    mark = literal_column("'!'", Text)
    if dialect == "postgresql":
        return func.split_part(origin, mark, literal_column("1"))
    return func.substr(origin, 1, func.instr(origin.concat(mark), mark) - 1)


def _part(dialect: str) -> Select[*tuple[Any, ...]]:
    """A part, but none of a turn that is forgotten, nor of what was said beside it (`rows.behind`): its surface may still take back what it showed, and
    would store their words again."""
    turn = behind_in(bindparam("origin", type_=t.deliveries.c.origin.type), dialect)
    forgotten = exists().where(t.turns.c.turn == turn, t.turns.c.removed == FORGOTTEN)
    return select(*(bindparam(column.name, type_=column.type) for column in _GIVEN)).where(~forgotten)


@cache
def put(dialect: str) -> Insert:
    made = inserting(t.deliveries, dialect)
    made = made.from_select(_GIVEN, _part(dialect), include_defaults=False)
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
