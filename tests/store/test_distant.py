"""A batch in two ways there and back: how many they are, that what changed meanwhile is not written over, and that all comes out as by a transaction."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.util import await_only

from agent_core.store import store as stores
from agent_core.store import tables
from agent_core.store.batch import distant
from agent_core.store.batch.facts import Facts, InboxFact
from agent_core.store.database import direct, mapping
from agent_core.store.database.mapping import Mapped
from agent_core.store.deliveries import sql as deliveries
from agent_core.store.errors import Fenced
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.store import Store
from tests.databases import connected
from tests.gateway import rig as rigs
from tests.gateway.rig import chunk, gateway
from tests.store.support import message, opened, row, session_of, turn_of
from tests.wire import cable

ACCEPT_MOST, TURN_MOST = 2, 6
CABLE_SECONDS = 0.01
"""One way."""


async def hello(_: list[dict[str, Any]], response: web.StreamResponse, __: web.Request) -> None:
    await response.write(chunk({"content": "Hello there."}, "stop"))


async def test_a_message_costs_two_ways_and_a_plain_turn_six_however_long_they_are(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = stores.open_store
    with cable(postgres, CABLE_SECONDS) as (url, way):

        def there(_: Any, **more: Any) -> Any:
            return plain(url, **more)

        monkeypatch.setattr(rigs, "open_store", there)

        async def asked(one: rigs.Rig) -> tuple[int, float, int, float]:
            pulses = {port for port in way.questions if port in await backends(postgres, "pulse")}

            def ways() -> int:
                return sum(count for port, count in way.questions.items() if port not in pulses)

            before, began = ways(), time.monotonic()
            ticket = await one.hub.accept(one.inbound("hello"))
            accepted, accepted_at = ways() - before, time.monotonic() - began
            await one.end(ticket)
            return accepted, accepted_at, ways() - before, time.monotonic() - began

        async with gateway(tmp_path, hello) as one:
            for _ in range(6):
                await one.say("hello")
            await asyncio.sleep(1.5)  # what looks around after a start has done so
            found = [await asked(one) for _ in range(5)]
    accepted, accepted_at, whole, whole_at = (min(numbers) for numbers in zip(*found, strict=True))
    print(
        f"a message: {accepted} ways, {accepted_at * 1000:.0f} ms; its turn with it: {whole} ways, {whole_at * 1000:.0f} ms; "
        f"each way there and back takes {CABLE_SECONDS * 2000:.0f} ms"
    )
    assert accepted <= ACCEPT_MOST
    assert whole <= TURN_MOST


async def backends(postgres: str, name: str) -> set[int]:
    conn = await connected(postgres)
    try:
        rows = await conn.fetch(
            "SELECT client_port FROM pg_stat_activity WHERE application_name LIKE $1", f"outspoken {name}%"
        )
        return {int(one[0]) for one in rows if one[0] is not None}
    finally:
        await conn.close()


def meddle(monkeypatch: pytest.MonkeyPatch, postgres: str, statement: str) -> list[int]:
    """Once, between reading and writing, somebody else writes. How often a batch was decided."""
    plain, decisions = distant._Distant.write, list[int]()

    async def meddled() -> None:
        conn = await connected(postgres)
        await conn.execute(statement)
        await conn.close()

    def write(one: Any, unchanged: Any) -> None:
        decisions.append(len(unchanged))
        if len(decisions) == 1:
            await_only(meddled())
        plain(one, unchanged)

    monkeypatch.setattr(distant._Distant, "write", write)
    return decisions


async def test_who_is_fenced_off_between_reading_and_writing_writes_nothing(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store:
        session, epoch, turn = await turn_of(store)
        decisions = meddle(monkeypatch, postgres, f"UPDATE sessions SET epoch = epoch + 1 WHERE session = '{session}'")
        with pytest.raises(Fenced):
            await store.turns.append(session, epoch, turn, [row(1)])
        assert len(decisions) == 1, "then it locks before it reads"
        assert len(await store.turns.journal(turn)) == 1


async def test_a_message_that_another_node_stores_meanwhile_is_one(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store, opened(postgres) as other:
        session, _ = await session_of(store)
        theirs = await other.inbox.accept(message("there"))
        decisions = meddle(
            monkeypatch,
            postgres,
            "INSERT INTO inbox (id, account, platform_key, session, arrival, lane, body, state, received_at, suspicion, person) "
            f"SELECT id + 1000, account, 'both', '{session}', arrival + 1000, lane, body, state, received_at, 0, '' FROM inbox WHERE id = {theirs.inbox_id}",
        )
        ours = await store.inbox.accept(message("both"))
        assert (ours.duplicate, ours.inbox_id, len(decisions)) == (True, theirs.inbox_id + 1000, 1)


async def test_a_message_that_is_dropped_meanwhile_starts_no_turn(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres) as store:
        session, epoch = await session_of(store)
        waiting = await store.inbox.accept(message("w"))
        meddle(monkeypatch, postgres, f"UPDATE inbox SET state = 'dropped' WHERE id = {waiting.inbox_id}")
        with pytest.raises(stores.Conflict, match="dropped"):
            await store.turns.start(session, epoch, "t", [waiting.inbox_id], row(0), 1, 2)


async def test_without_a_function_of_its_own_a_connection_writes_as_ever(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database may not let us make one."""
    monkeypatch.setattr(distant, "WRITE", "CREATE FUNCTION nowhere.to_be() RETURNS void LANGUAGE sql AS 'SELECT 1'")
    async with opened(postgres) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1)])
        assert len(await store.turns.journal(turn)) == 2


async def test_a_commit_whose_answer_is_lost_is_answered_once(postgres: str) -> None:
    """The wire is cut when what is to be written has gone out; what was stored is found again."""
    with cable(postgres, 0.005) as (url, way):
        async with opened(url) as store:
            session, epoch, turn = await turn_of(store)
            for number in range(1, 8):
                cutting = asyncio.get_running_loop().call_later(0.001 * number * 2, way.cut)
                await _appended(store, session, epoch, turn, number)
                cutting.cancel()
            assert [one.seq for one in await store.turns.journal(turn)] == list(range(8))


async def _appended(store: Store, session: str, epoch: int, turn: str, number: int) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                return await store.turns.append(session, epoch, turn, [row(number)])
            except stores.StorageUnavailable:
                await asyncio.sleep(0.05)


def test_every_statement_that_a_batch_may_write_can_be_given_to_the_function() -> None:
    dialect = asyncpg.dialect()
    every: list[Mapped[Any]] = [one for one in vars(tables).values() if isinstance(one, Mapped)]
    for table in every:
        columns = [column.name for column in table.table.columns]
        changed = [f"which_{column.name}" for column in table.table.primary_key] + [f"new_{one}" for one in table.names]
        put = mapping._upsert(table.table, table.identity, table.fixed, "postgresql")
        for statement, names in ((table.insert, columns), (put, columns), (table.update(table.names), changed)):
            sql, _ = direct.told(statement, [dict.fromkeys(names)], dialect)
            assert "$3" not in distant._dynamic(sql)
    parts = [*tables.PART.names, "session", "epoch"]
    sql, _ = direct.told(deliveries.put("postgresql"), [dict.fromkeys(parts)], dialect)
    assert "$3" not in distant._dynamic(sql)


def test_only_stored_messages_that_change_must_be_as_they_were_read() -> None:
    facts = Facts(1)
    for number in range(4):
        read = InboxRow(number, "a", f"k{number}", "s", number, "", b"{}", InboxState.NEW, None, 0)
        facts.inbox[number] = InboxFact(read, read if number < 3 else None)
    facts.inbox[1].change(state=InboxState.DROPPED)
    facts.inbox[2].change(state=InboxState.TAKEN, turn="t")
    facts.inbox[3].change(state=InboxState.TAKEN, turn="t")  # new: nobody has read it
    read_as = (distant.stored(InboxState.NEW), None)
    assert [(one.values[0], one.values[1:]) for one in distant.checks(facts)] == [(1, read_as), (2, read_as)]
