"""Looks through the whole database in the background when there is a reason to: after a process that died, after rows that cannot be read.

Law: nobody waits for it. It reads on a connection and a thread of its own (`agent_core.store.keeping.checking`), ends at once when the gateway
stops, and does not begin again before `AGAIN_SECONDS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.store.errors import CannotOpen
from agent_core.store.keeping.checking import Soundness, check
from agent_core.store.store import StorageUnavailable, Store

log = structlog.get_logger("storage")

BEGIN_SECONDS = 5.0
"""After a start others come first."""
AGAIN_SECONDS = 600.0


class SoundnessWatch:
    """`running` is its life; whoever meets damage calls `wanted`."""

    def __init__(
        self,
        where: str | Path,
        store: Store,
        clock: Clock,
        damages: Callable[[], int],
        again: Callable[[], bool],
        on_sound: Callable[[], None],
    ) -> None:
        """`damages` counts what was found to be damaged since the start: one more is a reason to look, and `again` says so without one.

        `on_sound` is told when everything was looked at and nothing is damaged.
        """
        self._where = where
        self._store = store
        self._clock = clock
        self._damages = damages
        self._again = again
        self._on_sound = on_sound
        self.found: Soundness | None = None
        """What the last look found; None if there was no reason for one."""
        self.at = 0
        """When that was, ms."""

    def words(self) -> str:
        """What is damaged, in words; empty if nothing is known to be."""
        if self.found is None or not self.found.complaints:
            return ""
        return f"The database is damaged in {', '.join(self.found.broken)}. Run outspoken db check, and restore a backup if it says so."

    def places(self) -> int:
        """How many complaints the last look had."""
        return len(self.found.complaints) if self.found is not None else 0

    def status(self) -> dict[str, Json]:
        if self.found is None:
            return {"looked_at": None}
        return {
            "looked_at": self.at,
            "complaints": list(self.found.complaints),
            "not_looked": self.found.not_looked or None,
        }

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """It looks, when there is a reason, for the block."""
        async with beside(self._run, "soundness"):
            yield

    async def _run(self) -> None:
        await asyncio.sleep(BEGIN_SECONDS)
        seen = 0
        try:
            due = await self._store.left.crashed_before(self._store.node)
        except StorageUnavailable:
            due = True
        while True:
            damages = self._damages()
            if due or damages > seen or self._again():
                seen, due = damages, not await self._look()
                await asyncio.sleep(AGAIN_SECONDS)
            await asyncio.sleep(BEGIN_SECONDS)

    async def _look(self) -> bool:
        """False if it could not be looked at just now: that is still to be done."""
        began = self._clock.monotonic()
        try:
            found = await check(self._where)
        except CannotOpen as error:
            log.warning("storage.not_checked", error=str(error))
            return False
        except Exception:
            log.exception("storage.check_failed")
            return True  # a mistake of ours, which would come again
        self.found, self.at = found, self._clock.now_ms()
        seconds = round(self._clock.monotonic() - began, 1)
        if found.complaints:
            log.error(
                "storage.unsound", seconds=seconds, complaints=list(found.complaints[:5]), count=len(found.complaints)
            )
        else:
            log.info("storage.sound", seconds=seconds, not_looked=found.not_looked or None)
            if not found.not_looked:
                self._on_sound()
        return True
