"""Watches the drivers: one that has done nothing for longer than its longest open timer has a bug, and its turn is ended visibly.

A turn whose machine says that it runs and whose driver is dead would be silent for ever, and its queue with it. So the turn is
ended here in the driver's place: from the journal, with `internal_error`, together with what the chat is to be shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from agent_core.journal.rows import encode, fold, recorded
from agent_core.learning.stalls import rows_of
from agent_core.ports import Clock, Ids
from agent_core.store.store import Conflict, Fenced, StorageUnavailable, Store
from agent_core.store.turns.rows import JournalRow
from agent_core.turn.errors import UnreadableJournal
from agent_core.turn.events import DriverFailed, Event, TurnEnded
from agent_core.turn.view import view
from gateway.sessions.queue import Running

log = structlog.get_logger("turn")

LATE_LOOK = 2.0
"""A look that comes later than so many times its pause says that the whole process stood still: nobody is judged then."""


class Watchdog:
    """`run` it as a task."""

    def __init__(
        self,
        running: Callable[[], Iterable[Running]],
        store: Store,
        clock: Clock,
        ids: Ids,
        look_seconds: float,
        grace_seconds: float,
    ) -> None:
        self._running = running
        self._store = store
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
        except StorageUnavailable as error:
            log.warning("turn.driver_stuck_and_no_storage", turn=driver.identity.turn, error=str(error))
            driver.active_at = (
                self._clock.monotonic()
            )  # it waits for the storage like everybody, and has its time again then
            return
        running.given_up.set()

    async def _close(self, running: Running, reference: str) -> None:
        driver, now = running.driver, self._clock.now_ms()
        identity = driver.identity
        stored = await self._store.journal(identity.turn)
        try:
            turn = fold((row.kind, row.body) for row in stored)
        except UnreadableJournal as error:  # our own bug; what this process knows of the turn has to do
            log.exception("turn.unreadable", turn=identity.turn, reference=reference, error=str(error))
            turn = driver.turn
        events: list[Event] = []
        if turn.exit is None:
            failed = DriverFailed(at=now, reference=reference)
            events += recorded(failed, turn.feed(failed))
        assert turn.exit is not None
        if not any(row.kind == TurnEnded.__name__ for row in stored):
            events.append(TurnEnded(at=now, exit=turn.exit))
            rows = [_row(event, len(stored) + offset) for offset, event in enumerate(events)]
            shown = view(turn, now)
            if driver.outlet is not None:
                await driver.outlet.prepare(shown)
            parts = driver.outlet.closing(shown) if driver.outlet is not None else ()
            await self._store.close(
                identity.session, identity.epoch, identity.turn, rows, turn.exit.code.value, now, parts,
                (turn.input_tokens, turn.output_tokens), driver.heard, rows_of(turn),
            )  # fmt: skip
            if driver.outlet is not None:
                driver.outlet.closed()
        driver.give_up(turn)


def _row(event: Event, seq: int) -> JournalRow:
    written = encode(event)
    return JournalRow(seq=seq, kind=written.kind, body=written.body, at=written.at)
