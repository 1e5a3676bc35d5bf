"""What the agent does in each thread, for platforms that show it: beside the deliveries, which never wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from adapters.contract.chat import CallFailed, ChatAddress, ChatPort, Doing, Fate
from agent_core.ports import Clock
from gateway.delivery.calls import COSMETIC_SECONDS, called

PAUSE_SECONDS = 5.0
"""After what the agent does could not be shown."""
TROUBLES = 5
"""So many times in a row: then it is not shown in this chat any more."""


class Doings:
    """Those of one surface."""

    def __init__(self, address: ChatAddress, port: ChatPort, clock: Clock, ring: Callable[[], None]) -> None:
        self.refused = False
        """The chat takes no such thing."""
        self._address = address
        self._port = port
        self._clock = clock
        self._ring = ring
        self._shown: dict[str, tuple[Doing, str]] = {}
        """By thread, and for whom."""
        self._telling: asyncio.Task[None] | None = None
        self._not_before = 0.0
        self._troubles = 0

    def show(self, running: Mapping[str, tuple[Doing, str]], *, last_word_waits: bool) -> None:
        """Show what has changed. `running` is what is done now; what was said last comes before the word that it was the last."""
        if self.refused or self._telling is not None or self._clock.monotonic() < self._not_before:
            return
        wanted = {thread: (Doing.READY, person) for thread, (_, person) in self._shown.items()} | dict(running)
        for thread, (doing, person) in wanted.items():
            shown = self._shown.get(thread, (Doing.READY, ""))[0]
            if shown is doing:
                if doing is Doing.READY:
                    self._shown.pop(thread, None)
            elif doing is not Doing.READY or not last_word_waits:
                self._telling = asyncio.create_task(self._tell(thread, doing, person))
                return

    async def _tell(self, thread: str, doing: Doing, person: str) -> None:
        try:
            call = self._port.doing(self._address, thread, doing, person)
            await called(call, self._address.platform, COSMETIC_SECONDS)
            self._shown[thread] = (doing, person)
            self._troubles = 0
        except CallFailed as error:
            self._troubles += 1
            self.refused = error.fate is Fate.REFUSED or self._troubles >= TROUBLES
            self._not_before = self._clock.monotonic() + max(error.retry_after, PAUSE_SECONDS)
        finally:
            self._telling = None
            self._ring()

    async def end(self) -> None:
        """Give up what is being told."""
        if (telling := self._telling) is not None:
            telling.cancel()
            await asyncio.wait({telling})
