"""One turn as the console shows it: the story that `/why` tells, word for word, and the journal as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from agent_core.bell import Bell
from agent_core.driver.driver import TurnDriver
from agent_core.explain.why import StoryCase, told
from agent_core.journal.replay import replay
from agent_core.journal.replaywords import timeline
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow, TurnRow
from agent_core.text.redaction import Redactor
from gateway.console.looking import FAR_SECONDS, FRESH_SECONDS, NET_SECONDS, QUIET_SECONDS, SHARE, Pace, paced
from gateway.console.naming import Names
from gateway.console.snapshot import class_of, doing_of, place_of
from gateway.explain.story import Explainer, local_zone, turn_words
from gateway.sessions.hub import Hub

MOST_LINES = 600
"""Of a timeline; of a longer one the latest."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the database said of a turn."""

    count: int
    """What was committed until then."""
    at: float
    row: TurnRow
    place: str
    name: str
    rows: tuple[JournalRow, ...]
    lines: list[Json]
    case: StoryCase | None


@dataclass(frozen=True, slots=True)
class ConsoleTurn:
    """A turn as it was seen."""

    body: dict[str, Json]
    read: _Read
    took_seconds: float


class ConsoleTurns:
    """Looks at turns. Law: the database is asked once something was committed, and never else but for `NET_SECONDS`."""

    def __init__(
        self, store: Store, hub: Hub, clock: Clock, redactor: Redactor, names: Names, pace: Pace = paced
    ) -> None:
        self._names = names
        self._pace = pace
        self._store = store
        self._hub = hub
        self._clock = clock
        self._redactor = redactor

    async def look(self, turn: str, before: ConsoleTurn | None) -> ConsoleTurn | None:
        """The turn as it is now; None if there is none. What did not change since `before` is not made again."""
        began, count = self._clock.monotonic(), self._store.changes.count
        read = before.read if before is not None else None
        driver = self._driver(turn)
        net = NET_SECONDS if driver is not None or self._hub.portion.whole else FAR_SECONDS
        if read is None or read.count != count or began - read.at >= net:
            read = await self._read(turn, read, count, began)
        if read is None:
            return None
        doing = doing_of(driver.turn, driver.seen.current_view()) if driver is not None else ""
        if before is not None and read is before.read and not _waits(read.case):
            return replace(before, body=before.body | {"doing": doing}, took_seconds=0.0)
        row, lines = read.row, read.lines
        body: dict[str, Json] = {
            "id": turn,
            "session": row.session,
            "place": read.place,
            "name": read.name,
            "exit": row.exit or "",
            "class": class_of(row.exit or ""),
            "opened_at": row.opened_at,
            "closed_at": row.closed_at,
            "undone": row.undone,
            "doing": doing,
            "story": [self._redactor.redact(line) for line in self._story(read)],
            "timeline": lines[-MOST_LINES:],
            "left_out": max(0, len(lines) - MOST_LINES),
            "rows": len(read.rows),
        }
        return ConsoleTurn(body, read, self._clock.monotonic() - began)

    async def _read(self, turn: str, before: _Read | None, count: int, at: float) -> _Read | None:
        row = await self._store.turns.one(turn)
        if row is None:
            return None
        rows, lines = (before.rows, before.lines) if before is not None else ((), [])
        more = await self._store.turns.journal(turn, rows[-1].seq if rows else -1)
        if more:
            rows = (*rows, *more)
            lines = await asyncio.to_thread(timeline_json, rows, self._redactor)
        case = await Explainer(self._store, self._clock.now_ms).case(turn)
        session = await self._store.sessions.one(row.session)
        key = session.key if session is not None else ""
        name = self._names.of(row.session, key) if key else ""
        return _Read(count, at, row, place_of(key), name, rows, lines, case)

    def _story(self, read: _Read) -> tuple[str, ...]:
        return turn_words(replace(read.case, now=self._clock.now_ms())) if read.case is not None else ()

    def _driver(self, turn: str) -> TurnDriver | None:
        return next((one.driver for one in self._hub.running() if one.driver.identity.turn == turn), None)

    @contextmanager
    def watching(self, turn: str) -> Generator[Bell]:
        """A bell for one who follows a turn, for the block: it rings for what is committed, and for what the turn shows while it runs here."""
        bell, changes, driver = Bell(), self._store.changes, self._driver(turn)
        changes.subscribe(bell)
        if driver is not None:
            driver.seen.subscribe(bell)
        try:
            yield bell
        finally:
            changes.unsubscribe(bell)
            if driver is not None:
                driver.seen.unsubscribe(bell)
            bell.close()

    async def stirred(self, bell: Bell, seen: ConsoleTurn) -> None:
        """Return when there may be something else to see of it than `seen`."""
        least = max(FRESH_SECONDS, SHARE * seen.took_seconds)
        await self._pace(bell, least, max(QUIET_SECONDS, least))

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


def _waits(case: StoryCase | None) -> bool:
    """Its story has words that count seconds: something of it has yet to be delivered."""
    settled = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.SKIPPED)
    return case is not None and any(row.state not in settled for row in case.deliveries)
