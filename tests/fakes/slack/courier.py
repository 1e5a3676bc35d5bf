"""Brings what is in the outbox to the app: to one of its sockets, or to its address."""

from __future__ import annotations

import asyncio
import time

from tests.fakes.common import GRAIN_SECONDS, Bell, Clock
from tests.fakes.slack.outbox import Outbox
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.webhooks import Webhooks

LONG_SECONDS = 60.0


class Courier:
    """One task that sends what is due, and gives up on what was not acknowledged."""

    def __init__(
        self, clock: Clock, bell: Bell, outbox: Outbox, sockets: Sockets, webhooks: Webhooks, ping_seconds: float | None
    ) -> None:
        self._clock = clock
        self._bell = bell
        self._outbox = outbox
        self._sockets = sockets
        self._webhooks = webhooks
        self._ping_seconds = ping_seconds
        self._task: asyncio.Task[None] | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run(), name="slack fake: courier")

    async def stop(self) -> None:
        """End, with everything that is under way."""
        tasks = {task for task in (self._task, *self._under_way) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._webhooks.close()

    async def _run(self) -> None:
        next_ping = time.monotonic() + (self._ping_seconds or 0.0)
        while True:
            if self._ping_seconds is not None and time.monotonic() >= next_ping:
                next_ping = time.monotonic() + self._ping_seconds
                await self._sockets.ping()
            if self._outbox.expire(self._clock.monotonic()):
                self._bell.ring()
            due = self._outbox.due(self._clock.monotonic())
            if due:
                for envelope in due:
                    if self._webhooks.url is None:
                        await self._sockets.tell(envelope)
                        continue
                    envelope.due = None
                    task = asyncio.create_task(self._webhooks.tell(envelope), name="slack fake: webhook")
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
                self._bell.ring()
                continue
            change = self._outbox.next_change()
            waits = [LONG_SECONDS if change is None else change - self._clock.monotonic()]
            if self._ping_seconds is not None:
                waits.append(next_ping - time.monotonic())
            # A little at least, so that a wait that ends too early by rounding does not spin.
            await self._bell.wait(max(GRAIN_SECONDS / 50, min(waits)))
