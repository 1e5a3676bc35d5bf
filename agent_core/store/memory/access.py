"""What agents remember, and their lists: texts by scope, kind and name."""

from __future__ import annotations

from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.memory.ops import DeleteMemory, PutMemory
from agent_core.store.memory.rows import MemoryRow
from agent_core.store.memory.sql import of_scope


class MemoryReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        mine = t.MEMORY.query.where(t.memory.c.scope == scope, t.memory.c.kind == kind)
        found = await self._asks.made(mine.order_by(t.memory.c.at, t.memory.c.name), t.MEMORY.make)
        return [(one.name, one.value.decode(), one.at) for one in found]

    async def of_session(self, key: str) -> list[MemoryRow]:
        """All that is kept for the conversation with this key alone, by whichever agent, oldest first."""
        m = t.memory.c
        mine = of_scope(f"session/{key}", self._asks.readers.dialect)
        return await self._asks.made(t.MEMORY.query.where(mine).order_by(m.at, m.scope, m.kind, m.name), t.MEMORY.make)


class StoredMemory(MemoryReads, Writing):
    """Implements `agent_core.tools.base.MemoryStore`: durable when the call returns."""

    async def put(self, scope: str, kind: str, name: str, value: str, *, at_ms: int) -> None:
        """Store or replace one entry."""
        await self._writer.submit(PutMemory(scope, kind, name, value.encode(), at_ms))

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        """Remove one entry; True if it was there."""
        return await self._writer.submit(DeleteMemory(scope, kind, name))
