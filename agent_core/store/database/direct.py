"""Statements that are always the same, on their way to the driver.

A batch says the same few dozen statements for ever. SQLAlchemy makes their text once; what it does each time around the driver's call (looking the
text up, binding by name, events, a result with its own rows) was more than half of what a commit took of the processor. So on SQLite a text
that is made goes to the driver itself, with its values in their places. On PostgreSQL the driver is asynchronous and behind SQLAlchemy:
there somebody stands in for it, who gathers what a batch asks and writes (`batch.distant`), or asks at once (`readers`); else the statement
goes the usual way.

Law (tests/store/test_direct.py): what is stored and what is found is the same either way, and an error is the same error.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, Protocol, cast

from sqlalchemy import Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql.dml import UpdateBase

from agent_core.records import dataclass

KEYS = "keys"
"""The one parameter that stands for a list."""
KNOWN_MOST = 1_000


def found(
    conn: Connection,
    query: Select[*tuple[Any, ...]],
    keys: Sequence[Any] = (),
    named: Mapping[str, object] | None = None,
) -> Sequence[tuple[Any, ...]]:
    """The rows of a query; `keys` is the list that it looks for, of values or of tuples, `named` are values that are others each time."""
    if conn.dialect.name != "sqlite":
        if (other := elsewhere(conn)) is not None:
            return other.found(query, keys, named)
        given = {**({KEYS: keys} if keys else {}), **(named or {})}
        return cast("Sequence[tuple[Any, ...]]", conn.execute(query, given).all())
    sql, values = asked(query, keys, conn.dialect, named)
    return ask(conn, sql, [values])


def asked(
    query: Select[*tuple[Any, ...]], keys: Sequence[Any], dialect: Dialect, named: Mapping[str, object] | None = None
) -> tuple[str, tuple[object, ...]]:
    """The query as the driver takes it, and its values in their places."""
    first = cast("object", keys[0]) if keys else None
    width = len(cast("tuple[object, ...]", first)) if isinstance(first, tuple) else 0
    text = _question(query, len(keys), width, dialect)
    before, behind = text.before, text.behind
    if named:
        before, behind = (
            tuple([named.get(name, value) for name, value in zip(names, values, strict=True)])
            for names, values in ((text.named_before, before), (text.named_behind, behind))
        )
    return text.sql, before + (tuple(chain.from_iterable(keys)) if width else tuple(keys)) + behind


class StandIn(Protocol):
    """What stands in for the driver: it gathers what is to be asked and written, or asks by itself."""

    def found(
        self, query: Select[*tuple[Any, ...]], keys: Sequence[Any], named: Mapping[str, object] | None = None
    ) -> Sequence[tuple[Any, ...]]: ...

    def do(self, statement: UpdateBase, rows: Sequence[Mapping[str, object]]) -> None: ...

    def numbers(self, count: int) -> list[int]:
        """So many unused numbers of messages."""
        ...


ELSEWHERE = "outspoken elsewhere"
"""Under this name a connection knows who stands in for it."""


def elsewhere(conn: Connection) -> StandIn | None:
    """Who stands in for the driver just now, if anybody does."""
    return conn.info.get(ELSEWHERE)


def do(conn: Connection, statement: UpdateBase, rows: Sequence[Mapping[str, object]]) -> None:
    """Carry out a statement for each of these rows, of which there is at least one; all of them name the same values."""
    if conn.dialect.name != "sqlite":
        if (other := elsewhere(conn)) is not None:
            other.do(statement, rows)
        else:
            conn.execute(statement, rows)
        return
    ask(conn, *told(statement, rows, conn.dialect))


def told(
    statement: UpdateBase, rows: Sequence[Mapping[str, object]], dialect: Dialect
) -> tuple[str, list[tuple[object, ...]]]:
    """The statement as the driver takes it, and the values of each row in their places."""
    text = _change(statement, tuple(rows[0]), dialect)
    return text.sql, [text.take({**text.fixed, **row} if text.fixed else row) for row in rows]


def ask(conn: Connection, sql: str, given: Sequence[tuple[object, ...]]) -> list[tuple[Any, ...]]:
    """Hand a text to the driver, once for each row of values; what it finds, if it looks for something."""
    driver: Any = conn.connection.dbapi_connection
    try:
        if len(given) > 1:
            driver.executemany(sql, given).close()
            return []
        cursor = driver.execute(sql, given[0])
        return cursor.fetchall() if cursor.description else []
    except sqlite3.Error as error:
        raise DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True) from error


def say(conn: Connection, sql: str) -> None:
    """Hand a text to the driver that has no values, and is answered by nothing."""
    driver: Any = conn.connection.dbapi_connection
    try:
        driver.execute(sql)
    except sqlite3.Error as error:
        raise DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True) from error


def driver_of(conn: Connection) -> sqlite3.Connection:
    """What is behind a connection to SQLite."""
    return cast("sqlite3.Connection", conn.connection.dbapi_connection)


def prepare(statement: UpdateBase, names: tuple[str, ...], dialect: Dialect) -> None:
    """Make the text with which `do` is going to say it for rows of these names. From any thread."""
    _change(statement, names, dialect)


def prepare_question(query: Select[*tuple[Any, ...]], keys: int, dialect: Dialect) -> None:
    """The same of what `found` asks for so many keys, each of them one value."""
    _question(query, keys, 0, dialect)


@dataclass(frozen=True, slots=True)
class _Question:
    """A query as the driver takes it: its keys stand between values that are always the same."""

    sql: str
    before: tuple[object, ...]
    behind: tuple[object, ...]
    named_before: tuple[str, ...]
    """What these values are called."""
    named_behind: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Change:
    sql: str
    take: Callable[[Mapping[str, object]], tuple[object, ...]]
    """The values in their places, from those by name."""
    fixed: Mapping[str, object]
    """Values that are always the same."""


@lru_cache(KNOWN_MOST)
def _question(query: Select[*tuple[Any, ...]], keys: int, width: int, dialect: Dialect) -> _Question:
    """The query for so many keys, each of so many columns (0: a value)."""
    made = query.compile(dialect=dialect)
    sample = [tuple(range(width)) if width else 0] * keys
    state = made.construct_expanded_state({KEYS: sample} if keys else None)
    places = list(state.positiontup or ())
    slots = set(state.parameter_expansion.get(KEYS, ()))
    at = [number for number, name in enumerate(places) if name in slots]
    assert len(at) == keys * max(1, width), state.statement
    assert not at or at == list(range(at[0], at[-1] + 1)), state.statement
    first, last = (at[0], at[-1] + 1) if at else (len(places), len(places))
    values = [state.parameters[name] if name not in slots else None for name in places]
    told = tuple(values[:first]), tuple(values[last:]), tuple(places[:first]), tuple(places[last:])
    return _Question(state.statement, *told)


@lru_cache(KNOWN_MOST)
def _change(statement: UpdateBase, names: tuple[str, ...], dialect: Dialect) -> _Change:
    """The statement for values of these names."""
    made = statement.compile(dialect=dialect, column_keys=list(names), for_executemany=True)
    state = made.construct_expanded_state(dict.fromkeys(names))
    fixed = {name: value for name, value in state.parameters.items() if name not in names}
    return _Change(state.statement, _taker(tuple(state.positiontup or ())), fixed)


def _taker(places: tuple[str, ...]) -> Callable[[Mapping[str, object]], tuple[object, ...]]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple([row[name] for name in places])
