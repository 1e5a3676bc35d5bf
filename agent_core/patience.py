"""A limit of time that is not taken for passed because our own loop was held.

A process that is busy or suspended for a while finds, when it goes on, that its timers are long due, and that in its sockets lies what came
meanwhile. Whoever judges by the clock alone then says "nothing came", and throws away what is there. So a limit that fires late gives
those whom it waits for one more moment in which they can be heard; only a limit that fires in time, or behind that moment, has passed.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

LATE_SECONDS = 0.05
"""A timer that is later than this was held up."""
CHANCE_SECONDS = 0.5


def came_words(came: int) -> str:
    """How much of an answer was there when the time for it was over, as the end of a sentence."""
    return f"only {came:,} bytes of it came, too slowly" if came else "nothing of it came"


class Limit:
    """Like `asyncio.timeout_at`, on the loop's clock; it may be moved as often as one likes, which costs next to nothing."""

    __slots__ = ("_due", "_guard", "_loop", "_timer")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + seconds
        self._guard = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Limit:
        await self._guard.__aenter__()
        self._arm(self._due)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._disarm()
        return await self._guard.__aexit__(kind, error, trace)

    def move(self, seconds: float) -> None:
        """From now on it is so far away. A timer that fires too early for that is set again then, not each time."""
        self._due = self._loop.time() + seconds
        if self._timer is not None and self._due < self._timer.when():
            self._arm(self._due)

    def _arm(self, due: float) -> None:
        self._disarm()
        self._timer = self._loop.call_at(due, self._fire)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        now = self._loop.time()
        if now < self._due:
            self._arm(self._due)
        elif now - self._due > LATE_SECONDS:
            self._due = now + CHANCE_SECONDS
            self._arm(self._due)
        else:
            self._guard.reschedule(now)
