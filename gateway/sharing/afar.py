"""Turns that are watched at another gateway than the one that runs them: how they are read there.

Theory. What was shown on a stream cannot be taken back, and what a gateway that dies had not stored is never said again: the next one goes on from
what is stored. So elsewhere nothing is shown but what is stored, and where somebody looks, text is stored as it comes (`SOON_SECONDS`) and told of.
A watcher elsewhere sees the same through a takeover as without one, because the journal is the same. What a running tool says of how far it is can be taken
back, and is told as it is.

A word says that somebody looks; it counts for a while, at every gateway, so that whoever takes the turn over knows as well.

What it costs: a word brings one question for all who watch the turn here, and without a word it is looked once a second (`gateway.sharing.portion.Due`), because a word may be lost.

Laws (tests/gateway/test_afar.py): a journal that is read on, commit by commit, gives what it gives when it is read at once; those who ask in one moment
cost one question, and each sees what was stored when they asked.
"""

from __future__ import annotations

import asyncio

from agent_core.driver.watcher import with_progress
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode, fold, read_on
from agent_core.machine.turn import Turn
from agent_core.store.store import Store
from agent_core.store.turns.rows import JournalRow
from agent_core.turn.events import ToolReturned
from agent_core.turn.view import View, view


class FarTurn:
    """A turn that is run elsewhere, as far as it is stored, for all who watch it here. What is known of it is not read again."""

    def __init__(self, store: Store, name: str) -> None:
        self.name = name
        self.turn: Turn | None = None
        """As of the last look; None if there is nothing of it, or nothing that can be read."""
        self.last = -1
        """How far it is read; -1 if nothing can be."""
        self._progress: dict[str, str] = {}
        """What running tools said last about how far they are, by call."""
        self._heard = 0
        self._store = store
        self._one = asyncio.Lock()
        self._begun = self._read_at = 0

    @property
    def mark(self) -> tuple[int, int]:
        """Another one when there is more to see."""
        return self.last, self._heard

    def hear(self, call: str, words: str) -> None:
        """A tool that runs says how far it is."""
        self._progress[call] = words
        self._heard += 1

    def shown(self, now: int) -> View | None:
        """What is to be seen of it; None if nothing can be read of it, or it is over."""
        if self.turn is None or self.turn.exit is not None:
            return None
        return with_progress(view(self.turn, now), self._progress)

    async def look(self) -> None:
        """Have read all that is stored by now. Raises `StorageUnavailable`."""
        wanted = self._begun + 1  # a question that begins from now on will do
        await asyncio.sleep(0)  # those who were woken by the same word ask in this moment, too
        async with self._one:
            if self._read_at >= wanted:
                return
            self._begun += 1
            await self._read_on()
            self._read_at = self._begun

    async def _read_on(self) -> None:
        rows = await self._store.turns.journal(self.name, self.last)
        if not rows:
            return
        try:
            self.turn = await self._read(rows)
        except UnreadableJournal:
            self.turn, self.last = None, -1
        else:
            self.last = rows[-1].seq
        for row in rows:
            if self._progress and row.kind == ToolReturned.kind():
                event = decode(row.kind, row.body)
                self._progress.pop(event.call if isinstance(event, ToolReturned) else "", None)

    async def _read(self, rows: list[JournalRow]) -> Turn:
        if self.turn is not None and self.turn.settings.judged:
            return read_on(self.turn, [decode(row.kind, row.body) for row in rows])
        if self.last >= 0:  # what an older version began is judged as a whole
            rows = await self._store.turns.journal(self.name)
        return fold([(row.kind, row.body) for row in rows])
