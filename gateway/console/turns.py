"""One turn as the console shows it: the story that `/why` tells, word for word, and the journal as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agent_core.bell import Bell
from agent_core.explain.why import told
from agent_core.journal.replay import replay
from agent_core.journal.replaywords import timeline
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow, TurnRow, TurnState
from agent_core.text.redaction import Redactor
from gateway.console.snapshot import class_of, doing_of, place_of
from gateway.explain.story import Explainer, local_zone, why
from gateway.sessions.hub import Hub

MOST_LINES = 600
"""Of a timeline; of a longer one the latest."""


@dataclass(frozen=True, slots=True)
class ConsoleTurn:
    """A turn as it was seen."""

    body: dict[str, Json]
    rows: tuple[JournalRow, ...]
    lines: list[Json]
    settled: bool
    """It is closed, and nothing of it is on its way."""
    took_seconds: float


class ConsoleTurns:
    """Looks at turns."""

    def __init__(self, store: Store, hub: Hub, clock: Clock, redactor: Redactor) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._redactor = redactor

    async def look(self, turn: str, before: ConsoleTurn | None) -> ConsoleTurn | None:
        """The turn as it is now; None if there is none. What did not change since `before` is not made again."""
        began = self._clock.monotonic()
        row = await self._store.turns.one(turn)
        if row is None:
            return None
        rows, lines = (before.rows, before.lines) if before is not None else ((), [])
        more = await self._store.turns.journal(turn, rows[-1].seq if rows else -1)
        if more:
            rows = (*rows, *more)
            lines = await asyncio.to_thread(timeline_json, rows, self._redactor)
        story = await why(self._store, turn, self._clock.now_ms)
        session = await self._store.sessions.one(row.session)
        driver = next((one.driver for one in self._hub.running() if one.driver.identity.turn == turn), None)
        body: dict[str, Json] = {
            "id": turn,
            "session": row.session,
            "place": place_of(session.key) if session is not None else "",
            "exit": row.exit or "",
            "class": class_of(row.exit or ""),
            "opened_at": row.opened_at,
            "closed_at": row.closed_at,
            "undone": row.undone,
            "doing": doing_of(driver) if driver is not None else "",
            "story": [self._redactor.redact(line) for line in story],
            "timeline": lines[-MOST_LINES:],
            "left_out": max(0, len(lines) - MOST_LINES),
            "rows": len(rows),
        }
        return ConsoleTurn(body, rows, lines, _settled(row), self._clock.monotonic() - began)

    async def changed(self, turn: str, seconds: float) -> None:
        """Return after so many seconds, or, once half of them are over, when the turn that runs here shows something new."""
        await asyncio.sleep(seconds / 2)
        driver = next((one.driver for one in self._hub.running() if one.driver.identity.turn == turn), None)
        if driver is None:
            await asyncio.sleep(seconds / 2)
            return
        bell = Bell()
        driver.seen.subscribe(bell)
        try:
            await bell.wait(seconds / 2)
        finally:
            driver.seen.unsubscribe(bell)
            bell.close()

    async def explain(self, id_: str) -> dict[str, Json]:
        """What `outspoken explain` says of an id. Raises `CannotExplain`."""
        days = self._hub.upkeep.keep.bodies_days
        found = await Explainer(self._store, self._clock.now_ms, kept_days=days).of(id_)
        head = f"{found.head} Also: {'; '.join(found.also)}." if found.also else found.head
        lines = [self._redactor.redact(line) for line in told(head, found.lines, local_zone())]
        return {
            "kind": found.kind.value,
            "id": found.id,
            "turn": found.turn,
            "session": found.session,
            "lines": [*lines],
        }


def timeline_json(rows: Sequence[JournalRow], redactor: Redactor) -> list[Json]:
    """The journal as lines: what happened, and what was decided on it. No word of a person or a model. Pure."""
    return [
        {
            "first": line.first,
            "last": line.last,
            "at": line.at,
            "event": redactor.redact(line.event),
            "decisions": [redactor.redact(one) for one in line.decisions],
        }
        for line in timeline(replay(rows).moments)
    ]


def _settled(row: TurnRow) -> bool:
    return row.state is TurnState.CLOSED
