"""An upgrade beside gateways that serve: each waits for rows of the other, and PostgreSQL ends one of the two; and one in which a start is silent for too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from agent_core.store.database import lines, ownership, upgrade
from agent_core.store.database.ownership import Serves
from agent_core.store.errors import StorageUnavailable
from agent_core.store.store import open_store
from tests.databases import connected
from tests.store.support import IDS, FakeClock, opened, session_of

LOCKED = "SELECT count(*) FROM pg_locks WHERE NOT granted"


async def _until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


async def test_an_upgrade_that_a_gateway_stands_in_the_way_of_is_begun_again(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0

    def upgraded(conn: Connection, _shown: str) -> None:
        nonlocal begun
        begun += 1
        conn.exec_driver_sql("LOCK TABLE inbox IN ACCESS EXCLUSIVE MODE")
        conn.exec_driver_sql("LOCK TABLE turns IN ACCESS EXCLUSIVE MODE")

    monkeypatch.setattr(upgrade, "NEWEST", "9001")
    monkeypatch.setattr(upgrade, "upgrade_to", upgraded)
    serves, looks = await connected(postgres), await connected(postgres)
    try:
        await serves.execute("SET deadlock_timeout = '60s'")  # the other one finds it, and is ended
        await serves.execute("BEGIN; LOCK TABLE turns IN ROW EXCLUSIVE MODE")

        async def start() -> None:
            async with opened(postgres):
                pass

        starting = asyncio.create_task(start())
        await _until(lambda: looks.fetchval(LOCKED))
        await serves.execute("LOCK TABLE inbox IN ROW EXCLUSIVE MODE; COMMIT")
        await starting
    finally:
        await serves.close()
        await looks.close()
    assert begun == 2


async def test_an_upgrade_takes_as_long_as_the_server_works_on_it(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index of a large table is made in minutes, and whoever comes second waits for all of it."""
    begun = 0

    def upgraded(conn: Connection, _shown: str) -> None:
        nonlocal begun
        begun += 1
        conn.exec_driver_sql("SELECT pg_sleep(0.4)")

    monkeypatch.setattr(upgrade, "NEWEST", "9001")
    monkeypatch.setattr(upgrade, "upgrade_to", upgraded)
    monkeypatch.setattr(lines, "UNHEARD_SECONDS", 0.2)
    async with opened(postgres):
        assert begun == 1


@pytest.mark.usefixtures("short_lease")
@pytest.mark.parametrize("serves", [*Serves])
@pytest.mark.parametrize("first", [1, 2])
async def test_a_start_whose_loop_is_held_while_it_upgrades_goes_on_with_a_new_pulse(
    serves: Serves, first: int, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has ended a connection that was silent for too long, and nobody else has come meanwhile."""
    held = 0

    def upgraded(conn: Connection, _shown: str) -> None:
        nonlocal held
        held += 1
        conn.exec_driver_sql("CREATE TABLE held (at integer)")
        if held <= first:
            time.sleep(ownership.LEASE_SECONDS + 0.5)
        conn.exec_driver_sql("INSERT INTO held VALUES (1)")

    monkeypatch.setattr(upgrade, "NEWEST", "9001")
    monkeypatch.setattr(upgrade, "upgrade_to", upgraded)
    clock = FakeClock()
    async with open_store(postgres, clock=clock, ids=IDS, version="test", serves=serves) as store:
        session, epoch = await session_of(store)
        assert store.ownership.lease_ok()
        assert await store.sessions.claim(session) == epoch
        looks = await connected(postgres)
        try:
            assert await looks.fetchval("SELECT count(*) FROM held") == 1
            numbers = (
                "SELECT objid FROM pg_locks JOIN pg_database ON oid = database AND datname = current_database() "
                f"WHERE locktype = 'advisory' AND classid = {ownership.LOCK_SPACE >> 32}"
            )
            has = {int(row[0]) for row in await looks.fetch(numbers)}
            assert has == {store.node} | ({ownership.GATEWAY} if serves is not Serves.NOT else set())
        finally:
            await looks.close()


@pytest.mark.usefixtures("short_lease")
async def test_a_start_that_lost_its_pulse_and_its_place_to_another_gateway_ends(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await connected(postgres)

    def upgraded(_conn: Connection, _shown: str) -> None:
        time.sleep(ownership.LEASE_SECONDS + 0.5)

    async def connect(one: ownership.PulseLock) -> None:
        if one._pid:  # it was lost, and somebody else is quicker
            await other.execute(f"SELECT pg_advisory_lock({ownership.LOCK_SPACE + ownership.GATEWAY})")
        await plain(one)

    plain = ownership.PulseLock.connect
    monkeypatch.setattr(ownership.PulseLock, "connect", connect)
    monkeypatch.setattr(upgrade, "NEWEST", "9001")
    monkeypatch.setattr(upgrade, "upgrade_to", upgraded)
    try:
        with pytest.raises(StorageUnavailable):
            async with open_store(postgres, clock=FakeClock(), ids=IDS, version="test", serves=Serves.ALONE):
                pass
    finally:
        await other.close()
