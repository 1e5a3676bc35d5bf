"""An upgrade beside gateways that serve: each waits for rows of the other, and PostgreSQL ends one of the two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection

from agent_core.store.database import upgrade
from tests.databases import connected
from tests.store.support import opened

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
