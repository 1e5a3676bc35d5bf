"""The orderly stop: running turns may go on for a while, then they are left open, and the next process goes on with them. One that waits for a
person's approval is left at once: who decides may do so for hours.

In the last seconds no model call and no tool is begun: what would be cut off anyway need not be begun, and cannot be in doubt. Apart from the runner, because service files are held to its times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Set

import structlog

from gateway.queues.queue import Running

log = structlog.get_logger("gateway")

HOLD_SHARE, HOLD_MOST_SECONDS = 0.25, 5.0
LOOK_SECONDS = 0.25
"""Between two looks for turns that have come to wait for a person."""
LEAVE_SECONDS = 8.0
"""Cancelling what runs, and storing that it is left."""


def hold_seconds(drain_seconds: float) -> float:
    """How long before its end a drain begins nothing more."""
    return min(HOLD_MOST_SECONDS, drain_seconds * HOLD_SHARE)


class Draining:
    """One drain. `tasks` are those that run turns."""

    def __init__(
        self, tasks: Set[asyncio.Task[None]], running: Callable[[], Iterable[Running]], hurry: asyncio.Event
    ) -> None:
        self._tasks = tasks
        self._running = running
        self._hurry = hurry

    async def run(self, seconds: float) -> None:
        """Return when no turn runs any more, at the latest some seconds after the time is over."""
        if not self._tasks:
            return
        log.info("gateway.draining", turns=len(list(self._running())), seconds=seconds)
        last = hold_seconds(seconds)
        if not await self._over(seconds - last):
            for one in self._running():
                one.driver.hold()
            if not await self._over(last):
                for one in self._running():
                    one.driver.leave()
        await asyncio.wait(self._tasks, timeout=LEAVE_SECONDS)

    async def _over(self, seconds: float) -> bool:
        """Whether all is over, when it is or when the time is. A second signal ends the waiting, and a turn that only waits for a person is left."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        hurried = asyncio.create_task(self._hurry.wait(), name="hurry")
        ended = asyncio.ensure_future(asyncio.wait(self._tasks))
        try:
            while not (hurried.done() or ended.done()) and (left := until - loop.time()) > 0:
                for one in self._running():
                    if one.driver.waits_for_person:
                        one.driver.leave()
                step = min(left, LOOK_SECONDS)
                await asyncio.wait({hurried, ended}, timeout=step, return_when=asyncio.FIRST_COMPLETED)
            return ended.done()
        finally:
            hurried.cancel()
            ended.cancel()
