"""Who asks a file: no connection outlives those who ask."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from agent_core.store.database.lines import sqlite_readers


@pytest.mark.parametrize("begun", [True, False])
async def test_what_is_still_asked_when_all_are_closed_leaves_no_connection_open(begun: bool, tmp_path: Path) -> None:
    """`begun`, or its thread comes to it only afterwards."""
    readers, go_on, there = sqlite_readers(tmp_path / "db"), threading.Event(), threading.Event()
    opened: list[object] = []

    def connected(conn: object, _entry: object) -> None:
        opened.append(conn)

    def closed(conn: object, _entry: object) -> None:
        opened.remove(conn)

    event.listen(readers.engine, "connect", connected)
    event.listen(readers.engine, "close", closed)

    def ask(conn: Connection) -> object:
        there.set()
        go_on.wait(60)
        return conn.exec_driver_sql("SELECT 1").scalar_one()

    with ThreadPoolExecutor(1) as thread:
        readers._threads = thread
        if not begun:
            thread.submit(go_on.wait, 60)
        asked = asyncio.create_task(readers.run(ask))
        await (asyncio.to_thread(there.wait, 60) if begun else asyncio.sleep(0.01))
        await readers.dispose()
        go_on.set()
        assert await asked == 1
    assert opened == []
