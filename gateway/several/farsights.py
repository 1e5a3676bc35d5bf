"""A conversation that another gateway runs, as it is to be seen here: from the store alone.

What is on its way to the store is not seen before it is there: text comes by the piece, at the end of each step.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapters.contract.base import TurnSight
from agent_core.ports import Clock
from agent_core.store.store import Store
from agent_core.store.turns.rows import TurnState
from gateway.queues.inbox import NORMAL_LANE
from gateway.queues.queue import RECENT_TURNS, queued_sight, sight_of, waiting_of
from gateway.sessions.recents import MessagesOf, open_turn, recent_sights


class FarSights:
    """Asked again and again; what is over is read once."""

    def __init__(self, store: Store, key: str, messages_of: MessagesOf, clock: Clock) -> None:
        self._store, self._key, self._messages_of, self._clock = store, key, messages_of, clock
        self._mark: object = None
        self._over: Sequence[TurnSight] = ()

    async def look(self) -> list[TurnSight]:
        """All there is to see. Raises `StorageUnavailable`."""
        found = await self._store.sessions.by_key(self._key)
        if found is None:
            return []
        rows = await self._store.turns.latest(found.session, RECENT_TURNS)
        answers = await self._store.inbox.pending(found.session)
        mark = [(row.turn, row.undone, row.removed) for row in rows if row.state is TurnState.CLOSED]
        done = [row.id for row in answers if row.lane != NORMAL_LANE]  # what commands say is there when they are done
        if (mark, done) != self._mark:
            self._over = await recent_sights(self._store, self._key, found.session, self._messages_of)
            self._mark = (mark, done)
        sights = [*self._over]
        for row in rows:
            if row.state is TurnState.OPEN:
                sights += await self._running(row.turn)
        waiting = [waiting_of(row) for row in answers if row.lane == NORMAL_LANE]
        return sights + [queued_sight(message, place) for place, message in enumerate(waiting, start=1)]

    async def _running(self, turn: str) -> list[TurnSight]:
        shown = open_turn(await self._store.turns.journal(turn))
        if shown is None:
            return []
        messages = (await self._messages_of(turn)).get(turn, [])
        return [sight_of(turn, shown, message, self._clock.now_ms()) for message in messages]
