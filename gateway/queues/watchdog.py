"""Watches the drivers: one that has done nothing for longer than its longest open timer has a bug, and its turn is ended visibly.

A turn whose machine says that it runs and whose driver is dead would be silent for ever, and its queue with it. So the turn is
ended here in the driver's place: from the journal, with `internal_error`, together with what the chat is to be shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from agent_core.driver.closing import Closer, closing_of
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import fold, recorded
from agent_core.patience import LATE_LOOK
from agent_core.ports import Clock, Ids
from agent_core.store.store import Conflict, Fenced, StorageUnavailable
from agent_core.turn.events import DriverFailed, Event, TurnEnded
from gateway.queues.queue import Running

log = structlog.get_logger("turn")


class Watchdog:
    """`run` it as a task."""

    def __init__(
        self,
        running: Callable[[], Iterable[Running]],
        closer: Closer,
        clock: Clock,
        ids: Ids,
        look_seconds: float,
        grace_seconds: float,
    ) -> None:
        self._running = running
        self._closer = closer
        self._clock = clock
        self._ids = ids
        self._look_seconds = look_seconds
        self._grace_seconds = grace_seconds

    async def run(self) -> None:
        """Until cancelled."""
        suspects: set[str] = set()
        while True:
            before = self._clock.monotonic()
            await asyncio.sleep(self._look_seconds)
            late = self._clock.monotonic() - before > self._look_seconds * LATE_LOOK
            overdue = [] if late else [r for r in self._running() if r.driver.overdue_seconds > self._grace_seconds]
            for running in overdue:
                if running.driver.identity.turn in suspects:  # twice in a row: it is no accident of timing
                    await self._end(running)
            suspects = {running.driver.identity.turn for running in overdue}

    async def _end(self, running: Running) -> None:
        reference = self._ids.new("err")
        driver = running.driver
        log.error(
            "turn.driver_stuck",
            turn=driver.identity.turn,
            phase=driver.turn.phase.value,
            overdue_seconds=round(driver.overdue_seconds),
            reference=reference,
        )
        try:
            await self._close(running, reference)
        except (Conflict, Fenced) as error:
            log.warning("turn.ended_meanwhile", turn=driver.identity.turn, error=str(error))
            running.leave()
        except StorageUnavailable as error:
            log.warning("turn.driver_stuck_and_no_storage", turn=driver.identity.turn, error=str(error))
            # It waits for the storage like everybody, and has its time again then.
            driver.active_at = self._clock.monotonic()

    async def _close(self, running: Running, reference: str) -> None:
        driver, now = running.driver, self._clock.now_ms()
        stored = await self._closer.store.turns.journal(driver.identity.turn)
        try:
            turn = fold((row.kind, row.body) for row in stored)
        except UnreadableJournal as error:  # our own bug; what this process knows of the turn has to do
            log.exception("turn.unreadable", turn=driver.identity.turn, reference=reference, error=str(error))
            turn = driver.turn
        events: list[Event] = []
        if turn.exit is None:
            failed = DriverFailed(at=now, reference=reference)
            events = recorded(failed, turn.feed(failed))
        ended = any(row.kind == TurnEnded.kind() for row in stored)
        if not driver.closed:
            end = closing_of(
                driver.identity, turn, now, len(stored), events, content_at=driver.first_content_at, stored=ended
            )
            await self._closer.close(end, driver.outlet)
        running.give_up(turn)
