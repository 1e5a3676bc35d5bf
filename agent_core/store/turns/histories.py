"""The store's answers about a session's past: few queries, however long it is."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from agent_core.store import tables as t
from agent_core.store.database.asks import Asks
from agent_core.store.turns.rows import TurnState

TURNS_A_QUERY = 100


class Histories(Asks):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def told(self, session: str, limit: int) -> list[str]:
        """The last `limit` closed turns of a session that are put before the model, the oldest first: none that was undone, and none
        before the conversation was begun anew."""
        u = t.turns.c
        since = select(t.sessions.c.since).where(t.sessions.c.session == session).scalar_subquery()
        mine = select(u.turn).where(u.session == session, u.number > since, u.undone == 0)
        closed = mine.where(u.state == TurnState.CLOSED.value)
        return [str(row[0]) for row in reversed(await self._all(closed.order_by(u.number.desc()).limit(limit)))]

    async def journals(self, turns: Sequence[str]) -> dict[str, list[tuple[str, bytes]]]:
        """Kind and body of the journal's rows, in order, by turn; a turn that has none is missing."""
        found: dict[str, list[tuple[str, bytes]]] = {}
        j = t.journal.c
        for first in range(0, len(turns), TURNS_A_QUERY):
            mine = j.turn.in_(turns[first : first + TURNS_A_QUERY])
            query = select(j.turn, j.kind, j.body).where(mine).order_by(j.turn, j.seq)
            rows = await self._all(query)
            bodies = await self._whole([bytes(row[2]) for row in rows])
            for (turn, kind, _), body in zip(rows, bodies, strict=True):
                found.setdefault(turn, []).append((kind, body))
        return found
