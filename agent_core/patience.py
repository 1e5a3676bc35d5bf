"""A limit of time that is not taken for passed because our own loop was held.

A process that is busy or suspended for a while finds, when it goes on, that its timers are long due, and that in its sockets lies what came
meanwhile. Whoever judges by the clock alone then says "nothing came", and throws away what is there. So a limit that fires late gives
those whom it waits for one more moment in which they can be heard; only a limit that fires in time, or behind that moment, has passed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

LATE_SECONDS = 0.05
"""A timer that is later than this was held up."""
EARLY_SECONDS = 0.001
"""So much too soon a timer may fire: loops count in milliseconds. Set again for the rest, it would fire at once, a hundred times until that is over."""
SOONEST_SECONDS = 0.001
"""No timer is set for sooner."""
CHANCE_SECONDS = 0.5
LATE_LOOK = 2.0
"""Who looks again and again, and comes later than so many times the pause, was held up with the whole process: nobody is judged then."""


def came_words(came: int) -> str:
    """How much of an answer was there when the time for it was over, as the end of a sentence."""
    return f"only {came:,} bytes of it came, too slowly" if came else "nothing of it came"


def timer_at(loop: asyncio.AbstractEventLoop, at: float, call: Callable[[], object]) -> asyncio.TimerHandle:
    """A timer of which one can ask when it is due, also where it is due already: what is due at once uvloop calls soon, by a handle without a time."""
    return loop.call_at(max(at, loop.time() + SOONEST_SECONDS), call)


class Limit:
    """Like `asyncio.timeout_at`, on the loop's clock; it may be moved as often as one likes, which costs next to nothing.

    It does not stand on `asyncio.timeout`, of which a turn and each of its tools would make one more: what it would do is what `_fire` and
    `__aexit__` do, in the words of asyncio's own documentation of `Task.uncancel`.
    """

    __slots__ = ("_cancelling", "_due", "_loop", "_passed", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + seconds
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        """How often the task had been asked to end when the block began."""
        self._passed = False
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Limit:
        self._task = task = asyncio.current_task(self._loop)
        assert task is not None, "a limit is for a task"
        self._cancelling = task.cancelling()
        self._timer = timer_at(self._loop, self._due, self._fire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        task, self._timer, self._task = self._task, None, None
        if self._passed and task is not None:
            ours = task.uncancel() <= self._cancelling
            if ours and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error
        return None

    def move(self, seconds: float) -> None:
        """From now on it is so far away. A timer that fires too early for that is set again then, not each time."""
        self._due = self._loop.time() + seconds
        if self._timer is not None and self._due < self._timer.when():
            self._arm(self._due)

    def _arm(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer_at(self._loop, due, self._fire)

    def _fire(self) -> None:
        now = self._loop.time()
        if now + EARLY_SECONDS < self._due:
            self._arm(self._due)
        elif now - self._due > LATE_SECONDS:
            self._due = now + CHANCE_SECONDS
            self._arm(self._due)
        elif self._task is not None:
            self._timer, self._passed = None, True
            self._task.cancel()
