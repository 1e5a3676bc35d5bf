"""A bell: wakes one waiting task when there is something new to see. No decision about what that is.

What changes rarely (a tool begins, a turn ends) rings at once. Text on its way rings at once after a quiet moment and then once
a frame; the frames of all bells of a process fall together, so that a hundred streams cost one wake-up of the loop and not a hundred.

Waiting costs one future. The limit of a wait is one timer for the life of the bell that is moved by writing a number, because
a stream waits forty times a second and times out once a quarter of a minute.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol

from agent_core.patience import EARLY_SECONDS, timer_at

FRAME_SECONDS = 0.05
"""How often a watcher is shown text on its way."""


HALF = FRAME_SECONDS / 2


def next_frame(now: float, behind: float = 0.0, seconds: float = FRAME_SECONDS) -> float:
    """When the next frame after `now` begins, or that much `behind` its beginning; frames have so many `seconds` (all in the loop's seconds)."""
    return ((now - behind) // seconds + 1) * seconds + behind


MANY, LONG_SECONDS = 12, 2 * FRAME_SECONDS
"""Where so many share a frame, every second one is left out: what a frame costs each of them does not depend on how much text is in it, and a tenth of
a second is still read as it comes."""
TOGETHER = 32
"""So many callbacks of a frame are called in one go; others have their turn in between."""


class Frames:
    """Calls any number of callbacks when the next frame begins, each in the context of whoever asked for it, with one timer for all of them. One an
    event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Context, Callable[[], None]]] = []
        self._latest = 0
        """How many shared the latest one."""

    def begins(self, callback: Callable[[], None], context: Context | None = None) -> None:
        """Call it, once, when the next frame begins, in this context or a copy of the one of here. It must not raise."""
        if not self._waiting:
            seconds = LONG_SECONDS if self._latest >= MANY else FRAME_SECONDS
            self.loop.call_at(next_frame(self.loop.time(), seconds=seconds), self._begin)
        self._waiting.append((copy_context() if context is None else context, callback))

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._latest = len(waiting)
        self._call(waiting)

    def _call(self, waiting: list[tuple[Context, Callable[[], None]]]) -> None:
        for context, callback in waiting[:TOGETHER]:
            context.run(callback)
        if len(waiting) > TOGETHER:
            self.loop.call_soon(self._call, waiting[TOGETHER:])


class TextTaker(Protocol):
    """Whoever takes new text where it comes."""

    def new_text(self) -> bool:
        """There is some; whether it was taken. It must not raise."""
        ...


class Bell:
    """Ring it, and `wait` returns. One task waits at a time. Make it inside the event loop; `close` it at the end."""

    __slots__ = ("_context", "_deadline", "_frame", "_loop", "_rang", "_reader", "_text_at", "_timer", "_waiter")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rang = False
        self._waiter: asyncio.Future[None] | None = None
        self._reader: TextTaker | None = None
        self._context: Context | None = None
        self._frame: asyncio.TimerHandle | None = None
        self._text_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = math.inf

    def ring(self) -> None:
        """There is something new; wake the waiting task at once."""
        self._rang = True
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def ring_in_frame(self) -> None:
        """There is new text; wake the waiting task at the next frame, or at once if the last frame is long past."""
        if self._rang or self._frame is not None:
            return
        now = self._loop.time()
        if now - self._text_at >= HALF:  # half: what comes in step with the frames must not wait for a second one
            self._text_at = now
            self._ring_for_text()
        else:
            # In the middle of a frame: what streams is read when one begins. Shown at the same time, it would always be a frame old.
            self._frame = self._loop.call_at(next_frame(now, HALF), self._on_frame)

    def _on_frame(self) -> None:
        self._frame = None
        self._text_at = self._loop.time()
        self._ring_for_text()

    def _ring_for_text(self) -> None:
        waiter, reader, context = self._waiter, self._reader, self._context
        asleep = waiter is not None and not waiter.done() and not self._rang
        if reader is None or context is None or not asleep or not context.run(reader.new_text):
            self.ring()

    async def wait(self, timeout_seconds: float, reader: TextTaker | None = None) -> bool:
        """True once it rang since the last wait; False if it does not within the time. Of new text `reader` is told in its place, in the context of
        whoever waits; where that takes it, nobody is woken."""
        if not self._rang:
            self._waiter = self._loop.create_future()
            if reader is not None:
                self._reader, self._context = reader, copy_context()
            self._deadline = self._loop.time() + timeout_seconds
            if self._timer is None or self._timer.when() > self._deadline:
                self._arm()
            try:
                await self._waiter
            finally:
                self._waiter = self._reader = self._context = None
                self._deadline = math.inf
        rang, self._rang = self._rang, False
        return rang

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = timer_at(self._loop, self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._loop.time() + EARLY_SECONDS < self._deadline:
            self._arm()
        else:
            waiter.set_result(None)

    def close(self) -> None:
        """Nobody will wait any more."""
        for timer in (self._timer, self._frame):
            if timer is not None:
                timer.cancel()
        self._timer = self._frame = None
