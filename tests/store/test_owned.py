"""What a node has kept of its own sessions and turns changes no answer and no row, and hides nobody else's write."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from agent_core.store import tables as t
from agent_core.store.batch import owned as module
from agent_core.store.batch.facts import Op
from agent_core.store.batch.owned import Owned
from agent_core.store.batch.transaction import NotAllNew, carry_out
from agent_core.store.database.lines import SqliteLine
from agent_core.store.errors import Conflict, Fenced, StorageUnavailable
from agent_core.store.sessions.rows import ONCE
from agent_core.store.turns.rows import IntendedCall
from tests import examples
from tests.store.support import message, opened, row, session_of, started, turn_of
from tests.store.test_batches import MANY, WHO, content, database, raw, told

HAPPENS = st.sampled_from(["committed", "committed", "committed", "rolled back", "written beside"])


@examples.MANY
@given(MANY, st.data())
def test_with_what_is_kept_all_is_answered_and_stored_as_without(ops: list[Op[object]], data: st.DataObject) -> None:
    kept, most = Owned(), data.draw(st.sampled_from([1, 2, 100]))
    with database() as one, database() as other, mock.patch.object(module, "MOST", most):
        while ops:
            some, ops = ops[: (cut := data.draw(st.integers(1, 3)))], ops[cut:]
            batch = [(op, None) for op in some]
            happens = data.draw(HAPPENS)
            for conn in (one, other):
                conn.begin()  # as the writer does: where nothing has to be asked, nothing else would begin it
            try:
                first = carry_out(one, batch, WHO, kept, trusting=True)
            except NotAllNew:  # as the writer does it
                one.rollback()
                one.begin()
                first = carry_out(one, batch, WHO, kept)
            second = carry_out(other, batch, WHO)
            assert told(first) == told(second)
            if happens == "rolled back":
                one.rollback()
                other.rollback()
                kept.forget()
                continue
            one.commit()
            other.commit()
            kept.keep()
            if happens == "written beside":
                for conn in (one, other):
                    conn.exec_driver_sql("UPDATE sessions SET epoch = epoch + 1")
                    conn.commit()
                kept.forget()
        assert content(one) == content(other)


async def test_a_session_and_a_turn_of_this_node_are_not_read_again(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        said: list[str] = []
        await store.writer.alone(lambda conn: raw(conn).set_trace_callback(said.append))
        await store.turns.append(session, epoch, turn, [row(1)])  # what is written beside the batches forgets all
        said.clear()
        call = IntendedCall("c", "shell", "effect", "key")
        await store.turns.intend(session, epoch, turn, [row(2)], [call])
        await store.turns.append(session, epoch, turn, [row(3)])
        await store.turns.close(session, epoch, turn, [row(4)], "answered", 9)
        again = await store.inbox.accept(message("next"))
        await started(store, again, epoch)
        asked = [one for one in said if one.startswith("SELECT")]
        assert not [one for one in asked if "FROM sessions" in one or "FROM turns" in one.partition("WHERE")[0]], asked


async def test_a_turn_that_was_closed_is_known_to_be_so_by_whoever_comes_late(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1)])
        await store.turns.close(session, epoch, turn, [row(2)], "answered", 9)
        call = IntendedCall("c", "shell", "effect", "key")
        with pytest.raises(Conflict):
            await store.turns.append(session, epoch, turn, [row(3)])
        with pytest.raises(Conflict):
            await store.turns.intend(session, epoch, turn, [], [call])
        assert [one.seq for one in await store.turns.journal(turn)] == [0, 1, 2]


async def test_of_single_requests_nothing_is_kept_once_they_are_answered(sqlite: str) -> None:
    kept = Owned()
    with mock.patch("agent_core.store.store.Owned", return_value=kept):
        async with opened(sqlite) as store:
            for number in range(3):
                session, epoch = await session_of(store, f"{ONCE}x{number}")
                assert session in held(kept), "until then it is"
                session, epoch, turn = await turn_of(store, f"{ONCE}y{number}")
                await store.turns.close(session, epoch, turn, [row(1)], "answered", 9)
                assert session not in held(kept)
            session, epoch, turn = await turn_of(store)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", 9)
            assert session in held(kept), "a conversation goes on"


def held(kept: Owned) -> dict[str, object]:
    return {**vars(kept)["_sessions"]}


async def test_a_message_that_is_new_asks_nothing_of_the_database(sqlite: str) -> None:
    async with opened(sqlite) as store:
        said: list[str] = []
        await store.writer.alone(lambda conn: raw(conn).set_trace_callback(said.append))
        await store.inbox.accept(message("first"))  # what is written beside the batches forgets all
        said.clear()
        for number in range(3):
            await store.inbox.accept(message(f"m{number}", session_key=f"k{number}"))
        assert not [one for one in said if one.startswith("SELECT") and "FROM inbox" in one], said


async def test_a_message_that_came_before_is_known_again_among_new_ones(sqlite: str) -> None:
    async with opened(sqlite) as store:
        first = await store.inbox.accept(message("first"))
        many = [message(f"m{number}") for number in range(5)] + [message("first"), message("m2")]
        accepted = await asyncio.gather(*(store.inbox.accept(one) for one in many))
        assert [one.duplicate for one in accepted] == [False] * 5 + [True, True]
        assert accepted[5].inbox_id == first.inbox_id
        assert [one.inbox_id for one in accepted[:5]] == [first.inbox_id + n for n in range(1, 6)]


@pytest.mark.parametrize("first", ["", "another turn", "a message", "a message of it"])
async def test_what_another_connection_wrote_is_seen_before_anything_is_decided(sqlite: str, first: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        other = await turn_of(store, "another")
        await store.turns.append(session, epoch, turn, [row(1)])
        with closing(sqlite3.connect(sqlite)) as conn:
            conn.execute("UPDATE sessions SET epoch = epoch + 1 WHERE session = ?", (session,))
            conn.commit()
        match first:  # what is written first for something else makes nobody forget that
            case "another turn":
                await store.turns.append(*other, [row(1)])
            case "a message":
                await store.inbox.accept(message("m", "third"))
            case "a message of it":
                await store.inbox.accept(message("m"))
            case _:
                pass
        with pytest.raises(Fenced):
            await store.turns.append(session, epoch, turn, [row(2)])
        assert [one.seq for one in await store.turns.journal(turn)] == [0, 1]


async def test_what_was_written_beside_the_batches_is_seen(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1)])
        await store.writer.alone(
            lambda conn: (
                conn.execute(update(t.sessions).where(t.sessions.c.session == session).values(epoch=9)).rowcount
            )
        )
        with pytest.raises(Fenced):
            await store.turns.append(session, epoch, turn, [row(2)])


async def test_a_commit_that_failed_leaves_nothing(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(sqlite) as store:
        session, epoch, turn = await turn_of(store)

        def refuse(*_: object) -> None:
            raise OSError("no")

        with monkeypatch.context() as broken:
            broken.setattr(SqliteLine, "_note", refuse)  # after the commit: nobody knows whether it took place
            with pytest.raises(StorageUnavailable):
                await store.turns.append(session, epoch, turn, [row(1)])
        await store.turns.append(session, epoch, turn, [row(1), row(2)])
        assert [one.seq for one in await store.turns.journal(turn)] == [0, 1, 2]
