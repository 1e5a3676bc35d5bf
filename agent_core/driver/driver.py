"""The driver: performs a turn's effects, feeds it what happens, and journals that. The only loop.

It decides nothing about a turn. What it does keep is the order of things:

- what ends a bubble, a tool's start, a tool's result and the exit are committed before anybody sees them or anything follows. But a call that
  only reads what is here changes nothing, whoever knows of it: it begins at once, and its start is stored with its result, at the latest after
  `KEEP_SECONDS`. Until then nothing of it is seen;
- text on its way is shown at once and journalled in larger pieces, at the latest after a second;
- all that it started (a model call, tools, timers) is over when `run` returns.

A failure of its own becomes an event (`DriverFailed`) like any other, so the turn still ends with words.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from agent_core.driver.closing import TurnIdentity, TurnJournal, closing_of, ended_otherwise
from agent_core.driver.modelcalls import ModelCaller
from agent_core.driver.turntime import TurnTime
from agent_core.driver.watcher import Outlet, TurnSeen
from agent_core.driver.work import Contexts, Work, World
from agent_core.failures.exits import Exit, InternalError
from agent_core.journal.rows import recorded
from agent_core.jsonvalue import Json
from agent_core.judging.overdue import longest_timer_seconds, seconds_left
from agent_core.machine.turn import Turn
from agent_core.records import NONE
from agent_core.store.store import Fenced
from agent_core.store.turns.rows import IntendedCall, OpeningTurn
from agent_core.text.wellformed import storable
from agent_core.tools.base import Purse, ToolStatus
from agent_core.tools.registry import ArgumentsUnreadable, NoSuchTool, Runnable, ToolChanged, changed_words
from agent_core.turn.effects import (
    AskApproval,
    CallModel,
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
)
from agent_core.turn.events import (
    ApprovalAnswered,
    ChangeShown,
    DeadlinePassed,
    DriverFailed,
    Event,
    Refusal,
    TakenOver,
    ToolReturned,
    ToolStarted,
    TurnLeft,
    TurnOpened,
)
from agent_core.turn.invariants import broken_laws
from agent_core.turn.view import view

log = structlog.get_logger("turn")

QUEUE_LIMIT = 1_000
"""So many events may wait for the loop until a person's extra words are refused. What the turn itself causes is never: nobody says it again."""


class Overtaken(Exception):
    """Another owner runs this turn now; whatever this driver still wanted is void."""


class TurnLeftOpen(Exception):
    """The process ends; the next one goes on with the turn."""


class InvariantBroken(Exception):
    """The machine did what it never may: a bug of ours, and the turn must be ended visibly."""


class TurnDriver:
    """Runs one turn. `opening` or `resume` it, `run` it to its end, `tell` it what people want; `seen` is for who watches."""

    # fmt: off
    __slots__ = (
        "__weakref__",
        "_begun",
        "_begun_at",
        "_caller",
        "_effects",
        "_events",
        "_gone",
        "_holding",
        "_journal",
        "_leaving",
        "_plain_end",
        "_time",
        "_waiter",
        "_work",
        "_world",
        "active_at",
        "closed",
        "first_content_at",
        "identity",
        "left_open",
        "outlet",
        "overtaken",
        "seen",
    )
    # fmt: on

    def __init__(
        self,
        world: World,
        identity: TurnIdentity,
        caller: ModelCaller,
        contexts: Contexts,
        outlet: Outlet | None = None,
    ) -> None:
        self._world = world
        self.identity = identity
        self._caller = caller
        self.outlet = outlet
        self._time = TurnTime(world.clock)
        self.seen = TurnSeen(self._time, caller)
        self._events: list[Event | None] = []
        """What waits for the loop; None only asks it to write."""
        self._waiter: asyncio.Future[None] | None = None
        self._effects: list[Effect] = []
        self.closed = False
        """Its end is stored, and told."""
        self._begun: frozenset[str] = NONE
        self.overtaken = False
        """Another owner has the turn, and what is not stored of it here is void."""
        self._holding = self._leaving = False
        self._gone = False
        """It is left to the next process, which hears nothing of what is said here from now on."""
        self._plain_end = False
        """Something that belongs to the end cannot be stored: the end is stored without it."""
        self.left_open = False
        """The process ends, and leaves the turn to the next one."""
        self.first_content_at = 0
        self.active_at = world.clock.monotonic()
        """When the driver did something last, on the monotonic clock."""
        self._begun_at: float | None = None  # on the monotonic clock; None if another process opened the turn
        self._journal = TurnJournal(
            world.store, world.clock, identity, self.seen, self, world.closer.herald, world.afar
        )
        self._work = Work(world, identity, caller, contexts, self.seen, self)

    @property
    def turn(self) -> Turn:
        return self.seen.turn

    @turn.setter
    def turn(self, turn: Turn) -> None:
        self.seen.turn = turn

    @property
    def over(self) -> bool:
        return self.seen.over

    @over.setter
    def over(self, over: bool) -> None:
        self.seen.over = over

    @property
    def purse(self) -> Purse | None:
        """What pays for what is asked of others on behalf of the turn."""
        return self._caller.spending

    # ------------------------------------------------------------------ beginning

    def opening(self, opened: TurnOpened) -> OpeningTurn:
        """How the turn is to be opened in the store. Once it is, the message belongs to this turn, and it can be `run`."""
        effects = self.turn.feed(opened)
        self._begun_at = self._world.clock.monotonic()
        self._effects = [effect for effect in effects if not isinstance(effect, Record)]
        return self._journal.opening(opened, recorded(opened, effects))

    def resume(self, turn: Turn, seq: int, taken_over: TakenOver, told_at: int = 0) -> None:
        """Go on with an open turn from the journal. Its `taken_over` row, the last of `seq` rows, is written already; `told_at` is the time of the
        one before."""
        self.turn = turn
        self._time.ahead = max(0, max(told_at, turn.phase_since, turn.life_at) - taken_over.at)
        self._journal.seq = seq
        self._begun = frozenset(activity.call for activity in turn.round.unfinished if activity.started)
        told = self._time.counted(taken_over)
        self._effects = turn.feed(told)
        self._journal.note(recorded(told, self._effects)[1:])

    @property
    def opened_at(self) -> int:
        """When the turn began, ms."""
        return self.turn.opened.at if self.turn.opened else 0

    # ------------------------------------------------------------------ from outside

    def tell(self, event: Event) -> bool:
        """Hand in an event from outside (stop, steer, approval). False if the turn is over, is being left or cannot take more; or if somebody else has
        decided about the same call just before."""
        if self.over or self._gone or len(self._events) >= QUEUE_LIMIT:
            return False
        if isinstance(event, ApprovalAnswered) and self._decided(event.call):
            return False
        self._post(event)
        return True

    def _decided(self, call: str) -> bool:
        return any(isinstance(one, ApprovalAnswered) and one.call == call for one in self._events)

    @property
    def asks(self) -> bool:
        """Whether a running call asks somebody something now."""
        return not self.over and self._work.asks

    async def answer(self, call: str, words: str, by: str) -> str | None:
        """Somebody answers what a running call asks (without a call: whichever asks). What they are told; None if nothing is asked."""
        return None if self.over else await self._work.answer(call, words, by)

    def _post(self, event: Event | None) -> None:
        self._events.append(event)
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    @property
    def overdue_seconds(self) -> float:
        """How long ago the driver should have done something at the latest; negative as long as it still has time."""
        timer = longest_timer_seconds(self.turn, self._caller.silence_seconds, self._world.tools.deadline_seconds)
        return self._world.clock.monotonic() - self.active_at - timer

    def hold(self) -> None:
        """Begin no model call and no tool any more: the process is about to end. What runs may come to its end."""
        self._holding = True
        self._post(None)

    @property
    def waits_for_person(self) -> bool:
        """Nothing goes on before somebody has decided about a call: nothing is lost by leaving the turn where it is."""
        return self.turn.round.only_asked

    def leave(self) -> None:
        """Leave the turn open at what is stored, now."""
        self._holding = self._leaving = True
        self._post(None)

    def abandon(self) -> None:
        """It is never run here: the next process does that."""
        self.over = self.left_open = True
        self.seen.ring()

    def give_up(self, turn: Turn) -> None:
        """The watchdog has ended the turn in its place, and stored that: `turn` is how. Nothing of this driver counts any more."""
        self.turn, self.seen.final = turn, None
        self.over = self.overtaken = self.closed = True
        self.seen.release()
        self.seen.storage_away = False
        self.seen.ring()

    # ------------------------------------------------------------------ the loop

    async def run(self) -> Exit:
        """Run the turn to its end; everything it started is over when this returns. Raises `Overtaken`, `TurnLeftOpen`, `Damaged`."""
        clock = self._world.clock
        left = seconds_left(self.turn, self._begun_at, clock.monotonic(), self._time.now_ms())
        self._work.later(left, lambda at: DeadlinePassed(at=at))
        self._work.tick()
        try:
            try:
                await self._loop()
            finally:
                await self._work.ended()
        finally:
            self.over = True
            stored = self.closed or (self.turn.exit is None and not self.overtaken)
            if stored:  # what is not stored is none, and never seen
                self.seen.release()
            if self.outlet is not None:
                self.outlet.left()
            self._work.stop_timers()
            self._journal.stop()
            self.seen.wake()
        if self._journal.damaged is not None:
            raise self._journal.damaged
        if self.overtaken:
            raise Overtaken(self.identity.turn)
        if self.left_open:
            raise TurnLeftOpen(self.identity.turn)
        assert self.turn.exit is not None
        return self.turn.exit

    async def _loop(self) -> None:
        events: list[Event | None] = []  # first, what `opening` or `resume` had left to do
        while True:
            self.active_at = self._world.clock.monotonic()
            try:
                effects = await self._take([event for event in events if event is not None])
            except Fenced:
                self.overtaken = True
                return
            except Exception:  # noqa: BLE001 - the border of the driver: a bug becomes a visible end of the turn
                effects = await self._fail()
            for effect in effects:
                self._work.perform(effect)
            if self.turn.exit is not None or self.overtaken:
                return
            if self._leaving or (self._holding and not self._work.busy and not self._events):
                await self._work.over()
                if not any(self._events):  # what was said or came back until then is stored, or ends the turn
                    await self._leave()
                    return
            if not self._events:
                self._waiter = self._work.loop.create_future()
                await self._waiter
            events, self._events = self._events, []

    async def _fail(self) -> list[Effect]:
        """A bug of ours in deciding or writing: the turn ends with a reference that the log explains. If not even that end can be stored,
        because of what it says, one that says nothing else takes its place."""
        reference = self._world.ids.new("err")
        log.exception("turn.driver_failed", turn=self.identity.turn, work="loop", reference=reference)
        now = self._time.now_ms()
        events: list[Event] = [DriverFailed(at=now, reference=reference)]
        if self.turn.exit is not None:  # it had decided to end, and that cannot be stored or must not be shown as it is
            events = []
        for tries_left in (1, 0):
            self._effects = []
            self._journal.drop(everything=not tries_left)
            if not events:
                ending = InternalError(reference=reference)
                ended_otherwise(self.turn, ending, now)
                self._effects = [EndTurn(ending)]
            try:
                return await self._take(events)
            except Fenced:
                self.overtaken = True
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
        unwritten = self._journal.unwritten
        if events or [one for one in self._effects if unwritten or not isinstance(one, CallModel)]:
            self.seen.hold()
        effects, self._effects = self._effects, []
        for event in events:
            effects += self._feed(event)
        doing: list[Effect] = []
        ending: EndTurn | None = None
        while effects:
            effect = effects.pop(0)
            match effect:
                case Record():
                    pass  # it is written behind its fact
                case RunTool() | AskApproval() if self._holding or self.turn.exit is not None:
                    pass  # the process that goes on begins it, or nobody does
                case RunTool():
                    effects += await self._check(effect, doing)
                case AskApproval():
                    effects += await self._show_change(effect)
                    doing.append(effect)
                case EndTurn():
                    ending = effect
                case SetAside():
                    doing.append(effect)
                case _:
                    if not self._holding:  # else it is begun by the process that goes on
                        doing.append(effect)
        if ending is not None:
            await self._close(ending)
            doing = [effect for effect in doing if isinstance(effect, SetAside)]
        elif self._may_wait(events, doing):
            self._journal.keep_back()
            return doing
        elif self._journal.unwritten:
            await self._journal.commit()
        self.seen.release()
        self.seen.wake()
        for event in events:
            if isinstance(event, ToolStarted):
                self._work.intended(event.call)
        return doing

    def _may_wait(self, events: Sequence[Event], doing: Sequence[Effect]) -> bool:
        """What came may be stored with what comes of what is to be done: calls that only read, or none while such calls run."""
        if [event for event in events if isinstance(event, ToolStarted)]:  # a call waits until this is stored
            return False
        reading = [effect for effect in doing if isinstance(effect, RunTool) and self._work.only_reads(effect.call)]
        return len(reading) == len(doing) and (bool(doing) or self._journal.kept_back)

    def _feed(self, event: Event) -> list[Effect]:
        turn = self.turn
        if turn.exit is not None:
            return []
        late = turn.misfit(event)
        if late:
            log.info("turn.late", turn=self.identity.turn, kind=event.kind(), why=late)
            return []
        if isinstance(event, ToolReturned):
            self.seen.progress.pop(event.call, None)
        effects = turn.feed(event, fits=True)
        self._journal.note(recorded(event, effects))
        found = broken_laws(turn, effects, self._begun)
        if found:
            self._world.count_broken()
            kind = event.kind()
            log.error("invariant.broken", turn=self.identity.turn, after=kind, laws=found)
            raise InvariantBroken("; ".join(found))
        if isinstance(event, ToolStarted):
            self._begun |= {event.call}
        return effects

    async def _check(self, effect: RunTool, doing: list[Effect]) -> list[Effect]:
        """Whether a call can run. If not, that is its result; if so, it is intended from here on."""
        checked = self._work.checked(effect)
        now = self._time.now_ms()
        match checked:
            case Runnable():
                key = f"{self.identity.turn}:{effect.call}"
                put_down: Json = None
                if not effect.again and self._world.tools.prepares(checked):
                    put_down = await self._world.tools.prepare(checked, self._work.context(effect.call))
                    effect = replace(effect, intention=put_down)
                doing.append(effect)
                self._journal.intend(IntendedCall(effect.call, storable(effect.name), checked.spec.effect, key))
                return self._feed(ToolStarted(at=now, call=effect.call, intention=put_down))
            case NoSuchTool():
                nearest = f" Did you mean {checked.nearest}?" if checked.nearest else ""
                why = f" {checked.why}" if checked.why else ""
                offered = ", ".join(self._caller.offered(self.turn))
                there = f"The tools are: {offered}." if offered else "There are none now: answer without."
                text = f"There is no tool called {effect.name!r}.{why}{nearest} {there}"
                refusal = Refusal.UNKNOWN_TOOL
            case ArgumentsUnreadable():
                text = f"The arguments of {effect.name} cannot be used: {checked.complaint} The call was not executed."
                refusal = Refusal.UNREADABLE_ARGUMENTS
            case ToolChanged():
                text, refusal = changed_words(checked), Refusal.UNKNOWN_TOOL
        refused = ToolReturned(at=now, call=effect.call, status=ToolStatus.REFUSED, text=text, refusal=refusal)
        return self._feed(refused)

    async def _show_change(self, effect: AskApproval) -> list[Effect]:
        """What the call would change is seen together with the question, never after it."""
        checked = self._work.checked(RunTool(effect.call, effect.name, effect.arguments))
        if not isinstance(checked, Runnable):
            return []
        change = await self._world.tools.change(checked, self._work.context(effect.call))
        if change is None:
            return []
        return self._feed(ChangeShown(at=self._time.now_ms(), call=effect.call, change=change))

    async def _close(self, ending: EndTurn) -> None:
        """Cancel what runs, then close the turn in one commit, then let it be seen."""
        await self._work.over()
        end = closing_of(
            self.identity, self.turn, self._time.now_ms(), self._journal.seq, self._journal.unwritten,
            answer=ending.answer, content_at=self.first_content_at, plain=self._plain_end,
            intended=self._journal.intended,
        )  # fmt: skip
        await self._journal.close(end, self._world.closer, self.outlet)
        self.closed = True
        self.seen.final = end.shown

    async def _leave(self) -> None:
        """Store that the turn is left open, with what the chat is told of it; nothing of it runs any more. If that cannot be stored in
        time, the next process takes the turn over as from one that died."""
        self._gone = True
        now = self._time.now_ms()
        left = TurnLeft(at=now)
        self.turn.feed(left)
        self._journal.note([left])
        try:
            stored = await self._journal.leave(self.outlet, view(self.turn, now))
        except Fenced:
            self.overtaken = True
            return
        (log.info if stored else log.warning)("turn.left", turn=self.identity.turn, stored=stored)
        self.left_open = True
        if stored and self.outlet is not None:
            self.outlet.closed()

    # ------------------------------------------------------------------ what its journal and its work tell

    def write_soon(self) -> None:
        """Ask the loop to write what has come; if anything waits for it, it is about to do so anyway."""
        if not self._events:
            self._post(None)

    def content(self, events: Sequence[Event]) -> None:
        """Content from the model: into the turn at once, into the journal soon, to the watchers by the frame."""
        turn = self.seen.turn
        if turn.exit is not None:
            return
        self.active_at = self._world.clock.monotonic()
        if not self.first_content_at:
            self.first_content_at = self._time.now_ms()
        if self._time.ahead:
            events = [self._time.counted(event) for event in events]
        for event in events:
            turn.feed(event)
            self._journal.note([event])
        self._journal.streamed(events)
        self.seen.wake_for_text()

    def counted(self, event: Event) -> Event:
        """See `TurnTime`."""
        return self._time.counted(event)

    def put(self, event: Callable[[int], Event]) -> None:
        """Queue an event of our own, however many wait: there are no more of them than what the turn has under way."""
        if not self.over:
            self._post(event(self._time.now_ms()))

    def waits(self) -> None:
        """A piece of work waits for the database; that is seen."""
        self.active_at = self._world.clock.monotonic()
        self.seen.ring()

    def lost(self) -> None:
        """Whoever takes the turn over goes on with it; here it is void."""
        self.overtaken = True
        self._post(None)

    def idle(self) -> None:
        """A piece of work is over: perhaps that was the last thing to wait for."""
        if self._holding:
            self._post(None)
