"""Of how many bytes a file's pages are, and when its log is copied."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.database.lines import CHECKPOINT_BYTES, PAGE_BYTES
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.store import open_store


@pytest.mark.parametrize("page", [PAGE_BYTES, 1024, 4096])
async def test_a_file_keeps_its_pages_and_its_log_never_grows_far_beyond_its_limit(tmp_path: Path, page: int) -> None:
    file = tmp_path / "pages.db"
    if page != PAGE_BYTES:  # made by an earlier version
        with closing(sqlite3.connect(file)) as conn:
            conn.execute(f"PRAGMA page_size = {page}")
            conn.execute("VACUUM")
    clock, largest = SystemClock(), 0
    async with open_store(file, clock=clock, ids=SystemIds(clock), version="pages") as store:
        for number in range(60):
            body = b'{"said":"%s"}' % (str(number % 10).encode() * 200_000)
            words = NewMessage(
                "api", f"m{number}", "api/1", "normal", body[:-2] + b'%d"}' % number, clock.now_ms(), None, "s"
            )
            await store.inbox.accept(words)
            largest = max(largest, file.with_name("pages.db-wal").stat().st_size)
    with closing(sqlite3.connect(file)) as conn:
        assert conn.execute("PRAGMA page_size").fetchone() == (page,)
    assert largest < 2 * CHECKPOINT_BYTES
