"""An event loop with virtual time and seeded scheduling.

Time stands still while anything can run, and then jumps to the next timer. Among the tasks that could take a step one is drawn;
plain callbacks keep their order, as asyncio promises it. Work for an executor runs in the loop itself after a drawn delay,
so a run has one thread and can be repeated from its seed.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

MAX_STEPS = 400_000
"""More steps than any honest scenario takes: a loop that spins is stopped, not waited for."""


CLOSED = "Event loop is closed"


class TooManySteps(BaseException):
    """The program spins."""


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory."""

    number = 0

    def __init__(self, *arguments: Any, **more: Any) -> None:
        SimTask.number += 1
        self._number = SimTask.number
        super().__init__(*arguments, **more)

    def __hash__(self) -> int:
        return self._number


class SimHandle(asyncio.Handle):
    """As asyncio's, without what that asks of a loop which is being looked into."""

    __slots__ = ("steps",)
    _loop: Any
    _callback: Any
    _args: Any
    _context: Any
    _cancelled: bool
    _repr: None
    _source_traceback: None
    steps: bool
    """It is the step of a task."""

    def __init__(self, callback: Any, args: Any, loop: Any, context: Context | None = None) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled = False
        self._repr = self._source_traceback = None
        self.steps = isinstance(getattr(callback, "__self__", None), asyncio.Task)


class SimTimer(asyncio.TimerHandle):
    """The same of a timer."""

    __slots__ = ("steps",)
    _loop: Any
    _callback: Any
    _args: Any
    _context: Any
    _cancelled: bool
    _repr: None
    _source_traceback: None
    _when: float
    _scheduled: bool
    steps: bool

    def __init__(self, when: float, callback: Any, args: Any, loop: Any, context: Context | None = None) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args, self._when = loop, callback, args, when
        self._cancelled = self._scheduled = False
        self._repr = self._source_traceback = None
        self.steps = False


class SimLoop(asyncio.BaseEventLoop):
    """Run it like any loop, with `run_until_complete`. `kill` stops it for ever in the middle of what it does."""

    _ready: Any
    _scheduled: Any
    """When, in which order they were asked for, and the timers: compared without a call of Python."""
    _stopping: bool
    _closed: bool

    def __init__(self, seed: int, start: float = 0.0) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.now = start
        self.steps = 0
        self._timers = 0
        self.killed = False
        self.before_work: Callable[[], None] = lambda: None
        """Called around each piece of executor work; may raise instead of it, or kill."""
        self.after_work: Callable[[], None] = lambda: None
        self.waits_for_work: Callable[[], float] = lambda: 0.0
        """How long such work waits for what is away."""
        self.set_task_factory(self._make_task)
        vars(self)["get_debug"] = bool  # False, said without a call of Python: each future and each task asks

    @staticmethod
    def _make_task(
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        return SimTask(coroutine, loop=loop, context=context)

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        if self._closed:
            raise RuntimeError(CLOSED)
        handle = SimHandle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if self._closed:
            raise RuntimeError(CLOSED)
        timer = SimTimer(when, callback, args, self, context)
        self._timers += 1
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is thrown away when its time comes."""

    def kill(self) -> None:
        """Nothing of this loop happens any more."""
        self.killed = True
        self._stopping = True

    def _run_once(self) -> None:
        """One step: a callback, or the next tick of the clock. What `BaseEventLoop.run_forever` calls again and again."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooManySteps(f"{MAX_STEPS} steps, at {self.now:.1f} s of virtual time")
        if not self._ready:
            self._advance()
            return
        ready = self._ready
        handle = self._draw() if len(ready) > 1 and ready[0].steps else ready.popleft()
        if not handle._cancelled:
            handle._run()

    def _advance(self) -> None:
        if (due := self.next_at()) is None:
            raise RuntimeError("nothing can ever happen any more: a task waits for something that nobody will do")
        self.now = max(self.now, due)
        self.make_due()

    def next_at(self) -> float | None:
        """When the next timer is due that counts; None if there is none."""
        scheduled = self._scheduled
        while scheduled and scheduled[0][2]._cancelled:
            heapq.heappop(scheduled)
        return scheduled[0][0] if scheduled else None

    def make_due(self) -> None:
        """What is due by now is ready to be run."""
        scheduled, now = self._scheduled, self.now
        while scheduled and scheduled[0][0] <= now:
            timer = heapq.heappop(scheduled)[2]
            if not timer._cancelled:
                self._ready.append(timer)

    def _draw(self) -> Any:
        """The next handle, of those that are a task's step: the first is one."""
        ready = self._ready
        steps = [index for index in range(min(len(ready), 8)) if ready[index].steps]
        index = self.random.choice(steps)
        handle = ready[index]
        del ready[index]
        return handle

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Run `func` in this thread, a little later."""
        done: asyncio.Future[T] = self.create_future()
        work = self._work if executor is not None else self._think
        away = self.waits_for_work() if executor is not None else 0.0
        self.call_later(away or self.random.choice((0.0, 0.001, 0.004, 0.03)), work, done, func, arguments)
        return done

    def _work(self, done: asyncio.Future[T], func: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        try:
            self.before_work()
            if self.killed:
                return
            result = func(*arguments)
            self.after_work()
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits for the work
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done() and not self.killed:
                done.set_result(result)

    def _think(self, done: asyncio.Future[T], func: Callable[..., T], arguments: tuple[Any, ...]) -> None:
        """Work of the default executor: it has nothing to do with the storage."""
        try:
            result = func(*arguments)
        except Exception as error:  # noqa: BLE001 - as above
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done() and not self.killed:
                done.set_result(result)

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...

    def open_timers(self) -> list[str]:
        """What is still scheduled, in words: after an orderly end there should be nothing."""
        return [repr(timer._callback) for _, _, timer in self._scheduled if not timer._cancelled]
