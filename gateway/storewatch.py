"""Whether the store takes writes: known from everybody's commits, and tried by a write of its own when somebody asks and none was lately."""

from __future__ import annotations

import asyncio
from typing import Protocol

import structlog

from agent_core.ports import Clock
from agent_core.signals import Committed, Signal
from agent_core.store.store import StorageUnavailable

log = structlog.get_logger("storage")

FRESH_SECONDS = 2.0
"""What is known is not asked again within this time, however many ask."""
PATIENCE_SECONDS = 3.0
"""How long a write may take before the answer is that it does not work."""
NOT_KNOWN_YET = "The last write failed."
"""All that a failed commit tells; whoever asks next finds out why, and the log is told that too."""


class Checkable(Protocol):
    """A store that can say whether it takes writes, by raising `StorageUnavailable` if it does not."""

    async def check(self, timeout_seconds: float = 5.0) -> None: ...


class StoreWatch:
    """Listens to the commits (`on`), and tries one if it must."""

    def __init__(self, store: Checkable, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known_at: float | None = None
        self._asking = asyncio.Lock()
        self.words = ""
        """Why it does not work, for whoever runs the gateway; empty if it does."""
        self.failing_since = 0
        """ms; 0 if it works."""
        self._failing_at = 0.0
        """The same by the monotonic clock."""

    def on(self, signal: Signal) -> None:
        """Note how a commit went."""
        if isinstance(signal, Committed):
            self._noted("" if signal.stored else self.words or NOT_KNOWN_YET)

    async def works(self, fresh_seconds: float = FRESH_SECONDS) -> bool:
        """Whether it takes writes, as of at most so long ago. Tries a write if that is not known."""
        if not self._fresh(fresh_seconds):
            async with self._asking:
                if not self._fresh(fresh_seconds):  # somebody else has asked meanwhile
                    await self._ask()
        return not self.words

    def _fresh(self, seconds: float) -> bool:
        known = self._known_at is not None and self.words != NOT_KNOWN_YET
        return known and self._clock.monotonic() - (self._known_at or 0.0) < seconds

    async def _ask(self) -> None:
        try:
            await self._store.check(PATIENCE_SECONDS)
        except StorageUnavailable as error:
            self._noted(str(error))
        else:
            self._noted("")

    def _noted(self, words: str) -> None:
        self._known_at = steady = self._clock.monotonic()
        before, self.words = self.words, words
        if words and before in ("", NOT_KNOWN_YET) and words != before:
            if not self.failing_since:
                self.failing_since, self._failing_at = self._clock.now_ms(), steady
            log.error("storage.failing", error=words)
        elif before and not words:
            log.warning("storage.works_again", seconds=round(steady - self._failing_at))
            self.failing_since = 0
