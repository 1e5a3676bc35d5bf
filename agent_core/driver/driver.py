"""The driver: performs a turn's effects, feeds it what happens, and journals that. The only loop.

It decides nothing about a turn. What it does keep is the order of things:

- what ends a bubble, a tool's start, a tool's result and the exit are committed before anybody sees them or anything follows;
- text on its way is shown at once and journalled in larger pieces, at the latest after a second;
- all that it started (a model call, tools, timers) is owned by its task group and is over when `run` returns.

A failure of its own becomes an event (`DriverFailed`) like any other, so the turn still ends with words.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from agent_core.bell import Bell
from agent_core.driver.closing import TurnIdentity, closing_of, ended_otherwise, heard_in
from agent_core.driver.modelcalls import ModelCaller
from agent_core.driver.watcher import Outlet, Watcher
from agent_core.driver.work import Work, World
from agent_core.failures.exits import Exit, InternalError
from agent_core.journal.rows import merged, recorded, row_of
from agent_core.jsonvalue import Json
from agent_core.judging.overdue import longest_timer_seconds, seconds_left
from agent_core.machine.turn import Turn
from agent_core.retry import STORING
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.store import Damaged, Fenced, StorageUnavailable
from agent_core.store.turns.rows import IntendedCall, JournalRow
from agent_core.text.wellformed import storable
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.registry import ArgumentsUnreadable, NoSuchTool, Runnable
from agent_core.turn.effects import (
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
)
from agent_core.turn.events import (
    DeadlinePassed,
    DriverFailed,
    Event,
    Refusal,
    TakenOver,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnLeft,
    TurnOpened,
)
from agent_core.turn.invariants import broken_laws
from agent_core.turn.view import Bubble, BubbleKind, View, view

log = structlog.get_logger("turn")

FLUSH_SECONDS = 1.0
FLUSH_CHARS = 8_192
LEAVE_PATIENCE_SECONDS = 2.0
STORAGE_AWAY = "The gateway cannot store anything just now; what comes next is kept back until it can"
QUEUE_LIMIT = 1_000
"""Events that wait for the loop. More than the turn itself can cause; a person's extra words beyond it are refused."""


class Overtaken(Exception):
    """Another owner runs this turn now; whatever this driver still wanted is void."""


class TurnLeftOpen(Exception):
    """The process ends; the next one goes on with the turn."""


class InvariantBroken(Exception):
    """The machine did what it never may: a bug of ours, and the turn must be ended visibly."""


class TurnDriver:
    """Runs one turn. `begin` or `resume` it, `run` it to its end, `tell` it what people want, `watch` for watchers."""

    # fmt: off
    __slots__ = (
        "_begun", "_begun_at", "_caller", "_damaged", "_effects", "_events", "_flush_timer", "_held", "_holding",
        "_leaving", "_overtaken", "_plain_end", "_seq", "_storage_away",
        "_unwritten", "_unwritten_chars", "_waiter", "_watchers", "_work", "_world",
        "active_at", "closed", "first_content_at", "identity", "left_open", "outlet", "over", "turn",
    )
    # fmt: on

    def __init__(
        self,
        world: World,
        identity: TurnIdentity,
        caller: ModelCaller,
        context: Callable[[str, Callable[[str], None]], ToolContext],
        outlet: Outlet | None = None,
    ) -> None:
        self._world = world
        self.identity = identity
        self._caller = caller
        self.outlet = outlet
        self.turn = Turn()
        self._events: list[Event | None] = []
        """What waits for the loop; None only asks it to write."""
        self._waiter: asyncio.Future[None] | None = None
        self._unwritten: list[Event] = []
        self._seq = 0
        self._effects: list[Effect] = []
        self._held: View | None = None
        self.closed = False
        """Its end is stored, and told."""
        self._watchers: dict[Bell, None] = {}  # in order, so that a run can be repeated
        self._flush_timer: asyncio.TimerHandle | None = None
        self._begun: set[str] = set()
        self._unwritten_chars = 0
        self._damaged: Damaged | None = None
        self._overtaken = False
        self._storage_away = False
        self._holding = self._leaving = False
        self._plain_end = False
        """Something that belongs to the end cannot be stored: the end is stored without it."""
        self.left_open = False
        """The process ends, and leaves the turn to the next one."""
        self.over = False
        self.first_content_at = 0
        self.active_at = world.clock.monotonic()
        """When the driver did something last, on the monotonic clock."""
        self._begun_at: float | None = None  # on the monotonic clock; None if another process opened the turn
        self._work = Work(world, identity, caller, context, self)

    # ------------------------------------------------------------------ beginning

    async def begin(self, opened: TurnOpened) -> None:
        """Open the turn in the store. From here on the message belongs to this turn."""
        effects = self.turn.feed(opened)
        rows = [row_of(event, seq) for seq, event in enumerate(recorded(opened, effects))]
        await self._world.store.turns.start(
            session=self.identity.session,
            epoch=self.identity.epoch,
            turn=self.identity.turn,
            inbox_ids=self.identity.inbox_ids,
            row=rows[0],
            opened_at=opened.at,
            deadline=opened.at + opened.settings.turn_seconds * 1000,
            judged=rows[1:],
        )
        self._seq = len(rows)
        self._begun_at = self._world.clock.monotonic()
        self._effects = [effect for effect in effects if not isinstance(effect, Record)]

    def resume(self, turn: Turn, seq: int, taken_over: TakenOver) -> None:
        """Go on with an open turn from the journal. Its `taken_over` row, the last of `seq` rows, is written already."""
        self.turn = turn
        self._seq = seq
        self._begun = {activity.call for activity in turn.round.unfinished if activity.started}
        self._effects = turn.feed(taken_over)
        self._unwritten += recorded(taken_over, self._effects)[1:]

    @property
    def opened_at(self) -> int:
        """When the turn began, ms."""
        return self.turn.opened.at if self.turn.opened else 0

    # ------------------------------------------------------------------ from outside

    def tell(self, event: Event) -> bool:
        """Hand in an event from outside (stop, steer, approval). False if the turn is over or cannot take more."""
        if self.over or len(self._events) >= QUEUE_LIMIT:
            return False
        self._post(event)
        return True

    def _post(self, event: Event | None) -> None:
        self._events.append(event)
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def current_view(self) -> View:
        """What is to be seen now; while something is being committed, what was to be seen before."""
        shown = self._held if self._held is not None else view(self.turn, self._world.clock.now_ms())
        if self._storage_away and shown.open:
            status = Bubble("status", BubbleKind.STATUS, STORAGE_AWAY, final=False)
            shown = replace(shown, bubbles=(*(b for b in shown.bubbles if b.kind is not BubbleKind.STATUS), status))
        progress = self._work.progress
        if not progress or not shown.open:
            return shown
        bubbles = (
            replace(b, text=f"{b.text} – {progress[b.call]}") if b.call in progress else b for b in shown.bubbles
        )
        return replace(shown, bubbles=tuple(bubbles))

    @property
    def overdue_seconds(self) -> float:
        """How long ago the driver should have done something at the latest; negative as long as it still has time."""
        timer = longest_timer_seconds(self.turn, self._caller.silence_seconds, self._world.tools.deadline_seconds)
        return self._world.clock.monotonic() - self.active_at - timer

    def hold(self) -> None:
        """Begin no model call and no tool any more: the process is about to end. What runs may come to its end."""
        self._holding = True
        self._post(None)

    def leave(self) -> None:
        """Leave the turn open at what is stored, now."""
        self._holding = self._leaving = True
        self._post(None)

    def abandon(self) -> None:
        """It is never run here: the next process does that."""
        self.over = self.left_open = True
        self._ring()

    def give_up(self, turn: Turn) -> None:
        """The watchdog has ended the turn in its place: `turn` is how. Nothing of this driver counts any more."""
        self.turn = turn
        self.over, self._overtaken = True, True
        self._held, self._storage_away = None, False
        self._ring()

    @property
    def heard(self) -> tuple[int, ...]:
        """The accepted messages that came into the running turn and that the model was told."""
        return heard_in(self.turn)

    def watch(self) -> Watcher:
        """A new watcher; use it as a context manager."""
        return Watcher(self)

    @property
    def committing(self) -> bool:
        """Something is being committed; until then `current_view` shows what was to be seen before."""
        return self._held is not None

    def subscribe(self, bell: Bell) -> None:
        """Ring `bell` whenever there may be something new to see."""
        self._watchers[bell] = None

    def unsubscribe(self, bell: Bell) -> None:
        self._watchers.pop(bell, None)

    def wake(self) -> None:
        if self._held is None:
            self._ring()

    def _ring(self) -> None:
        for bell in self._watchers:
            bell.ring()

    def _wake_for_text(self) -> None:
        if self._held is None:
            for bell in self._watchers:
                bell.ring_in_frame()

    # ------------------------------------------------------------------ the loop

    async def run(self) -> Exit:
        """Run the turn to its end; everything it started is over when this returns. Raises `Overtaken`, `TurnLeftOpen`, `Damaged`."""
        clock = self._world.clock
        left = seconds_left(self.turn, self._begun_at, clock.monotonic(), clock.now_ms())
        self._work.later(left, lambda at: DeadlinePassed(at=at))
        self._work.tick()
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    await self._loop(group)
                finally:
                    self._work.cancel()
        finally:
            self.over = True
            if self.closed or self.turn.exit is None:  # an end that is not stored is none, and never seen
                self._held = None
            if self.outlet is not None:
                self.outlet.left()
            self._work.stop_timers()
            if self._flush_timer is not None:
                self._flush_timer.cancel()
            self.wake()
        if self._damaged is not None:
            raise self._damaged
        if self._overtaken:
            raise Overtaken(self.identity.turn)
        if self.left_open:
            raise TurnLeftOpen(self.identity.turn)
        assert self.turn.exit is not None
        return self.turn.exit

    async def _loop(self, group: asyncio.TaskGroup) -> None:
        events: list[Event | None] = []  # first, what `begin` or `resume` had left to do
        while True:
            self.active_at = self._world.clock.monotonic()
            try:
                effects = await self._take([event for event in events if event is not None])
            except Fenced:
                self._overtaken = True
                return
            except Exception:  # noqa: BLE001 - the border of the driver: a bug becomes a visible end of the turn
                effects = await self._fail()
            for effect in effects:
                self._work.perform(effect, group)
            if self.turn.exit is not None or self._overtaken:
                return
            if self._leaving or (self._holding and not self._work.busy and not self._events):
                await self._leave()
                return
            if not self._events:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            events, self._events = self._events, []

    async def _fail(self) -> list[Effect]:
        """A bug of ours in deciding or writing: the turn ends with a reference that the log explains. If not even that end can be stored,
        because of what it says, one that says nothing else takes its place."""
        reference = self._world.ids.new("err")
        log.exception("turn.driver_failed", turn=self.identity.turn, work="loop", reference=reference)
        now = self._world.clock.now_ms()
        events: list[Event] = [DriverFailed(at=now, reference=reference)]
        if self.turn.exit is not None:  # it had decided to end, and that cannot be stored or must not be shown as it is
            events = []
        for tries_left in (1, 0):
            self._effects, self._unwritten = [], []
            if not events:
                ending = InternalError(reference=reference)
                ended_otherwise(self.turn, ending, now)
                self._effects = [EndTurn(ending)]
            try:
                return await self._take(events)
            except Fenced:
                self._overtaken = True
                return []
            except Exception:
                if not tries_left:
                    raise
                log.exception("turn.driver_failed", turn=self.identity.turn, work="ending", reference=reference)
                events, self._plain_end = [], True
        raise AssertionError("the last try returns or raises")

    async def _take(self, events: Sequence[Event]) -> list[Effect]:
        """Feed events, commit them with what they lead to, then let them be seen. What is still to be performed."""
        # Text alone needs no commit to be seen, also while the storage is away. What could not be stored stays held.
        if (events or self._effects) and self._held is None:
            self._held = view(self.turn, self._world.clock.now_ms())
        effects, self._effects = self._effects, []
        for event in events:
            effects += self._feed(event)
        doing: list[Effect] = []
        intended: list[IntendedCall] = []
        ending: EndTurn | None = None
        while effects:
            effect = effects.pop(0)
            match effect:
                case Record():
                    pass  # it is written behind its fact
                case RunTool() if not self._holding:
                    effects += await self._check(effect, intended, doing)
                case EndTurn():
                    ending = effect
                case SetAside():
                    doing.append(effect)
                case _:
                    if not self._holding:  # else it is begun by the process that goes on
                        doing.append(effect)
        if ending is not None:
            await self._close(ending)
            doing = []
        elif self._unwritten or intended:
            await self._commit(intended)
        self._held = None
        self.wake()
        for event in events:
            if isinstance(event, ToolStarted):
                self._work.intended(event.call)
        return doing

    def _feed(self, event: Event) -> list[Effect]:
        if self.turn.exit is not None:
            return []
        late = self.turn.misfit(event)
        if late:
            log.info("turn.late", turn=self.identity.turn, kind=event.kind(), why=late)
            return []
        if isinstance(event, ToolReturned):
            self._work.progress.pop(event.call, None)
        effects = self.turn.feed(event)
        self._unwritten += recorded(event, effects)
        found = broken_laws(self.turn, effects, self._begun)
        if found:
            self._world.count_broken()
            kind = event.kind()
            log.error("invariant.broken", turn=self.identity.turn, after=kind, laws=found)
            raise InvariantBroken("; ".join(found))
        if isinstance(event, ToolStarted):
            self._begun.add(event.call)
        return effects

    async def _check(self, effect: RunTool, intended: list[IntendedCall], doing: list[Effect]) -> list[Effect]:
        """Whether a call can run. If not, that is its result; if so, it is intended from here on."""
        checked = self._world.tools.check(effect.name, effect.arguments, self._caller.offered(self.turn))
        now = self._world.clock.now_ms()
        match checked:
            case Runnable():
                key = f"{self.identity.turn}:{effect.call}"
                put_down: Json = None
                if not effect.again:
                    put_down = await self._world.tools.prepare(checked, self._work.context(effect.call))
                    effect = replace(effect, intention=put_down)
                doing.append(effect)
                intended.append(IntendedCall(effect.call, storable(effect.name), checked.spec.effect, key))
                return self._feed(ToolStarted(at=now, call=effect.call, intention=put_down))
            case NoSuchTool():
                nearest = f" Did you mean {checked.nearest}?" if checked.nearest else ""
                text = f"There is no tool called {effect.name!r}.{nearest} The tools are: {', '.join(self._caller.offered(self.turn))}."
                refusal = Refusal.UNKNOWN_TOOL
            case ArgumentsUnreadable():
                text = f"The arguments of {effect.name} cannot be used: {checked.complaint} The call was not executed."
                refusal = Refusal.UNREADABLE_ARGUMENTS
        refused = ToolReturned(at=now, call=effect.call, status=ToolStatus.REFUSED, text=text, refusal=refusal)
        return self._feed(refused)

    # ------------------------------------------------------------------ the journal

    async def _commit(self, intended: Sequence[IntendedCall]) -> None:
        """Append what is not written yet. While the storage is away the turn pauses: its end could not be stored either."""
        rows = self._rows()
        identity = self.identity

        async def write() -> None:
            if intended:
                await self._world.store.turns.intend(identity.session, identity.epoch, identity.turn, rows, intended)
            elif rows:
                await self._world.store.turns.append(identity.session, identity.epoch, identity.turn, rows)

        await self._persist(write, math.inf, len(rows))

    async def _close(self, ending: EndTurn) -> None:
        """Cancel what runs, then close the turn in one commit, then let it be seen."""
        await self._work.over()
        end = closing_of(
            self.identity, self.turn, self._world.clock.now_ms(), self._seq, self._unwritten,
            answer=ending.answer, content_at=self.first_content_at, plain=self._plain_end,
        )  # fmt: skip
        rows = len(self._written(end.rows))
        # Without a limit: an end that is not stored is none, and after a restart this turn may end in another way.
        await self._world.closer.close(end, self.outlet, lambda write: self._persist(write, math.inf, rows))
        self.closed = True

    async def _parts(self, now: int) -> Sequence[DeliveryRow]:
        """What is stored together with the turn's last row here, of what its chat is to show."""
        if self.outlet is None:
            return ()
        shown = view(self.turn, now)
        await self.outlet.prepare(shown)
        return self.outlet.closing(shown)

    async def _leave(self) -> None:
        """Cancel what runs, and store that the turn is left open, with what the chat is told of it. If that cannot be stored in
        time, the next process takes the turn over as from one that died."""
        await self._work.over()
        now = self._world.clock.now_ms()
        left = TurnLeft(at=now)
        self.turn.feed(left)
        self._unwritten.append(left)
        rows, identity, store = self._rows(), self.identity, self._world.store

        async def write() -> None:
            parts = await self._parts(now)
            await store.turns.append(identity.session, identity.epoch, identity.turn, rows)
            if parts:
                await store.deliveries.put(identity.session, identity.epoch, parts)

        try:
            stored = await self._persist(write, LEAVE_PATIENCE_SECONDS)
        except Fenced:
            self._overtaken = True
            return
        (log.info if stored else log.warning)("turn.left", turn=identity.turn, stored=stored)
        self.left_open = True
        if stored and self.outlet is not None:
            self.outlet.closed()

    async def _persist(self, write: Callable[[], Awaitable[None]], patience_seconds: float, rows: int = 0) -> bool:
        """Write, with patience for a storage that is away. False if it stayed away. Who watches is told meanwhile. Of `rows` that do
        not come to be stored, whatever the reason, what comes next takes the places: without holes an end can be stored."""
        began = self._world.clock.monotonic()
        try:
            for attempt in itertools.count(1):
                try:
                    await write()
                except Damaged as error:  # waiting does not help, and no end can be stored either
                    self._damaged = error
                    raise Fenced(str(error)) from error
                except StorageUnavailable as error:
                    away = self._world.clock.monotonic() - began
                    log.warning(
                        "storage.unavailable", turn=self.identity.turn, away_seconds=round(away), error=str(error)
                    )
                    if away >= patience_seconds:
                        return False
                    self._storage_away = True
                    self.active_at = self._world.clock.monotonic()
                    self._ring()
                    await asyncio.sleep(STORING.seconds(attempt))
                except Exception:
                    self._seq -= rows
                    raise
                else:
                    return True
            raise AssertionError("counting has no end")
        finally:
            self._storage_away = False

    def _rows(self) -> Sequence[JournalRow]:
        """What is to be written, with neighbouring text in one row; nothing is unwritten behind this."""
        return self._written([row_of(event, self._seq + n) for n, event in enumerate(merged(self._unwritten))])

    def _written(self, rows: Sequence[JournalRow]) -> Sequence[JournalRow]:
        """These rows have all that was unwritten."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        self._unwritten = []
        self._unwritten_chars = 0
        self._seq += len(rows)
        return rows

    def content(self, events: Sequence[Event]) -> None:
        """Content from the model: into the turn at once, into the journal soon, to the watchers by the frame."""
        if self.turn.exit is not None:
            return
        self.active_at = self._world.clock.monotonic()
        if not self.first_content_at:
            self.first_content_at = self._world.clock.now_ms()
        named = False
        for event in events:
            self.turn.feed(event)
            self._unwritten.append(event)
            self._unwritten_chars += len(getattr(event, "text", ""))
            named = named or isinstance(event, ToolCallNamed)
        if named or self._unwritten_chars > FLUSH_CHARS:
            self._flush()
        elif self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._flush)
        self._wake_for_text()

    def _flush(self) -> None:
        """Ask the loop to write what has come; if it is behind, it is about to do so anyway."""
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if len(self._events) < QUEUE_LIMIT:
            self._post(None)

    # ------------------------------------------------------------------ what its work tells (`agent_core.driver.work.Boss`)

    def put(self, event: Callable[[int], Event]) -> None:
        """Queue an event of our own. The queue is larger than what a turn can have under way at once."""
        if not self.over and len(self._events) < QUEUE_LIMIT:
            self._post(event(self._world.clock.now_ms()))

    def idle(self) -> None:
        """A piece of work is over: perhaps that was the last thing to wait for."""
        if self._holding:
            self._post(None)
