"""Keeps each adapter running on its own: what one does never touches another, nor the core.

A crash is followed by a new start after a growing pause; a connection without life for too long is cut and made anew; what
needs a person (a wrong token) is said in words, and tried again rarely.

The durable record of how adapters were doing: written when a state changes, so that it can be told later why nothing came.

Whoever changes a state does not wait: rows are written by one task, in their order, also when the storage was away for a while.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial

import structlog

from adapters.contract.chat import AdapterSight
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.pacing import worth_saying
from adapters.contract.supervision import AdapterDown, SeveralConnections, Supervised
from agent_core.bell import Bell
from agent_core.beside import kept_up
from agent_core.patience import LATE_LOOK
from agent_core.ports import Clock
from agent_core.retry import ADAPTER
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.slices.rows import account_slices
from agent_core.store.store import StorageUnavailable, Store

log = structlog.get_logger("adapter")

LOOK_SECONDS = 5.0
"""How often it is looked whether a connection still lives."""
FATAL_PAUSE_SECONDS = 300.0
CLOSE_SECONDS = 5.0
"""How long an adapter may take to close its connections."""
STAND_SECONDS, ANSWER_SECONDS = 30.0, 15.0
"""How often one of several gateways asks the platform whether it is there (sooner where a call to it has failed), and how long it waits for that."""
SOUND_SECONDS = 60.0
"""An adapter that was up for so long begins its pauses anew."""

CONNECTION, CALLS = "connection", "calls"
"""What fails each by itself."""


STORAGE_AWAY = "It cannot begin while the storage of the gateway does not answer; it is tried again."


class AdapterState(StrEnum):
    """How an adapter is doing."""

    STARTING = "starting"
    UP = "up"
    DOWN = "down"
    NEEDS_A_PERSON = "needs a person"
    STOPPED = "stopped"
    """The gateway itself was stopped."""
    ELSEWHERE = "elsewhere"
    """Another gateway of the same database has its connection, and this one sends all the same."""


class Deaf(Exception):
    """There was no sign of life for too long."""


class Supervisor:
    """Looks after one adapter."""

    def __init__(
        self,
        adapter: Supervised,
        clock: Clock,
        outbound: Callable[[], float | None],
        share: Callable[[], float],
        note: Callable[[AdapterStateRow], None],
        amiss: str = "",
    ) -> None:
        """`note` is told of each change of its state. `amiss`: why it cannot even be tried with its settings."""
        self._amiss = amiss
        self.adapter = adapter
        connections = adapter.connections if isinstance(adapter, SeveralConnections) else 1
        self.slices = account_slices(adapter.name, connections)
        """By which several gateways divide its connections."""
        self._clock = clock
        self._outbound = outbound
        self._share = share
        self._note = note
        self._noted: tuple[AdapterState, str] | None = None
        self.state = AdapterState.STARTING
        self.words = ""
        self._up_at = 0.0
        self._failing: dict[str, float] = {}
        """Since when its connection, or calls, do not work, as far as that is known."""
        self.restarts = 0
        self._missed = asyncio.Event()
        self._missed_at: float | None = None
        """Since when calls have perhaps not reached the platform, and nobody has asked it since."""
        self._refused = False
        """A call was not let in, and nobody has asked since who we are."""
        self._stranger = ""
        """What the platform said when it was asked that; empty if it knows us."""

    def shut_out(self) -> None:
        """A call was not let in: it is asked soon whether we are known there. What comes in may come all the same."""
        self._refused = True

    def missed(self) -> None:
        """A call has perhaps not reached the platform: it is asked soon, and if it does not answer, that has begun now."""
        if self._missed_at is None:
            self._missed_at = self._clock.monotonic()
        self._missed.set()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._run()
        finally:
            self._is(AdapterState.STOPPED, "")

    async def stand(self) -> None:
        """Until cancelled, while another gateway has the connection: what is to be sent can be, and it is known whether the platform is reached."""
        self.state, self.words = AdapterState.ELSEWHERE, ""  # whoever has it notes how it is doing
        while True:
            await self._ask()

    async def run_watched(self) -> None:
        """As `run`; and it is known whether the platform is reached, also by calls that go their own way."""
        asking = asyncio.ensure_future(self._ask_on())
        try:
            await self.run()
        finally:
            asking.cancel()
            await asyncio.wait({asking})

    async def _ask_on(self) -> None:
        while True:
            if self.state is AdapterState.UP:  # else it tries as hard as it can
                await self._ask()
            else:
                await asyncio.sleep(LOOK_SECONDS)

    async def _ask(self) -> None:
        """Make ready to send, and see whether the platform is there; come back when that is to be done again."""
        for attempt in itertools.count(1):
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self.adapter.stand()
            except (AdapterDown, TimeoutError) as down:
                self._fails(CALLS)
                if worth_saying(attempt):
                    words = str(down) or "There was no answer."
                    log.warning("adapter.cannot_send", adapter=self.adapter.name, words=words)
            except (StorageUnavailable, NotAccepted) as error:
                log.warning("adapter.storage_away", adapter=self.adapter.name, error=str(error))
            except Exception:
                self._fails(CALLS)
                log.exception("adapter.failed", adapter=self.adapter.name)
            else:
                break
            await asyncio.sleep(ADAPTER.seconds(attempt, self._share()))
            if self.state not in (AdapterState.UP, AdapterState.ELSEWHERE):
                return
        self._works(CALLS)
        if self.state is AdapterState.ELSEWHERE:
            self._works(CONNECTION)  # as far as anybody knows who has none
        self._missed.clear()
        self._missed_at = None
        await asyncio.sleep(min(LOOK_SECONDS, STAND_SECONDS))
        with suppress(TimeoutError):
            async with asyncio.timeout(STAND_SECONDS - LOOK_SECONDS):
                await self._missed.wait()

    @property
    def failing_seconds(self) -> float:
        """For how long the platform was not reached from here; 0 if it is, or nobody has tried."""
        return max((self._clock.monotonic() - at + 0.001 for at in self._failing.values()), default=0.0)

    def _fails(self, what: str) -> None:
        now = self._clock.monotonic()
        missed = self._missed_at if what == CALLS and self._missed_at is not None else now
        self._failing.setdefault(what, missed)

    def _works(self, what: str) -> None:
        self._failing.pop(what, None)

    async def _run(self) -> None:
        # How often it failed in a row, and whether it was last for something that a person has to do
        attempt, needed = (
            0,
            False,
        )
        while True:
            self._is(AdapterState.STARTING, self.words)
            fatal, pause = False, 0.0
            try:
                if self._amiss:
                    raise AdapterDown(self._amiss, fatal=True)  # noqa: TRY301 - it is told like any other
                await self._watched()
            except AdapterDown as down:
                fatal, pause, words = down.fatal, down.wait_seconds, str(down)
                times = 1 if self._was_sound else attempt + 1
                # That a person is needed is news, however often it failed before
                if (fatal and not needed) or worth_saying(times):
                    (log.error if fatal else log.warning)(
                        "adapter.down", adapter=self.adapter.name, words=words, times=times
                    )
            except Deaf as deaf:
                words = str(deaf)
                log.warning("adapter.deaf", adapter=self.adapter.name, words=words)
            except (StorageUnavailable, NotAccepted) as error:
                words = STORAGE_AWAY
                log.warning("adapter.storage_away", adapter=self.adapter.name, error=str(error))
            except Exception as error:
                words = f"It failed because of a mistake of ours ({type(error).__name__}); the log has the details."
                log.exception("adapter.failed", adapter=self.adapter.name)
            else:
                words = "It ended by itself."
                log.error("adapter.ended", adapter=self.adapter.name)
            self.restarts += 1
            needed = fatal
            attempt = 1 if self._was_sound else attempt + 1
            self._up_at = 0.0
            if words != STORAGE_AWAY:
                self._fails(CONNECTION)
            self._is(AdapterState.NEEDS_A_PERSON if fatal else AdapterState.DOWN, words)
            grown = ADAPTER.seconds(attempt, self._share())
            await asyncio.sleep(FATAL_PAUSE_SECONDS if fatal else max(pause, grown))

    def _is(self, state: AdapterState, words: str) -> None:
        """From now on; noted, if it is news: that it is tried once more, or fails in the same way again, is none."""
        self.state, self.words = state, words
        again = state is AdapterState.STARTING and self._noted is not None
        if not again and self._noted != (state, words):
            self._noted = (state, words)
            self._note(AdapterStateRow(self.adapter.name, self._clock.now_ms(), state.value, words))

    @property
    def _was_sound(self) -> bool:
        """It was up for long enough to begin anew."""
        return self._up_at > 0 and self._clock.monotonic() - self._up_at > SOUND_SECONDS

    def _up(self) -> None:
        self._is(AdapterState.UP, "")
        self._up_at = self._clock.monotonic()
        self._works(CONNECTION)
        log.info("adapter.up", adapter=self.adapter.name)

    def _look(self) -> None:
        """Note what the adapter says of itself while it runs: that its connection is gone, or there again."""
        if self.state is AdapterState.UP:
            seen = self.sight()
            state, words = AdapterState(seen.state), seen.words if seen.state != AdapterState.UP else ""
            one = self.adapter
            works = state is not AdapterState.DOWN or (isinstance(one, SeveralConnections) and one.any_works)
            (self._works if works else self._fails)(CONNECTION)
            if self._noted != (state, words):
                self._noted = (state, words)
                self._note(AdapterStateRow(self.adapter.name, self._clock.now_ms(), state.value, words))

    async def _watched(self) -> None:
        """Run the adapter, and cut it off if it has become deaf."""
        running = asyncio.ensure_future(self.adapter.run(self._up))
        try:
            while not running.done():
                before = self._clock.monotonic()
                await asyncio.wait({running}, timeout=LOOK_SECONDS)
                late = self._clock.monotonic() - before > LOOK_SECONDS * LATE_LOOK
                if self._refused or self._stranger:
                    await self._ask_who_we_are()
                self._look()
                silent = self.adapter.silent_seconds
                if not late and not running.done() and silent > self.adapter.deaf_after_seconds:
                    raise Deaf(f"There was no sign of life for {silent:.0f} s; the connection is made anew.")
            await running
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait({running}, timeout=CLOSE_SECONDS)

    async def _ask_who_we_are(self) -> None:
        self._refused = False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self.adapter.stand()
        except AdapterDown as down:
            if down.fatal and not self._stranger:
                log.warning("adapter.cannot_send", adapter=self.adapter.name, words=str(down))
            self._stranger = str(down) if down.fatal else self._stranger
        except (TimeoutError, StorageUnavailable, NotAccepted):
            pass  # it is asked again
        else:
            self._stranger = ""

    def is_up(self) -> bool:
        """Whether the adapter works just now."""
        return self.sight().state == AdapterState.UP

    def sight(self) -> AdapterSight:
        """For `status`."""
        seen = self.adapter.sight(self.state.value, self.words, self._outbound())
        if self._stranger and seen.state == AdapterState.UP:
            return replace(seen, state=AdapterState.NEEDS_A_PERSON.value, words=self._stranger)
        return seen


MOST_KEPT = 1_000
"""Rows that wait for a storage that is away; the oldest go first."""
AWAY_SECONDS = 5.0
LAST_SECONDS = 3.0
"""How long the end of the program waits for the last rows."""


class AdapterLog:
    """Takes rows at any time, and stores them while `kept` is entered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: deque[AdapterStateRow] = deque(maxlen=MOST_KEPT)
        self._last_at: dict[str, int] = {}
        self._bell: Bell | None = None

    def note(self, row: AdapterStateRow) -> None:
        """An adapter is doing otherwise from now on."""
        at = max(row.at, self._last_at.get(row.account, 0) + 1)  # two changes within a millisecond are two rows
        self._last_at[row.account] = at
        self._rows.append(AdapterStateRow(row.account, at, row.state, row.words))
        if self._bell is not None:
            self._bell.ring()

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """Rows are stored for the block, and those of its end as well."""
        self._bell = Bell()
        task = asyncio.create_task(kept_up(partial(self._run, self._bell), "adapter states"), name="adapter states")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with suppress(StorageUnavailable, TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._write()
            self._bell.close()
            self._bell = None

    async def _run(self, bell: Bell) -> None:
        while True:
            try:
                await self._write()
            except StorageUnavailable as error:
                log.warning("adapter.state_not_stored", error=str(error), waiting=len(self._rows))
                await asyncio.sleep(AWAY_SECONDS)
            else:
                await bell.wait(60.0)

    async def _write(self) -> None:
        while self._rows:
            row = self._rows[0]
            await self._store.deliveries.note_adapter(row)
            if self._rows and self._rows[0] is row:
                self._rows.popleft()
