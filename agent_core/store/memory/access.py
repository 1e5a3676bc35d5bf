"""What agents remember, and their lists: texts by scope, kind and name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam

from agent_core.remembered import MEMORY, UNKNOWN_SOURCE, MemorySource, Remembered
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.memory.ops import DeleteMemory, PutMemory
from agent_core.store.memory.rows import MemoryRow
from agent_core.store.memory.sql import of_scope

MOST_ENTRIES = 10_000
"""So many are looked through, the newest: where the operator has set no quota."""


_m = t.memory.c
_KIND = _m.kind == bindparam("kind", "", _m.kind.type)
_ENTRIES = t.MEMORY.query.where(_m.scope == bindparam("scope", "", _m.scope.type), _KIND).order_by(_m.at, _m.name)


@cache
def _of_kind(most: int) -> Select[*tuple[Any, ...]]:
    return t.MEMORY.query.where(t.OTHERS_THAN_MEMORIES, _KIND).order_by(_m.at, _m.scope, _m.name).limit(most)


class MemoryReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        found = await self._asks.made_always(_ENTRIES, t.MEMORY.make, scope=scope, kind=kind)
        return [(one.name, one.text, one.at) for one in found]

    async def remembered(self, scopes: Sequence[str], query: str = "") -> tuple[list[Remembered], int]:
        """What is remembered in these scopes and fits, best first (without a query: all, newest first); and how much there is in all."""
        m = t.memory.c
        mine = t.MEMORY.query.where(m.scope.in_(scopes), m.kind == MEMORY).order_by(m.at.desc(), m.scope, m.name)
        rows = await self._asks.made(mine.limit(MOST_ENTRIES), t.MEMORY.make)
        found = [_entry(row) for row in rows]
        if query.strip() and found:
            from agent_core.store.memory.finding import best

            places = await asyncio.to_thread(best, [(one.name, one.text) for one in found], query)
            return [found[place] for place in places], len(found)
        return found, len(found)

    async def of_kind(self, kind: str, most: int = MOST_ENTRIES) -> list[MemoryRow]:
        """What is kept of a kind that is not memories, of everybody, the oldest first."""
        return await self._asks.made_always(_of_kind(most), t.MEMORY.make, kind=kind)

    async def of_session(self, key: str) -> list[MemoryRow]:
        """All that is kept for the conversation with this key alone, by whichever agent, oldest first."""
        m = t.memory.c
        mine = of_scope(f"session/{key}", self._asks.readers.dialect)
        return await self._asks.made(t.MEMORY.query.where(mine).order_by(m.at, m.scope, m.kind, m.name), t.MEMORY.make)


class StoredMemory(MemoryReads, Writing):
    """Implements `agent_core.tools.base.MemoryStore`: durable when the call returns."""

    async def put(
        self, scope: str, kind: str, name: str, value: str, *, at_ms: int, source: MemorySource = UNKNOWN_SOURCE
    ) -> None:
        """Store or replace one entry."""
        await self._writer.submit(PutMemory(scope, kind, name, value.encode(), at_ms, source))

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        """Remove one entry; True if it was there."""
        return await self._writer.submit(DeleteMemory(scope, kind, name))


def _entry(row: MemoryRow) -> Remembered:
    source = MemorySource(row.turn, row.author, row.writer, bool(row.others))
    return Remembered(row.scope, row.name, row.text, row.at, source)
