"""An adapter that cannot begin."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from agent_core.ports import SystemClock
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import StorageUnavailable
from gateway.chats.supervisor import Supervisor


class Begins:
    """Reads where it was, from a storage that is away the first time."""

    name = "toy/1"
    silent_seconds, deaf_after_seconds = 0.0, 60.0

    def __init__(self) -> None:
        self.begun = 0
        self.up = asyncio.Event()

    async def run(self, up: Callable[[], None]) -> None:
        self.begun += 1
        if self.begun == 1:
            raise StorageUnavailable("the database is away")
        up()
        self.up.set()
        await asyncio.sleep(60)

    def sight(self, state: str, words: str, _outbound: float | None) -> Any:
        return state, words


async def test_a_storage_that_is_away_is_no_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, noted = Begins(), list[AdapterStateRow]()
    one = Supervisor(cast("Any", adapter), SystemClock(), lambda: None, lambda: 0.0, noted.append)
    with capture_logs() as logs:
        running = asyncio.create_task(one.run())
        await asyncio.wait_for(adapter.up.wait(), 20)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [line["event"] for line in logs] == ["adapter.storage_away", "adapter.up"]
    assert "storage of the gateway does not answer" in next(row.words for row in noted if row.state == "down")
