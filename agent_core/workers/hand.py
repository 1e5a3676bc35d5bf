"""The one thread in which the writer's line works, and the way to it: a queue there, one call of the loop back.

Not a `ThreadPoolExecutor`: what that needs so that anybody may wait for its futures (a lock and a condition for each, asked a dozen times) took
longer than the way itself, and each lock that two threads want is a call of the kernel.

Laws (tests/agent_core/test_hand.py): one piece of work at a time, in the order in which they came; what was given up before it began is not done;
what is under way is done to its end, whoever waits for it; `end` waits for what is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
_Work: TypeAlias = "tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]"


class WorkerThread:
    """`run` what is to be done, `end` at the end. Its thread begins with the first piece of work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The one from which it is asked."""

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """What `work` gives, or raises, in the thread."""
        if self._thread is None or self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = Thread(target=self._works, name=self._name, daemon=True)
            self._thread.start()
        loop = self._loop
        done: asyncio.Future[T] = loop.create_future()
        self._queue.put((loop, done, work))
        return done

    def end(self) -> None:
        """Nothing is done any more; what was asked for before is."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _works(self) -> None:
        while (asked := self._queue.get()) is not None:
            _carry_out(*asked)
            del asked  # or the last piece of work would be held until the next comes


def _carry_out(loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], work: Callable[[], Any]) -> None:
    if done.cancelled():
        return
    result, error = None, None
    try:
        result = work()
    except BaseException as raised:  # noqa: BLE001 - it belongs to whoever waits for the work
        error = raised
    try:  # noqa: SIM105 - asked with each commit, and a `suppress` takes three calls
        loop.call_soon_threadsafe(_tell, done, result, error)
    except RuntimeError:
        pass  # the loop has ended, and with it whoever waited


def _tell(done: asyncio.Future[Any], result: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(result)
