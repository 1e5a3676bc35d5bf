"""A bell for chats, which take a new state only so often."""

from __future__ import annotations

import asyncio

from agent_core.bell import Bell


class ThrottledBell(Bell):
    """A bell that text rings rarely: a chat takes a new state only so often."""

    __slots__ = ("_later", "seconds")

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self._later: asyncio.TimerHandle | None = None

    def ring_in_frame(self) -> None:
        if self._later is None:
            self._later = self._loop.call_later(self.seconds / 4, self._now)

    def _now(self) -> None:
        self._later = None
        self.ring()

    def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
        super().close()
