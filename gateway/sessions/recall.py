"""What the model is told of a session's earlier turns, folded from the journal.

A closed turn does not change any more. So what was folded once is kept, as long as the journals of what is kept are not larger than
`KEPT_BYTES` together; what was asked for last goes last. Turns with pictures have a quarter of that for themselves: each is as large as a
hundred others, which it would push out. Which turns are told is asked each time.

Law (tests/gateway/test_recall.py): what is kept makes no difference to what is told.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

import structlog

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal import salvage
from agent_core.journal.rows import fold
from agent_core.judging.compaction import SessionMemory, ToldTurn, told_turn
from agent_core.machine.turn import Turn
from agent_core.records import dataclass
from agent_core.store.store import Store

log = structlog.get_logger("gateway")

KEPT_BYTES = 16 * 2**20
LARGE_BYTES = 32 * 1024
"""The journal of a turn without pictures is smaller, but for few."""
FOLDED_AT_ONCE = 20
"""After so many turns others have their turn: folding one takes some 0.3 ms."""

Rows = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class _Kept:
    told: ToldTurn
    size: int
    """Bytes of its journal."""


class _Shelf:
    """Folded turns, up to so many bytes of journals."""

    def __init__(self, most: int) -> None:
        self.kept: OrderedDict[str, _Kept] = OrderedDict()
        self._most = most
        self._size = 0

    def clear(self) -> None:
        self.kept.clear()
        self._size = 0

    def keep(self, turn: str, kept: _Kept) -> None:
        if turn not in self.kept:
            self._size += kept.size
        self.kept[turn] = kept
        self.kept.move_to_end(turn)
        while self._size > self._most:
            _, gone = self.kept.popitem(last=False)
            self._size -= gone.size


class PastRecall:
    """The past of all sessions, for at most so many turns of each."""

    def __init__(self, store: Store, turns: int, kept_bytes: int = KEPT_BYTES) -> None:
        self._store = store
        self._turns = turns
        self._large = _Shelf(kept_bytes // 4)
        self._small = _Shelf(kept_bytes - kept_bytes // 4)

    def forget(self) -> None:
        """Let go of what is kept: something of it was removed."""
        self._large.clear()
        self._small.clear()

    async def memory(self, session: str) -> SessionMemory:
        """The session's conversation as the model is told it. Raises `StorageUnavailable`."""
        turns = await self._store.turns.told(session, self._turns)
        shelves = (self._large.kept, self._small.kept)
        known = {turn: kept[turn] for kept in shelves for turn in turns if turn in kept}
        known |= await self._folded([turn for turn in turns if turn not in known])
        memory = SessionMemory()
        for turn in turns:
            if turn in known:
                memory.take(known[turn].told)
                shelf = self._large if known[turn].size > LARGE_BYTES else self._small
                shelf.keep(turn, known[turn])
        return memory

    async def _folded(self, turns: Sequence[str]) -> dict[str, _Kept]:
        found: dict[str, _Kept] = {}
        journals = await self._store.turns.journals(turns) if turns else {}
        for number, (turn, rows) in enumerate(journals.items(), start=1):
            found[turn] = _Kept(_told(turn, rows), sum(len(body) for _, body in rows))
            if number % FOLDED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found


def closed_turn(turn: str, rows: Rows) -> Turn | None:
    """A turn from its journal; None if it is not closed, or cannot be read."""
    try:
        folded = fold(rows)
    except UnreadableJournal as error:
        log.warning("turn.unreadable", turn=turn, error=str(error))
        return None
    return folded if folded.exit is not None else None


def _told(turn: str, rows: Rows) -> ToldTurn:
    """What a turn tells later ones; nothing if a client brought the conversation along."""
    try:
        folded = fold(rows)
    except UnreadableJournal as error:
        log.warning("turn.unreadable", turn=turn, error=str(error))
        return ToldTurn(salvage.told(rows))  # what ran must not be done again for that
    if folded.exit is None or folded.opened is None or folded.opened.own_history is not None:
        return ToldTurn()
    return told_turn(folded)
