"""A row of which nobody can make anything, in a list that everybody needs, holds up nobody else."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.store.database.shape import not_whole_on
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.keeping import forgetting as steps
from agent_core.store.keeping.forgetting import NOBODY_KNOWS, ForgettingJob
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.store.reading import open_reads
from agent_core.store.slices.rows import PeerNode
from agent_core.store.slices.sql import peer
from agent_core.store.store import StorageUnavailable, Store
from agent_core.store.troubles.rows import IncidentRow, IncidentState
from gateway.explain.story import Explainer
from tests.databases import connected
from tests.store.support import opened, turn_of

TRIGGER = """
CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER skips BEFORE INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION no()
"""
ADA, BOB = ("telegram/1", "ada"), ("telegram/1", "bob")


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


async def by_hand(where: str, statement: str) -> None:
    """As somebody does with the database's own tools."""
    if "://" in where:
        conn = await connected(where)
        await conn.execute(statement)
        await conn.close()
        return
    with closing(sqlite3.connect(where)) as db, db:
        db.execute(statement)


async def test_of_whom_nobody_can_say_what_they_may_do_they_may_do_nothing_and_others_what_they_might(
    store: Store, where: str
) -> None:
    for account, person in (ADA, BOB):
        await store.people.put(PersonRow(account, person, PersonState.APPROVED))
    await by_hand(where, "UPDATE people SET state = 'perhaps' WHERE person = 'ada'")
    assert {one.person: one.state for one in await store.people.all()} == {
        "ada": PersonState.REVOKED, "bob": PersonState.APPROVED,
    }  # fmt: skip
    assert [one.state for one in await store.people.these([ADA])] == [PersonState.REVOKED]
    assert store.left_out("people")


async def test_who_asked_a_turn_that_cannot_be_read_keeps_nobody_else_from_being_forgotten(
    store: Store, where: str
) -> None:
    (*_, theirs), (*_, others) = await turn_of(store, "one"), await turn_of(store, "two")
    await by_hand(where, f"""UPDATE turns SET people = '[["telegram/1","ada"]]' WHERE turn = '{theirs}'""")
    await by_hand(where, f"UPDATE turns SET people = '{{{{' WHERE turn = '{others}'")
    found, _ = await store.forgotten.turns(ForgettingJob("f_1", (ADA,), 10**15, None), 10, "")
    assert [one.turn for one in found] == [theirs]
    assert [one.person for one in await store.people.spoke()] == ["ada"]
    assert steps.people_of("{{") == {NOBODY_KNOWS}


async def test_a_job_that_cannot_be_read_holds_up_no_other(store: Store, where: str) -> None:
    for number, who in enumerate((ADA, BOB)):
        await store.keeping.remove(steps.begin(ForgettingJob(f"f_{number}", (who,), number, None)))
    await by_hand(where, "UPDATE forgets SET who = '{{' WHERE forget = 'f_0'")
    assert [one.forget for one in await store.forgotten.jobs()] == ["f_1"]
    assert store.left_out("forgets")


async def test_an_incident_in_no_state_hides_no_other(store: Store, where: str) -> None:
    for number in (1, 2):
        await store.troubles.put_incident(
            IncidentRow(f"i_{number}", f"f{number}", IncidentState.OPEN, "stalled", "", "", "", 1, 1)
        )
    await by_hand(where, "UPDATE incidents SET state = 'perhaps' WHERE incident = 'i_1'")
    assert [one.incident for one in await store.troubles.incidents(open_only=False)] == ["i_2"]


async def test_a_text_where_a_number_belongs_is_told_and_the_rest_of_the_story_is_shown(tmp_path: Path) -> None:
    """SQLite keeps one; a server does not let anybody write it."""
    where = str(tmp_path / "store.db")
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        part = DeliveryRow("telegram/1/7/", turn, "answer", 0, 1, b"{}", "h", "k", at=1)
        await store.deliveries.put(session, epoch, [part])
        assert not (await Explainer(store, lambda: 1).of(turn)).also
        for table, column, what in (
            ("turns", "opened_at", "the row of turn"), ("turns", "deadline", "the row of turn"),
            ("deliveries", "at", "what was shown of turn"), ("inbox", "received_at", "what turn"),
        ):  # fmt: skip
            await by_hand(where, f"UPDATE {table} SET {column} = 'soon'")
            story = await Explainer(store, lambda: 1).of(turn)
            assert story.head.startswith(f"Turn {turn}"), (table, column)
            assert [one for one in story.also if one.startswith(what)], (table, column, story.also)
            await by_hand(where, f"UPDATE {table} SET {column} = 1")


@pytest.mark.parametrize("said", ["{{", "5", "null", '["telegram/1"', ""])
def test_a_gateway_of_which_nobody_can_read_what_it_serves_is_there_all_the_same(said: str) -> None:
    assert peer((1, "http://here", "0.1", 5, said)) == PeerNode(1, "http://here", "0.1", 5, None)


@pytest.mark.parametrize(
    ("done", "told"),
    [
        ("SELECT 1", ""),
        ("DROP INDEX one_open", "it lacks index one_open of turns"),
        (
            "ALTER TABLE inbox DROP CONSTRAINT uq_inbox_account_platform_key",
            "it lacks index uq_inbox_account_platform_key of inbox",
        ),
        ("ALTER TABLE deliveries DROP COLUMN trouble", "it lacks the column trouble of deliveries"),
        ("DROP TABLE gates", "it lacks the table gates"),
        ("ALTER TABLE turns ADD dba text", ""),
        (
            "ALTER TABLE turns ADD dba text NOT NULL",
            "it has the column dba of turns, which has to be filled and which it does not know",
        ),
        (
            TRIGGER,
            "it has the trigger skips of inbox",
        ),
        (f"{TRIGGER}; ALTER TABLE inbox ENABLE REPLICA TRIGGER skips", ""),
        (f"CREATE TABLE theirs (id int); {TRIGGER}".replace("ON inbox", "ON theirs"), ""),
        ("ALTER TABLE turns ADD dba bigint GENERATED ALWAYS AS IDENTITY", ""),
        ("ALTER TABLE turns ADD dba bigint NOT NULL GENERATED ALWAYS AS (number + 1) STORED", ""),
    ],
)
async def test_what_somebody_else_changed_of_a_servers_tables_is_named(postgres: str, done: str, told: str) -> None:
    await by_hand(postgres, done)
    async with open_reads(postgres) as reads:
        assert await reads.asks.readers.run(not_whole_on) == told


@pytest.mark.parametrize(
    "done",
    [
        "ALTER TABLE deliveries DROP CONSTRAINT uq_deliveries_surface_origin_bubble_part",
        "ALTER TABLE deliveries DROP COLUMN trouble",
        "DROP TABLE deliveries",
    ],
)
async def test_what_cannot_be_stored_since_somebody_changed_the_tables_waits(postgres: str, done: str) -> None:
    """For a mistake of the turn's it would be taken, which is given up, or asked of the model again and again."""
    async with opened(postgres) as store:
        session, epoch, turn = await turn_of(store)
        await by_hand(postgres, done)
        with pytest.raises(StorageUnavailable):
            await store.deliveries.put(
                session, epoch, [DeliveryRow("telegram/1/7", turn, "answer", 0, 1, b"", "h", "k")]
            )
