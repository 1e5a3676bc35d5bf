"""Whether the store takes writes: known from everybody's commits, and tried by a write of its own when somebody asks and none was lately.

Theory. A full disk does not refuse everything: what finds room in the log is stored, what needs a new page is not, and each small file
that somebody removes lets a few writes through. So what a commit tells is believed at once when it failed, and not when it did not:
a failure that is not understood yet, or that was for want of room, is over when a write got through that needs room of its own, and
there is more room than when it was too little (`StoreStanding`). Below `least` new messages are refused although they could be stored still:
what is left belongs to the turns that are open.

Laws (tests/gateway/test_health.py): between full and not full lies a margin, in which nothing changes; what fails for want of room is not
over by a write that needs none.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import structlog

from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.signals import Committed, Signal
from agent_core.store.store import Damaged, StorageFull, StorageUnavailable

log = structlog.get_logger("storage")

FRESH_SECONDS = 2.0
"""What is known is not asked again within this time, however many ask."""
PATIENCE_SECONDS = 3.0
"""How long a write may take before the answer is that it does not work."""
ROOM_BYTES = 256 * 1024
"""What a write needs that shows that there is room again."""
NOT_KNOWN_YET = "The last write failed."
"""All that a failed commit tells; whoever asks next finds out why, and the log is told that too."""
MIB = 1024**2
AWAY_WORDS = "The gateway cannot store anything just now, so your message was not taken. Send it again in a minute."
FULL_WORDS = "I cannot keep your message: the disk of the gateway is full. It was not taken; send it again later."
DAMAGED_WORDS = "I cannot keep your message: the database of the gateway is damaged. It was not taken; send it again when that is mended."
EVERYBODYS = (
    "The database is damaged in what every conversation needs, so no message is taken. Stop the gateway, see what outspoken db check says, "
    "and restore a backup: outspoken db restore."
)
"""What is told while conversations that begin anew meet damage as well (`gateway.storage.spread`)."""
FULL_SECONDS = 60
"""When whoever was refused for want of room may try again."""


def not_stored(error: StorageUnavailable) -> NotAccepted:
    """What whoever sent a message is told that cannot be stored."""
    if isinstance(error, StorageFull):
        return NotAccepted(FULL_WORDS, NotAcceptedCode.STORAGE_FULL, FULL_SECONDS)
    if isinstance(error, Damaged):
        return NotAccepted(DAMAGED_WORDS, NotAcceptedCode.STORAGE_DAMAGED)
    return NotAccepted(AWAY_WORDS, NotAcceptedCode.STORAGE_AWAY)


def free_bytes(*folders: Path) -> int | None:
    """The least room that is left where these lie; None if that cannot be found out."""
    try:
        return min(shutil.disk_usage(folder).free for folder in folders)
    except OSError:
        return None


class Checkable(Protocol):
    """A store that can say whether it takes writes, by raising `StorageUnavailable` if it does not."""

    async def check(self, timeout_seconds: float = 5.0, room_bytes: int = 0) -> None: ...

    def astray(self) -> bool:
        """Whether the files that others see are not those that are written here. From any thread."""
        ...


@dataclass(frozen=True, slots=True)
class StoreStanding:
    """How the store stands, as far as is known. Pure: each event gives the next one."""

    words: str = ""
    """Why it does not work, for whoever runs the gateway; empty if it does."""
    full: bool = False
    """For want of room."""
    low: bool = False
    """Less room is left than there has to be, by the last look; not over before there is a margin."""

    def committed(self, *, stored: bool) -> StoreStanding:
        """Somebody's commit was tried."""
        if not stored:
            return replace(self, words=self.words or NOT_KNOWN_YET)
        over = self.words != NOT_KNOWN_YET and not self.full and not self.low
        return WELL if over else self

    def tried(self, error: StorageUnavailable | None) -> StoreStanding:
        """A write was tried; one that needed room, if anything was wrong before."""
        if error is not None:
            return replace(self, words=str(error), full=isinstance(error, StorageFull))
        return self if self.low else WELL

    def looked(self, free_bytes: int | None, least_bytes: int) -> StoreStanding:
        """So much room is left."""
        if free_bytes is None or not least_bytes:
            return self
        needed = least_bytes + max(least_bytes // 4, MIB) if self.low else least_bytes
        if free_bytes < needed:
            words = (
                f"Only {free_bytes // MIB} MiB are free on the disk that holds the state, and {needed // MIB} have to be: no new "
                "message is taken. Make room there."
            )
            return StoreStanding(words, full=True, low=True)
        if self.low:
            return replace(self, low=False, words=NOT_KNOWN_YET)  # until a write has got through
        return self


WELL = StoreStanding()


class StoreWatch:
    """Listens to the commits (`on`), and tries one if it must."""

    def __init__(
        self,
        store: Checkable,
        clock: Clock,
        free: Callable[[], int | None] | None = None,
        least_bytes: int = 0,
        damaged: Callable[[], bool] = bool,
    ) -> None:
        """`free` says how much room is left, and may take its time; below `least_bytes` nothing new is taken.

        `damaged` says whether what all need is.
        """
        self._store = store
        self._clock = clock
        self._free = free
        self._least = least_bytes
        self._looking: asyncio.Future[tuple[int | None, bool]] | None = None
        self._known_at: float | None = None
        self._asking = asyncio.Lock()
        self.free_bytes: int | None = None
        """What room was left at the last look; whoever tells of it tells this figure. None: it could not be found out."""
        self.astray = False
        """At the last look files were not those that are written; the next write mends that, or says why it cannot."""
        self.damaged = damaged
        self.standing = WELL
        self.failing_since = 0
        """ms; 0 if it works."""
        self._failing_at = 0.0
        """The same by the monotonic clock."""

    @property
    def words(self) -> str:
        """Why it does not work, for whoever runs the gateway; empty if it does."""
        return EVERYBODYS if self.damaged() else self.standing.words

    def refusal(self) -> NotAccepted | None:
        """Why nothing new is taken, without trying: it would wait for the storage for long; None if it may be tried."""
        if self.damaged():
            return NotAccepted(DAMAGED_WORDS, NotAcceptedCode.STORAGE_DAMAGED)
        if self.standing.full:
            return NotAccepted(FULL_WORDS, NotAcceptedCode.STORAGE_FULL, FULL_SECONDS)
        if self.words and self.words != NOT_KNOWN_YET:
            return NotAccepted(AWAY_WORDS, NotAcceptedCode.STORAGE_AWAY)
        return None

    def on(self, signal: Signal) -> None:
        """Note how a commit went."""
        if isinstance(signal, Committed):
            self._noted(self.standing.committed(stored=signal.stored))

    async def works(self, fresh_seconds: float = FRESH_SECONDS) -> bool:
        """Whether it takes writes, as of at most so long ago. Tries a write if that is not known."""
        if not self._fresh(fresh_seconds):
            async with self._asking:
                if not self._fresh(fresh_seconds):  # somebody else has asked meanwhile
                    await self.look()
                    await self._ask()
        return not self.words

    async def look(self) -> None:
        """See how much room is left, and whether the files are ours. A disk that does not answer is asked by one thread only."""
        looking = self._looking
        if looking is None or looking.done():
            self._looking = looking = asyncio.get_running_loop().run_in_executor(None, self._seen)
        done, _ = await asyncio.wait({looking}, timeout=PATIENCE_SECONDS)
        if done and not looking.cancelled() and looking.exception() is None:
            self.free_bytes, self.astray = looking.result()
            after = self.standing.looked(self.free_bytes, self._least)
            if after != self.standing:
                self._noted(after)

    def _seen(self) -> tuple[int | None, bool]:
        return self._free() if self._free is not None else None, self._store.astray()

    def _fresh(self, seconds: float) -> bool:
        known = self._known_at is not None and self.words != NOT_KNOWN_YET and not self.astray
        return known and self._clock.monotonic() - (self._known_at or 0.0) < seconds

    async def _ask(self) -> None:
        if self.standing.low:  # what room is left is not for this
            self._known_at = self._clock.monotonic()
            return
        try:
            await self._store.check(PATIENCE_SECONDS, ROOM_BYTES if self.words else 0)
        except StorageUnavailable as error:
            self._noted(self.standing.tried(error))
        else:
            self._noted(self.standing.tried(None))

    def _noted(self, after: StoreStanding) -> None:
        self._known_at = steady = self._clock.monotonic()
        before, self.standing = self.standing.words, after
        words = after.words
        if words and before in ("", NOT_KNOWN_YET) and words != before:
            if not self.failing_since:
                self.failing_since, self._failing_at = self._clock.now_ms(), steady
            log.error("storage.failing", error=words)
        elif before and not words:
            log.warning("storage.works_again", seconds=round(steady - self._failing_at))
            self.failing_since = 0
