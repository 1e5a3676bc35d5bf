"""A batch on a server that is far away: two ways there and back, however much it reads and writes.

Theory. A transaction with a statement for each table is a way there and back for each of them, and for its beginning and its end: nine for a message,
which is half a second where the server is 50 ms away. So all that a batch reads is asked in one statement, and all that it writes is given to one function
that carries it out, which is a transaction by itself. Between the two nothing is locked. What was decided stands on what was read, so the function
first locks the rows that must be as they were (sessions with their owner and epoch, the messages and the pots that change) and looks whether
they are: if not, nothing is written, and the batch is decided anew, this time in a transaction that locks before it reads. What other nodes may
add meanwhile (the same message, the same session) a unique key refuses, with the same consequence.

The rest of what a batch reads (turns, journals, calls) is written by the owner of its session alone, under the epoch that is compared.

Laws (tests/store/test_distant.py): what is stored and what is answered is the same as by a transaction; what has changed between reading and
writing is never written over. A batch that needs more than this goes the usual way before anything is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, cast

import orjson
from sqlalchemy import Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.util import await_only

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.batch.transaction import Outcome, decided, load, store
from agent_core.store.database import direct
from agent_core.store.database.mapping import Fact, Mapped, stored
from agent_core.store.database.ownership import Who

if TYPE_CHECKING:
    from sqlalchemy.sql.dml import UpdateBase

WRITE = """
CREATE OR REPLACE FUNCTION pg_temp.outspoken_write(texts text[], which int[], given jsonb, blobs bytea[], checks int) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  seen int;
BEGIN
  FOR i IN 1 .. cardinality(which) LOOP
    EXECUTE texts[which[i]] USING given->(i - 1), blobs;
    IF i <= checks THEN
      GET DIAGNOSTICS seen = ROW_COUNT;
      IF seen = 0 THEN
        RAISE EXCEPTION 'changed meanwhile' USING ERRCODE = '40001';
      END IF;
    END IF;
  END LOOP;
END $$
"""
"""Made by each connection for itself, so that it is always the one that this program knows; it goes with the connection."""
_CALL = "SELECT pg_temp.outspoken_write($1, $2, $3, $4, $5)"
_NUMBERS = "SELECT nextval(CAST(pg_get_serial_sequence('inbox', 'id') AS regclass)) FROM generate_series(1, $1::BIGINT)"
_PLACE = re.compile(r"\$(\d+)(?:::([A-Z]+))?")
_LOCK = re.compile(r"\sFOR (NO KEY )?UPDATE( OF \w+)?\s?$")
TYPES = frozenset({"VARCHAR", "TEXT", "BIGINT", "INTEGER", "BYTEA"})
CHECKED: tuple[tuple[Mapped[Any], tuple[str, ...]], ...] = (
    (t.SESSION, ("owner", "epoch")),
    (t.MESSAGE, ("state", "turn")),
    (t.POT, t.POT.names),
    (t.RESERVATION, t.RESERVATION.names),
)


class NotSo(Exception):
    """This batch goes the usual way. Nothing of it was written."""


def carry_out(
    conn: Connection, ops: Sequence[tuple[Op[object], object]], who: Who, tell: Callable[[list[Outcome]], None]
) -> bool:
    """As `transaction.carry_out`, without a transaction being open. `tell` gets the outcomes before they are written. False if it has to go the
    usual way, and nothing was written."""
    try:
        _carry_out(conn, ops, who, tell)
    except NotSo:
        return False
    return True


def _carry_out(
    conn: Connection, ops: Sequence[tuple[Op[object], object]], who: Who, tell: Callable[[list[Outcome]], None]
) -> None:
    wanted = Needs()
    for op, _ in ops:
        op.need(wanted)
        if op.cut_out():
            raise NotSo
    if wanted.rewordings or wanted.memory or wanted.incidents or wanted.schedules:
        raise NotSo
    distant = _Distant(conn, who.node)
    conn.info[direct.ELSEWHERE] = distant
    try:
        # What will be asked, as far as that is known without an answer
        load(conn, wanted, Facts(who.node), Who(who.node, _unasked))
        distant.ask()
        facts = load(conn, wanted, Facts(who.node), Who(who.node, _unasked))
        outcomes = decided(facts, ops)
        if facts.pointed or facts.unlinked or facts.hooks_settled:
            raise NotSo
        store(conn, facts)
        if conn.in_transaction():
            raise NotSo  # something was asked that nobody gathered, and what is written now would wait for its transaction
        tell(outcomes)
        distant.write(checks(facts))
    finally:
        del conn.info[direct.ELSEWHERE]
        if conn.in_transaction():
            conn.rollback()


def _unasked(_conn: Connection, _nodes: object) -> NoReturn:
    raise NotSo  # who is dead has to stay so until the end of the transaction


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A row that must be as it was read."""

    table: Mapped[Any]
    columns: tuple[str, ...]
    values: tuple[object, ...]


def checks(facts: Facts) -> list[Unchanged]:
    """What must not have changed meanwhile, in the order in which transactions lock. Pure."""
    found: list[Unchanged] = []
    pots = [facts.pots[key] for key in sorted(facts.pots)]
    reservations = [facts.reservations[key] for key in sorted(facts.reservations)]
    changing = [fact for _, fact in sorted(facts.inbox.items()) if fact.stored is not None and fact.stored != fact.row]
    sessions = [facts.sessions[key] for key in sorted(facts.sessions)]
    known: tuple[Sequence[Fact[Any]], ...] = (sessions, changing, pots, reservations)
    for (table, columns), some in zip(CHECKED, known, strict=True):
        keys = tuple(column.name for column in table.table.primary_key if column.name in table.names)
        names = (*keys, *(name for name in columns if name not in keys))
        found += [
            Unchanged(table, names, tuple([stored(getattr(fact.stored, name)) for name in names]))
            for fact in some
            if fact.stored is not None
        ]
    return found


class _Distant:
    """Stands in for the driver of one connection during one batch."""

    def __init__(self, conn: Connection, node: int) -> None:
        self._driver: Any = conn.connection.driver_connection
        self._dialect = conn.dialect
        self._node = node
        self._asked: list[tuple[str, tuple[object, ...]]] | None = []
        """What is to be asked; None once it was."""
        self._answers: dict[tuple[str, tuple[object, ...]], Sequence[tuple[Any, ...]]] = {}
        self._numbers: list[int] = []
        self._wanted_numbers = 0
        self._texts: dict[str, int] = {}
        self._which: list[int] = []
        self._given: list[list[object]] = []
        self._blobs: list[bytes] = []

    def found(
        self, query: Select[*tuple[Any, ...]], keys: Sequence[Any], named: Mapping[str, object] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        question = _question(query, tuple(keys), named, self._dialect)
        if self._asked is not None:
            self._asked.append(question)
            return ()
        known = self._answers.get(question)
        if known is None:
            known = [tuple(row) for row in self._wait(self._driver.fetch(question[0], *question[1]))]
        return known

    def numbers(self, count: int) -> list[int]:
        if self._asked is not None:
            self._wanted_numbers = count
            return [0] * count
        found, self._numbers = self._numbers[:count], self._numbers[count:]
        return found

    def ask(self) -> None:
        """Ask all that is wanted."""
        asked = list(dict.fromkeys(self._asked or ()))
        self._asked = None
        if self._wanted_numbers:
            asked.append((_NUMBERS, (self._wanted_numbers,)))
        if not asked:
            return
        sql = _together(tuple(text for text, _ in asked))
        row: Sequence[Any] = self._wait(self._driver.fetchrow(sql, *(value for _, values in asked for value in values)))
        answers = [[tuple(one) for one in some] if some is not None else [] for some in row]
        if self._wanted_numbers:
            asked.pop()
            self._numbers = [int(one[0]) for one in answers.pop()]
        self._answers = dict(zip(asked, answers, strict=True))

    def do(self, statement: UpdateBase, rows: Sequence[Mapping[str, object]]) -> None:
        sql, given = direct.told(statement, rows, self._dialect)
        self._add(sql, given)

    def _add(self, sql: str, given: Sequence[tuple[object, ...]]) -> None:
        number = self._texts.setdefault(_dynamic(sql), len(self._texts) + 1)
        for values in given:
            self._which.append(number)
            self._given.append([self._placed(value) for value in values])

    def _placed(self, value: object) -> object:
        """Bytes go beside the others, which name their place."""
        if not isinstance(value, bytes):
            return value
        self._blobs.append(value)
        return len(self._blobs)

    def write(self, unchanged: Sequence[Unchanged]) -> None:
        """Write all that was gathered, if all is as it was."""
        if not self._which:
            return
        texts, which, given = self._texts, self._which, self._given
        self._texts, self._which, self._given = {}, [], []
        for check in unchanged:
            self._add(_checking(check.table, check.columns), [check.values])
        behind = len(self._texts)
        every = [*self._texts, *texts]
        order = [*self._which, *(number + behind for number in which)]
        try:
            body = orjson.dumps([*self._given, *given]).decode()
        except TypeError:  # what cannot be told so: whoever brought it hears of it the usual way
            raise NotSo from None
        self._wait(self._driver.execute(_CALL, every, order, body, self._blobs, len(self._which)))

    def _wait(self, work: Any) -> Any:
        return await_only(work)


def _question(
    query: Select[*tuple[Any, ...]], keys: tuple[Any, ...], named: Mapping[str, object] | None, dialect: Dialect
) -> tuple[str, tuple[object, ...]]:
    """The query without its lock: that would be let go at once."""
    sql, given = direct.asked(query, keys, dialect, named)
    return _unlocked(sql), given


@lru_cache(1_000)
def _unlocked(sql: str) -> str:
    return _LOCK.sub("", sql)


@lru_cache(1_000)
def _together(texts: tuple[str, ...]) -> str:
    """All of them as one, each with its rows in a column."""
    parts: list[str] = []
    before = 0
    for text in texts:
        numbers = [int(number) for number, _ in cast("list[tuple[str, str]]", _PLACE.findall(text))]
        moved = re.sub(r"\$(\d+)", lambda one, by=before: f"${int(one[1]) + by}", text)
        parts.append(f"(SELECT array_agg(found) FROM ({moved}) AS found)")  # noqa: S608
        before += max(numbers, default=0)
    return f"SELECT {', '.join(parts)}"


@lru_cache(1_000)
def _dynamic(sql: str) -> str:
    """A statement whose values stand in `$1`, a list in JSON, and whose bytes stand in `$2`."""

    def place(one: re.Match[str]) -> str:
        if one[2] not in TYPES:
            raise NotSo
        value = f"($1->>{int(one[1]) - 1})"
        return f"($2[{value}::int])" if one[2] == "BYTEA" else f"{value}::{one[2]}"

    return _PLACE.sub(place, sql)


@lru_cache(100)
def _checking(table: Mapped[Any], columns: tuple[str, ...]) -> str:
    """Looks for a row as it was, and locks it."""
    keys = {column.name for column in table.table.primary_key}
    kinds = {column.name: "BIGINT" if column.type.python_type is int else "VARCHAR" for column in table.table.columns}
    terms = [
        f'"{name}" {"=" if name in keys else "IS NOT DISTINCT FROM"} ${place}::{kinds[name]}'
        for place, name in enumerate(columns, 1)
    ]
    return f"SELECT 1 FROM {table.table.name} WHERE {' AND '.join(terms)} FOR NO KEY UPDATE"  # noqa: S608
