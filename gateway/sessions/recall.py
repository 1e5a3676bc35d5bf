"""What the model is told of a session's earlier turns, folded from the journal, once: from then on the queue adds to it, and
`gateway.queues.pasts` keeps it while nobody talks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal import salvage
from agent_core.journal.rows import fold
from agent_core.judging.compaction import SessionMemory, ToldTurn, told_turn
from agent_core.machine.turn import Turn
from agent_core.store.store import Store

log = structlog.get_logger("gateway")

FOLDED_AT_ONCE = 20
"""After so many turns others have their turn: folding one takes some 0.3 ms."""

Rows = Sequence[tuple[str, bytes]]


class PastRecall:
    """The past of all sessions, for at most so many turns of each."""

    def __init__(self, store: Store, turns: int) -> None:
        self._store = store
        self._turns = turns

    async def memory(self, session: str) -> SessionMemory:
        """The session's conversation as the model is told it. Raises `StorageUnavailable`."""
        turns = await self._store.turns.told(session, self._turns)
        memory = SessionMemory(self._turns)
        journals = await self._store.turns.journals(turns) if turns else {}
        told = [(turn, journals[turn]) for turn in turns if turn in journals]
        for number, (turn, rows) in enumerate(told, start=1):
            memory.take(told_of(turn, rows))
            if number % FOLDED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return memory


def closed_turn(turn: str, rows: Rows) -> Turn | None:
    """A turn from its journal; None if it is not closed, or cannot be read."""
    try:
        folded = fold(rows)
    except UnreadableJournal as error:
        log.warning("turn.unreadable", turn=turn, error=str(error))
        return None
    return folded if folded.exit is not None else None


def told_of(turn: str, rows: Rows) -> ToldTurn:
    """What a turn tells later ones; nothing if a client brought the conversation along."""
    from gateway.sessions.plainpast import told_plainly  # not before a conversation goes on

    if (plain := told_plainly(rows)) is not None:
        return plain
    try:
        folded = fold(rows)
    except UnreadableJournal as error:
        log.warning("turn.unreadable", turn=turn, error=str(error))
        return ToldTurn(salvage.told(rows))  # what ran must not be done again for that
    if folded.exit is None or folded.opened is None or folded.opened.own_history is not None:
        return ToldTurn()
    return told_turn(folded)
