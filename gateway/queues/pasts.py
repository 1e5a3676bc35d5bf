"""What is kept of conversations that nobody talks in just now, so that the next turn need not ask the database for their past.

Law (tests/gateway/test_recall.py): what is kept makes no difference to what is told. A past is kept with the epoch under which the session is
ours: as long as that is the session's, nobody else has added to it. What changes it here lets go of it.
"""

from __future__ import annotations

from collections import OrderedDict

from agent_core.judging.compaction import SessionMemory
from agent_core.records import dataclass
from gateway.queues.prefs import Prefs

KEPT_BYTES = 48 * 2**20
"""Five thousand conversations of some fifty short turns each."""
EACH_BYTES = 1_024
"""What one costs beside its words."""


@dataclass(frozen=True, slots=True)
class _Past:
    session: str
    epoch: int
    memory: SessionMemory
    prefs: Prefs | None
    size: int


class Pasts:
    """By session key, up to so many bytes; what was used last goes last."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept: OrderedDict[str, _Past] = OrderedDict()
        self._size = 0

    def keep(self, key: str, session: str, epoch: int, memory: SessionMemory, prefs: Prefs | None = None) -> None:
        """Nobody talks in it just now. `prefs` is what it has set for itself, if that is known."""
        self.drop(key)
        self._kept[key] = past = _Past(session, epoch, memory, prefs, memory.size + EACH_BYTES)
        self._size += past.size
        while self._size > self._most:
            self.drop(next(iter(self._kept)))

    def take(self, key: str, session: str, epoch: int) -> SessionMemory | None:
        """What was kept of this session, if it is still all of it."""
        past = self._kept.get(key)
        self.drop(key)
        return past.memory if past is not None and (past.session, past.epoch) == (session, epoch) else None

    def prefs(self, key: str, session: str, epoch: int) -> Prefs | None:
        """What this session has set for itself, if that was kept."""
        past = self._kept.get(key)
        return past.prefs if past is not None and (past.session, past.epoch) == (session, epoch) else None

    def whose(self, key: str) -> tuple[str, int] | None:
        """The session whose past is kept under a key, and the epoch under which it was ours."""
        past = self._kept.get(key)
        return (past.session, past.epoch) if past is not None else None

    def drop(self, key: str) -> None:
        """It is not so any more."""
        past = self._kept.pop(key, None)
        if past is not None:
            self._size -= past.size

    def clear(self) -> None:
        """Let go of all of them."""
        self._kept.clear()
        self._size = 0
