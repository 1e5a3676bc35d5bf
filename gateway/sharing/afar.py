"""Turns that are watched at another gateway than the one that runs them: how they are read there.

Theory. What was shown on a stream cannot be taken back, and what a gateway that dies had not stored is never said again: the next one goes on from
what is stored. So elsewhere nothing is shown but what is stored, and where somebody looks, text is stored as it comes (`AFAR_SECONDS`) and told of.
A watcher elsewhere sees the same through a takeover as without one, because the journal is the same.

A word says that somebody looks; it counts for a while, at every gateway, so that whoever takes the turn over knows as well.

Law (tests/gateway/test_afar.py): a journal that is read on, commit by commit, gives what it gives when it is read at once.
"""

from __future__ import annotations

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode, fold, read_on
from agent_core.machine.turn import Turn
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow


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
