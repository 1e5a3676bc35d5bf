"""Turns that are watched at another gateway than the one that runs them: who says so, and how they are read there.

Theory. What was shown on a stream cannot be taken back, and what a gateway that dies had not stored is never said again: the next one goes on from
what is stored. So elsewhere nothing is shown but what is stored, and where somebody looks, text is stored as it comes (`AFAR_SECONDS`) and told of.
A watcher elsewhere sees the same through a takeover as without one, because the journal is the same.

A word says that somebody looks; it counts for a while, at every gateway, so that whoever takes the turn over knows as well.

Law (tests/gateway/test_afar.py): a journal that is read on, commit by commit, gives what it gives when it is read at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode, fold, read_on
from agent_core.machine.turn import Turn
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow

SESSION, WATCH = "session", "watch"
"""Words, with a session's id: there is more to see of it; somebody looks at it elsewhere."""
WATCH_SECONDS = 10.0
"""How often whoever looks says so."""
HEED_SECONDS = 2.5 * WATCH_SECONDS
MOST_KEPT = 1_000
"""When as many sessions were looked at, those are forgotten at which nobody looks any more."""


class FarWatchers:
    """Implements `agent_core.driver.watcher.Afar`; at the other end, whoever looks calls `look_at`."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._looked_at: dict[str, float] = {}
        """Until when they count that look elsewhere, by the loop's clock."""
        self._said: dict[str, float] = {}
        """Until when others know that somebody looks here."""

    def watched(self, session: str) -> bool:
        return bool(self._looked_at) and self._looked_at.get(session, 0.0) > asyncio.get_running_loop().time()

    def stored(self, session: str) -> None:
        if self.watched(session):
            self._tell(f"{SESSION}:{session}")

    def heard(self, session: str) -> None:
        """Somebody looks at it elsewhere."""
        _note(self._looked_at, session, HEED_SECONDS)

    def look_at(self, session: str) -> None:
        """Somebody looks at it here, and it is run elsewhere. To be called again and again."""
        if session and self._said.get(session, 0.0) <= asyncio.get_running_loop().time():
            _note(self._said, session, WATCH_SECONDS)
            self._tell(f"{WATCH}:{session}")


def _note(until: dict[str, float], session: str, seconds: float) -> None:
    now = asyncio.get_running_loop().time()
    if len(until) >= MOST_KEPT:
        for one in [name for name, end in until.items() if end <= now]:
            del until[one]
    until[session] = now + seconds


class FarTurn:
    """A turn that is run elsewhere, as far as it is stored. What is known of it is not read again."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self.turn: Turn | None = None
        """As of the last look; None if there is nothing of it, or nothing that can be read."""
        self._store = store
        self._last = -1

    async def look(self) -> bool:
        """Read on. Whether there was more. Raises `StorageUnavailable`."""
        rows = await self._store.turns.journal(self.name, self._last)
        if not rows:
            return False
        try:
            self.turn = await self._read(rows)
        except UnreadableJournal:
            self.turn, self._last = None, -1
            return False
        self._last = rows[-1].seq
        return True

    async def _read(self, rows: list[JournalRow]) -> Turn:
        if self.turn is not None and self.turn.settings.judged:
            return read_on(self.turn, [decode(row.kind, row.body) for row in rows])
        if self._last >= 0:  # what an older version began is judged as a whole
            rows = await self._store.turns.journal(self.name)
        return fold([(row.kind, row.body) for row in rows])
