"""The durable record of how adapters were doing: written when a state changes, so that it can be told later why nothing came.

Whoever changes a state does not wait: rows are written by one task, in their order, also when the storage was away for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import structlog

from agent_core.bell import Bell
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import StorageUnavailable, Store

log = structlog.get_logger("adapter")

MOST_KEPT = 1_000
"""Rows that wait for a storage that is away; the oldest go first."""
AWAY_SECONDS = 5.0
LAST_SECONDS = 3.0
"""How long the end of the program waits for the last rows."""


class AdapterLog:
    """Takes rows at any time, and stores them while `kept` is entered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: deque[AdapterStateRow] = deque(maxlen=MOST_KEPT)
        self._last_at: dict[str, int] = {}
        self._bell: Bell | None = None

    def note(self, row: AdapterStateRow) -> None:
        """An adapter is doing otherwise from now on."""
        at = max(row.at, self._last_at.get(row.account, 0) + 1)  # two changes within a millisecond are two rows
        self._last_at[row.account] = at
        self._rows.append(AdapterStateRow(row.account, at, row.state, row.words))
        if self._bell is not None:
            self._bell.ring()

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """Rows are stored for the block, and those of its end as well."""
        self._bell = Bell()
        task = asyncio.create_task(self._run(self._bell), name="adapter states")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(StorageUnavailable, TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._write()
            self._bell.close()
            self._bell = None

    async def _run(self, bell: Bell) -> None:
        while True:
            try:
                await self._write()
            except StorageUnavailable as error:
                log.warning("adapter.state_not_stored", error=str(error), waiting=len(self._rows))
                await asyncio.sleep(AWAY_SECONDS)
            else:
                await bell.wait(60.0)

    async def _write(self) -> None:
        while self._rows:
            row = self._rows[0]
            await self._store.deliveries.note_adapter(row)
            if self._rows and self._rows[0] is row:
                self._rows.popleft()
