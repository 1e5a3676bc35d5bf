"""Laws of a batch, for any operations: grouping changes nothing, repeating changes nothing, refusing changes nothing."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Generator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, select

from agent_core.limits.budgets import Amount, Pot
from agent_core.limits.spend import Budget
from agent_core.store import tables as t
from agent_core.store.batch.facts import Op
from agent_core.store.batch.transaction import carry_out
from agent_core.store.budgets.ops import Reserve, Settle
from agent_core.store.database.lines import _sqlite_engine
from agent_core.store.database.ownership import Who
from agent_core.store.errors import StoreError
from agent_core.store.inbox.ops import Accept, Drop, MoveCursor
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.memory.ops import DeleteMemory, PutMemory
from agent_core.store.sessions.ops import Claim
from agent_core.store.turns.ops import Append, Close, Start
from agent_core.store.turns.rows import IntendedCall, JournalRow, OpeningTurn
from tests import examples


def _dead(_conn: Connection, nodes: Collection[int]) -> frozenset[int]:
    return frozenset(nodes)


WHO = Who(1, _dead)
KEYS = st.sampled_from(["a", "b"])
SESSIONS = KEYS.map("s_{}".format)
TURNS = st.sampled_from(["t0", "t1", "t2"])
EPOCHS = st.sampled_from([1, 1, 1, 2])
BODIES = st.sampled_from([b"x", b"x", b"y"])
CALLS = st.sampled_from(["c0", "c1"])


def _rows(first: int, count: int, body: bytes) -> tuple[JournalRow, ...]:
    return tuple(JournalRow(first + number, "k", body, 1) for number in range(count))


def _accept(key: str, name: str, cursor: bool) -> Op[object]:
    return Accept(NewMessage("bot", name, key, "chat", b"hi", 1, ("room", name) if cursor else None, f"s_{key}"))


def _start(session: str, epoch: int, turn: str, ids: list[int], body: bytes) -> Op[object]:
    return Start(OpeningTurn(session, epoch, turn, (JournalRow(0, "k", body, 1),), 1, 2), tuple(ids))


def _intend(session: str, turn: str, rows: tuple[JournalRow, ...], call: str) -> Op[object]:
    return Append(session, 1, turn, rows, intended=(IntendedCall(call, "shell", "effect", "key"),))


POTS = st.lists(
    st.sampled_from(
        [
            Pot(Budget.PERSON, "person:p", 5, 9),
            Pot(Budget.DAY, "day:all", 5, 9, Amount(40), Amount(20)),
            Pot(Budget.TURN, "turn:t"),
        ]
    ),
    unique=True,
    max_size=3,
).map(tuple)
AMOUNTS = st.sampled_from([Amount(10, 1), Amount(10, 1), Amount(30, 2)])
MODEL_CALLS = st.sampled_from(["k0", "k1", "k2"])
ROWS = st.builds(_rows, st.integers(0, 3), st.integers(0, 3), BODIES)
OPS: st.SearchStrategy[Op[object]] = st.one_of(
    st.builds(_accept, KEYS, st.sampled_from(["m0", "m1", "m2", "m3"]), st.booleans()),
    st.builds(Claim, SESSIONS),
    st.builds(_start, SESSIONS, EPOCHS, TURNS, st.lists(st.integers(1, 4), max_size=2), BODIES),
    st.builds(Append, SESSIONS, EPOCHS, TURNS, ROWS),
    st.builds(_intend, SESSIONS, TURNS, ROWS, CALLS),
    st.builds(Close, SESSIONS, EPOCHS, TURNS, ROWS, st.sampled_from(["answered", "stopped"]), st.just(9)),
    st.builds(Drop, st.integers(1, 4), st.just("old")),
    st.builds(MoveCursor, st.just("bot"), st.sampled_from(["room", "hall"]), st.sampled_from(["1", "2"])),
    st.builds(PutMemory, st.just("me"), st.just("fact"), st.sampled_from(["p", "q"]), BODIES, st.integers(1, 3)),
    st.builds(Reserve, SESSIONS, EPOCHS, MODEL_CALLS, AMOUNTS, POTS, st.just(1)),
    st.builds(Settle, SESSIONS, EPOCHS, MODEL_CALLS, AMOUNTS, st.booleans(), POTS, st.just(2)),
    st.builds(DeleteMemory, st.just("me"), st.just("fact"), st.sampled_from(["p", "q"])),
)
BEGINNING: tuple[Op[object], ...] = (
    Accept(NewMessage("bot", "m0", "a", "chat", b"hi", 1, None, "s_a")),
    Accept(NewMessage("bot", "m1", "b", "chat", b"hi", 1, None, "s_b")),
    Claim("s_a"),
    Claim("s_b"),
)
"""So that most of what follows has something to be about."""


def _many(begun: bool, ops: list[Op[object]]) -> list[Op[object]]:
    return [*(BEGINNING if begun else ()), *ops]


MANY = st.builds(_many, st.booleans(), st.lists(OPS, max_size=25))


@contextlib.contextmanager
def database() -> Generator[Connection]:
    """An empty database in memory, with this node in it."""
    with in_memory() as conn:
        raw(conn).deserialize(empty())
        yield conn


@cache
def empty() -> bytes:
    with in_memory() as conn:
        t.metadata.create_all(conn)
        conn.execute(insert(t.nodes), {"node": 1, "name": "n", "started_at": 1, "version": "", "boot_id": ""})
        conn.commit()
        return raw(conn).serialize()


@contextlib.contextmanager
def in_memory() -> Generator[Connection]:
    engine = _sqlite_engine(Path(":memory:"))
    with engine.connect() as conn:
        yield conn
    engine.dispose()


def raw(conn: Connection) -> sqlite3.Connection:
    found = conn.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found


def content(conn: Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table.name: sorted(map(tuple, conn.execute(select(table))), key=repr) for table in t.metadata.sorted_tables}


def told(outcomes: Sequence[tuple[object, StoreError | None]]) -> list[object]:
    return [(result, type(refusal), str(refusal)) for result, refusal in outcomes]


@examples.MANY
@given(MANY, st.data())
def test_how_operations_are_grouped_changes_neither_answers_nor_tables(
    ops: list[Op[object]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(ops)))
    with database() as together, database() as apart:
        first = [*carry_out(together, [(op, None) for op in ops[:cut]], WHO)]
        first += carry_out(together, [(op, None) for op in ops[cut:]], WHO)
        second = [outcome for op in ops for outcome in carry_out(apart, [(op, None)], WHO)]
        assert told(first) == told(second)
        assert content(together) == content(apart)


@examples.MANY
@given(MANY)
def test_a_batch_that_is_repeated_answers_the_same_and_changes_nothing(ops: list[Op[object]]) -> None:
    with database() as conn, database() as trial:
        sound = [
            op
            for op, outcome in zip(ops, carry_out(trial, [(op, None) for op in ops], WHO), strict=True)
            if not outcome[1]
        ]
        answers = [result for result, _ in carry_out(conn, [(op, None) for op in sound], WHO)]
        before = content(conn)
        again = carry_out(conn, list(zip(sound, answers, strict=True)), WHO)
        assert content(conn) == before
        assert again == [(answer, None) for answer in answers]


@examples.MANY
@given(MANY, OPS)
def test_a_refused_operation_leaves_no_trace(ops: list[Op[object]], last: Op[object]) -> None:
    with database() as conn:
        carry_out(conn, [(op, None) for op in ops], WHO)
        before = content(conn)
        ((_, refusal),) = carry_out(conn, [(last, None)], WHO)
        if refusal is not None:
            assert content(conn) == before


def _all_of(kind: type[Op[Any]]) -> set[type[Op[Any]]]:
    return {one for found in kind.__subclasses__() for one in (found, *_all_of(found))}


def test_every_operation_decides() -> None:
    """Nothing else says so before one is carried out: an abstract class would cost a walk over all of them."""
    leaves = {one for one in _all_of(Op) if not one.__subclasses__()}
    assert len(leaves) > 20
    assert [one for one in leaves if not any("decide" in vars(each) for each in one.__mro__ if each is not Op)] == []
