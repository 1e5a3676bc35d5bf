"""Statements that go to the driver themselves: what is stored and found is the same as by SQLAlchemy's own way, and an error is the same error."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, bindparam, create_engine, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, PendingRollbackError

from agent_core.store import tables as t
from agent_core.store.budgets.sql import _POTS
from agent_core.store.database import direct
from agent_core.store.database.keys import among, padded
from agent_core.store.database.trouble import Blame, blame, cannot_open, in_words
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import CannotOpenNow
from agent_core.store.inbox.rows import InboxState
from agent_core.store.inbox.sql import BY_ID, BY_KEY, HIGHEST_ID
from agent_core.store.turns.rows import OpeningTurn
from agent_core.store.turns.sql import TURNS
from tests.store.support import message as new_message
from tests.store.support import opened, row

OTHER = t.inbox.alias("other")
DONE = (
    update(t.inbox)
    .where(t.inbox.c.id.in_(select(OTHER.c.id).where(OTHER.c.turn == bindparam("which"))))
    .values(state=InboxState.DONE.value)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
VALUES = st.tuples(TEXTS, TEXTS, st.binary(max_size=5), st.none() | TEXTS, st.integers(-(2**63), 2**63 - 1))


@pytest.fixture(scope="module")
def conn() -> Generator[Connection]:
    engine = create_engine("sqlite://")
    t.metadata.create_all(engine)
    with engine.connect() as made:
        yield made
    engine.dispose()


def message(number: int, values: tuple[Any, ...]) -> dict[str, object]:
    account, key, body, reason, at = values
    return {
        "id": number, "account": account, "platform_key": f"{number}{key}", "session": "s", "arrival": number, "lane": "normal",
        "body": body, "state": "new", "reason": reason, "received_at": at, "suspicion": 0, "person": "",
    }  # fmt: skip


def plainly(conn: Connection, query: Any, keys: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in conn.execute(query, {"keys": keys} if keys else {})]


@given(st.lists(VALUES, min_size=1, max_size=9), st.data())
def test_what_is_stored_and_found_is_the_same_either_way(
    conn: Connection, found: list[tuple[Any, ...]], data: st.DataObject
) -> None:
    rows = [message(number, values) for number, values in enumerate(found, 1)]
    with conn.begin() as now:
        direct.do(conn, t.MESSAGE.insert, rows)
        mine = plainly(conn, t.MESSAGE.query.order_by(t.inbox.c.id))
        now.rollback()
    with conn.begin() as now:
        conn.execute(t.MESSAGE.insert, rows)
        assert plainly(conn, t.MESSAGE.query.order_by(t.inbox.c.id)) == mine
        names = [(row["account"], row["platform_key"]) for row in rows]
        for keys in padded(data.draw(st.lists(st.sampled_from(names), min_size=1))):
            assert sorted(direct.found(conn, BY_KEY, keys)) == sorted(plainly(conn, BY_KEY, keys))
        for keys in padded(data.draw(st.lists(st.integers(0, 12), min_size=1))):
            assert list(direct.found(conn, BY_ID, keys)) == plainly(conn, BY_ID, keys)
        assert list(direct.found(conn, HIGHEST_ID)) == plainly(conn, HIGHEST_ID) == [(len(rows),)]
        assert list(direct.found(conn, TURNS, ["a", "b"])) == []
        assert list(direct.found(conn, _POTS, [("a", 1), ("b", 2)])) == []
        now.rollback()


def test_values_that_are_always_the_same_stand_in_their_places_around_the_keys(conn: Connection) -> None:
    c = t.inbox.c
    query = (
        select(c.id, c.lane)
        .where(c.lane == "normal", c.id.in_(bindparam("keys", expanding=True)), c.state == "new")
        .limit(2)
    )
    named = select(c.id).where(
        c.lane != "x", among((c.account, c.platform_key), bindparam("keys", expanding=True)), c.arrival > 0
    )
    with conn.begin() as now:
        direct.do(conn, t.MESSAGE.insert, [message(n, ("a", "k", b"", None, n)) for n in range(1, 6)])
        assert (
            list(direct.found(conn, query, [1, 2, 3, 7]))
            == plainly(conn, query, [1, 2, 3, 7])
            == [(1, "normal"), (2, "normal")]
        )
        assert list(direct.found(conn, named, [("a", "4k"), ("b", "5k")])) == [(4,)]
        now.rollback()


def test_a_change_writes_what_it_names_and_what_is_always_the_same(conn: Connection) -> None:
    with conn.begin() as now:
        direct.do(conn, t.MESSAGE.insert, [message(n, ("a", "k", b"", None, n)) for n in (1, 2)])
        direct.do(conn, t.MESSAGE.update(("turn",)), [{"which_id": 2, "new_turn": "t"}])
        direct.do(conn, DONE, [{"which": "t"}])
        direct.do(
            conn, t.MESSAGE.update(("reason", "suspicion")), [{"which_id": 1, "new_reason": "r", "new_suspicion": 3}]
        )
        c = t.inbox.c
        assert plainly(conn, select(c.id, c.state, c.reason, c.suspicion).order_by(c.id)) == [
            (1, InboxState.NEW.value, "r", 3), (2, InboxState.DONE.value, None, 0)
        ]  # fmt: skip
        now.rollback()


def test_an_error_is_sqlalchemys_with_the_drivers_inside_and_without_a_value(conn: Connection, tmp_path: Path) -> None:
    with conn.begin() as now:
        direct.do(conn, t.MESSAGE.insert, [message(1, ("secret", "k", b"", None, 1))])
        with pytest.raises(IntegrityError) as broken:
            direct.do(conn, t.MESSAGE.insert, [message(1, ("secret", "k", b"", None, 1))])
        assert blame(broken.value) is Blame.MOMENT
        assert "secret" not in str(broken.value)
        now.rollback()
    (tmp_path / "full.db").touch()
    full = create_engine(f"sqlite:///{tmp_path / 'full.db'}")
    with full.connect() as there, there.begin():
        with pytest.raises(OperationalError) as missing:
            direct.found(there, HIGHEST_ID)
        assert isinstance(missing.value.orig, sqlite3.OperationalError)
        t.metadata.create_all(there)
        pages = cast("int", there.exec_driver_sql("PRAGMA page_count").scalar_one())
        there.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DBAPIError) as no_room:
            direct.do(there, t.MESSAGE.insert, [message(1, ("a", "k", b"x" * 100_000, None, 1))])
        assert blame(no_room.value) is Blame.STORAGE
    full.dispose()


async def test_a_turn_finds_all_its_texts_made(sqlite: str) -> None:
    async with opened(sqlite) as store:
        for prepare in store.preparing():
            prepare()
        before = direct._question.cache_info().misses, direct._change.cache_info().misses
        new = new_message("m", "chat1")
        epoch = 1
        begins = OpeningTurn(new.new_session_id, epoch, "t_1", (row(0),), 100, 200)
        accepted = await store.inbox.accept(new, begins)
        assert accepted.started
        part = DeliveryRow("telegram/1/7", "t_1", "answer", 0, 1, b"text", "h", "t_1/0")
        await store.turns.close(
            accepted.session, epoch, "t_1", [row(1)], "answered", 9, [part], (3, 4), by=("model", "key")
        )
        later = await store.inbox.accept(new_message("n", "chat1"))
        await store.turns.start(later.session, epoch, "t_2", [later.inbox_id], row(0), 90_000, 200)
        assert (direct._question.cache_info().misses, direct._change.cache_info().misses) == before


def test_a_connection_that_was_found_to_be_gone_is_the_storages_fault() -> None:
    engine = create_engine("sqlite://")
    with engine.connect() as conn:
        conn.begin()
        conn.invalidate()
        with pytest.raises(PendingRollbackError) as gone:
            _ = conn.connection
    assert blame(gone.value) is Blame.STORAGE
    assert in_words(gone.value) == "the connection was lost"


class Complaint(Exception):
    """What a server says, as its driver raises it."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


@pytest.mark.parametrize(
    ("sqlstate", "whose"),
    [
        ("40001", Blame.MOMENT), ("40P01", Blame.MOMENT), ("55P03", Blame.MOMENT), ("57014", Blame.STORAGE),
        ("53100", Blame.STORAGE), ("55000", Blame.STORAGE), ("XX001", Blame.ROWS), ("22001", Blame.OPERATION),
    ],
)  # fmt: skip
def test_what_a_server_complains_of_is_the_storages_the_moments_or_the_one_operations(
    sqlstate: str, whose: Blame
) -> None:
    assert blame(DBAPIError("SELECT 1", None, Complaint(sqlstate))) is whose


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_database_for_which_there_is_no_room_may_be_opened_later_and_what_helps_is_said(number: int) -> None:
    told = cannot_open(OSError(number, "full", "/state/db"), "/state/db")
    assert isinstance(told, CannotOpenNow)
    assert "Free some space" in str(told)
