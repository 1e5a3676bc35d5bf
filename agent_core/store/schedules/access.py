"""What can be asked of schedules, and what can be written."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, func, select

from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.schedules.ops import PutSchedule
from agent_core.store.schedules.rows import OccurrenceRow, ScheduleRow, ScheduleState

_STANDING = (ScheduleState.ACTIVE.value, ScheduleState.PAUSED.value)

_NEXT = select(func.min(t.schedules.c.next_at)).where(t.schedules.c.state == ScheduleState.ACTIVE.value)


class ScheduleReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def one(self, schedule: str) -> ScheduleRow | None:
        found = await self._schedules(t.SCHEDULE.query.where(t.schedules.c.schedule == schedule))
        return found[0] if found else None

    async def of(self, session_key: str, *kinds: str) -> list[ScheduleRow]:
        """The schedules of a session that are active, the next one first, or paused."""
        mine = (t.schedules.c.session_key == session_key, t.schedules.c.kind.in_(kinds))
        query = t.SCHEDULE.query.where(*mine, t.schedules.c.state.in_(_STANDING))
        found = await self._schedules(query.order_by(t.schedules.c.next_at, t.schedules.c.schedule))
        return sorted(found, key=lambda row: (row.next_at is None, row.next_at or 0, row.schedule))

    async def over(self, session_key: str, kind: str, limit: int) -> list[ScheduleRow]:
        """Those of a session that are done, the latest first."""
        c = t.schedules.c
        mine = (c.session_key == session_key, c.kind == kind, c.state == ScheduleState.DONE.value)
        query = t.SCHEDULE.query.where(*mine).order_by(c.at.desc(), c.schedule.desc())
        return await self._schedules(query.limit(limit))

    async def named(self, prefix: str) -> list[ScheduleRow]:
        """All schedules whose ids begin so, whatever their state."""
        named = self._asks.begins(t.schedules.c.schedule, prefix)
        return await self._schedules(t.SCHEDULE.query.where(named).order_by(t.schedules.c.schedule))

    async def due(self, now_ms: int) -> list[ScheduleRow]:
        """The active schedules with an occurrence at or before `now_ms`, the oldest first."""
        due = (t.schedules.c.state == ScheduleState.ACTIVE.value, t.schedules.c.next_at <= now_ms)
        found = await self._schedules(
            t.SCHEDULE.query.where(*due).order_by(t.schedules.c.next_at, t.schedules.c.schedule)
        )
        return sorted(found, key=lambda row: (row.next_at or 0, row.schedule))

    async def next_occurrence(self, besides: Collection[str] = ()) -> int | None:
        """When the next occurrence of all is due but of those `besides`, ms; None if there is none."""
        others = _NEXT.where(t.schedules.c.schedule.not_in(sorted(besides)))
        found = (await (self._asks.all(others) if besides else self._asks.always(_NEXT)))[0][0]
        return None if found is None else int(found)

    async def occurrences(self, schedule: str) -> list[OccurrenceRow]:
        """What was claimed of a schedule, in order."""
        o = t.occurrences.c
        query = t.OCCURRENCE.query.where(o.schedule == schedule)
        return await self._asks.made(query.order_by(o.due_at), t.OCCURRENCE.make)

    async def _schedules(self, query: Select[*tuple[Any, ...]]) -> list[ScheduleRow]:
        c = t.schedules.c
        return await self._asks.readable("schedules", query, c.schedule, t.SCHEDULE.make, lambda one: one.schedule)


class Schedules(ScheduleReads, Writing):
    """All of it, for the node that writes."""

    async def put(self, schedule: ScheduleRow, turn: str = "") -> None:
        """Promises: the schedule is stored like this. Raises Conflict if it is not as it was seen (`rev` less one), or the turn in which it is asked for
        is one of somebody who was forgotten since."""
        await self._writer.submit(PutSchedule(schedule, turn))
