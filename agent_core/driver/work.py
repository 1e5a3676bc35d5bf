"""What a turn has under way: model calls, tools, questions and timers. All of it is over when its driver is.

It decides nothing: it performs effects, and hands its driver what came of them as events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from math import inf
from operator import itemgetter
from typing import Protocol
from weakref import proxy

import structlog

from agent_core.driver.asking import Intend, OpenQuestions
from agent_core.driver.closing import Closer, TurnIdentity
from agent_core.driver.modelcalls import ModelCaller
from agent_core.driver.watcher import Afar, NobodyAfar, TurnSeen
from agent_core.jsonvalue import Json
from agent_core.machine.turn import Turn
from agent_core.model.reach import DOOR_SECONDS, AskedByOthers
from agent_core.patience import EARLY_SECONDS, timer_at
from agent_core.ports import Clock, Ids
from agent_core.records import changed, dataclass
from agent_core.signals import Tell, ToolRan, nobody
from agent_core.store.store import Fenced, Store
from agent_core.tools.asking import MOST_SECONDS, NOBODY, AskedStep, PersonAsked, ToolAnswer, ToolQuestion, steps_of
from agent_core.tools.base import EffectClass, Reach, ToolContext, ToolOutcome, ToolStatus, holds_foreign
from agent_core.tools.registry import Checked, Runnable, ToolChanged, ToolRegistry, changed_words
from agent_core.turn.effects import (
    AskApproval,
    AskDone,
    CallModel,
    Compact,
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
    Wait,
)
from agent_core.turn.events import ApprovalAnswered, DriverFailed, Event, ToolReturned, ToolStarted, Verdict, WaitEnded

log = structlog.get_logger("turn")

TICK_SECONDS = 5.0
"""How often watchers look again although nothing happened, because statuses grow with time."""
CANCEL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class World:
    """What drivers share."""

    store: Store
    tools: ToolRegistry
    clock: Clock
    ids: Ids
    set_aside: Callable[[str, float, str], None]
    """(credential, seconds, why)"""
    count_broken: Callable[[], None]
    """Called for each law of a turn that was found broken."""
    closer: Closer
    tell: Tell = nobody
    afar: Afar = field(default_factory=NobodyAfar)


class Boss(Protocol):
    """What work needs of the driver that it is done for."""

    @property
    def turn(self) -> Turn: ...

    @property
    def over(self) -> bool: ...

    def put(self, event: Callable[[int], Event]) -> None:
        """Take an event that came of the work."""
        ...

    def counted(self, event: Event) -> Event:
        """An event with a time of this gateway's clock, as the turn counts time."""
        ...

    def content(self, events: Sequence[Event]) -> None:
        """Take content of the model's."""
        ...

    def idle(self) -> None:
        """A piece of work is over."""
        ...

    def waits(self) -> None:
        """Work waits for the database: nobody is stuck."""
        ...

    def lost(self) -> None:
        """This node may count as dead elsewhere: nothing may be begun for the turn any more."""
        ...


Contexts = Callable[[], ToolContext]
"""Gives what all calls of a turn are given alike."""


def unheard(_: str) -> None:
    """Nobody wants to know how far a call is."""


NOT_ASKED_ON = frozenset({"api"})
"""Surfaces on which somebody may decide about a call, and has no way to answer a question."""


class Work:
    """The work of one turn."""

    # fmt: off
    __slots__ = ("_boss", "_caller", "_coming", "_contexts", "_identity", "_intending", "_questions", "_runnable", "_seen", "_tasks", "_tick_at", "_timer", "_world", "loop")
    # fmt: on

    def __init__(
        self, world: World, identity: TurnIdentity, caller: ModelCaller, contexts: Contexts, seen: TurnSeen, boss: Boss
    ) -> None:
        self._world = world
        self._identity = identity
        self._caller = caller
        self._contexts = contexts
        self._seen = seen
        self._boss: Boss = proxy(boss)  # which lives as long as it has work
        self.loop = asyncio.get_running_loop()
        """Kept: each time it is asked for, Python 3.11 asks the kernel whether this is still the same process."""
        self._tasks: list[asyncio.Task[None]] = []
        self._coming: list[tuple[float, Callable[[int], Event]]] = []
        """What is to be queued of itself, and when (the loop's time)."""
        self._tick_at = inf
        self._timer: asyncio.TimerHandle | None = None
        """One for all of it, at whichever comes first."""
        self._questions = OpenQuestions()
        self._runnable: dict[str, Runnable] = {}
        """Calls that were checked and have yet to run."""
        self._intending: dict[str, asyncio.Future[None]] = {}
        """Calls that wait until what they have put down anew is committed."""

    @property
    def busy(self) -> bool:
        """Something runs."""
        return bool(self._tasks)

    def context(self, call: str, heartbeat: Callable[[str], None] = unheard, **more: object) -> ToolContext:
        """What a tool is given with a call."""
        key = f"{self._identity.turn}:{call}"
        return changed(self._contexts(), call=call, key=key, heartbeat=heartbeat, **more)

    def checked(self, effect: RunTool) -> Checked:
        """Whether a call can run, by what the turn knows of its tool."""
        turn, tools = self._boss.turn, self._world.tools
        facts, offered = turn.settings.tool(effect.name), self._caller.offered(turn)
        if facts is None:  # what was brought since the turn began would be judged without its class
            later = {spec.name for spec in tools.brought}
            offered = tuple(one for one in offered if one not in later)
        found = tools.check(effect.name, effect.arguments, offered, facts.effect if facts is not None else None)
        if isinstance(found, Runnable):
            self._runnable[effect.call] = found
        return found

    def only_reads(self, call: str) -> bool:
        """A call that was checked changes nothing, and nobody elsewhere hears of it: it may run before it is stored that it does."""
        found = self._runnable.get(call)
        return found is not None and found.spec.effect is EffectClass.PURE and found.spec.reach is Reach.HERE

    def _still(self, effect: RunTool) -> Checked:
        """The same when the call begins: its program may have changed the tool, or taken it back, while its beginning was stored."""
        known = self._runnable.pop(effect.call, None)
        return known if known is not None and self._world.tools.stands(known) else self.checked(effect)

    def intended(self, call: str) -> None:
        """What a call has put down is committed."""
        kept = self._intending.pop(call, None)
        if kept is not None and not kept.done():
            kept.set_result(None)

    @property
    def asks(self) -> bool:
        """Whether a running call asks somebody something now."""
        return self._questions.asked

    async def answer(self, call: str, words: str, by: str) -> str | None:
        """Somebody answers what a call asks (the empty name: the one that asks). What they are told; None if nothing is asked."""
        return await self._questions.answer(call, words, by)

    def later(self, seconds: float, event: Callable[[int], Event]) -> None:
        """Queue an event of our own in a while, if the turn is not over by then."""
        self._coming.append((self.loop.time() + seconds, event))
        self._arm()

    def tick(self) -> None:
        """Have watchers look again from time to time, although nothing happens."""
        self._tick_at = self.loop.time() + TICK_SECONDS
        self._arm()

    def _arm(self) -> None:
        at = min([self._tick_at, *[when for when, _ in self._coming]])
        if self._timer is not None and self._timer.when() > at:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and at < inf:
            self._timer = timer_at(self.loop, at, self._rang)

    def _rang(self) -> None:
        self._timer = None
        if self._boss.over:
            return
        now = self.loop.time() + EARLY_SECONDS
        # Several, where the loop was held
        due = sorted([one for one in self._coming if one[0] <= now], key=itemgetter(0))
        self._coming = [one for one in self._coming if one[0] > now]
        for _, event in due:
            self._boss.put(event)
        if self._tick_at <= now:
            self._seen.wake()
            self._tick_at = now + TICK_SECONDS
        self._arm()

    def perform(self, effect: Effect) -> None:
        """Start one thing that is wanted."""
        match effect:
            case CallModel():
                self._start(
                    lambda: self._caller.call(self._boss.turn, effect, self._boss.content),
                    f"model call {effect.number}",
                )
            case RunTool():
                self._start(lambda: self._run_tool(effect), f"tool {effect.name}")
            case Compact():
                self._start(lambda: self._caller.compact(self._boss.turn), "compaction")
            case AskDone():
                self._start(lambda: self._caller.ask_done(self._boss.turn, effect), "question")
            case Wait():
                self.later(effect.seconds, lambda at: WaitEnded(at=at))
            case AskApproval(call=call):
                verdict = Verdict.EXPIRED
                self.later(effect.seconds, lambda at: ApprovalAnswered(at=at, call=call, verdict=verdict))
            case SetAside():
                self._world.set_aside(effect.credential, effect.seconds, effect.why)
            case Record() | EndTurn():
                raise AssertionError(f"{type(effect).__name__} is handled before the commit")

    def _start(self, work: Callable[[], Awaitable[Event | None]], name: str) -> None:
        task = self.loop.create_task(self._guarded(work, name), name=f"{self._identity.turn}: {name}")
        self._tasks.append(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.remove(task)
        self._boss.idle()

    async def _guarded(self, work: Callable[[], Awaitable[Event | None]], name: str) -> None:
        """A bug in one piece of work ends its turn with a notice, and nothing else.

        What was committed before may lie a while back (this process may have been stopped in between), and no database can take back what goes
        out now: so the lease is asked here, at the one door of model calls and tools; and once
        more where a call's bytes go out (`ModelLine`). While the database is away it may be ours still: then it waits.
        """
        try:
            if await self._let_in():
                if (event := await work()) is not None:
                    self._boss.put(lambda _: self._boss.counted(event))
            else:
                log.warning("turn.lease_lost", turn=self._identity.turn, work=name)
                self._boss.lost()
        except AskedByOthers:  # stopped between the door and its first byte
            log.warning("turn.lease_lost", turn=self._identity.turn, work=name)
            self._boss.lost()
        except Fenced:  # by what it has to store before it begins
            self._boss.lost()
        except Exception:
            reference = self._world.ids.new("err")
            log.exception("turn.driver_failed", turn=self._identity.turn, work=name, reference=reference)
            self._boss.put(lambda at: DriverFailed(at=at, reference=reference))

    async def _let_in(self) -> bool:
        ownership = self._world.store.ownership
        if ownership.lease_ok():
            return True
        try:
            while not ownership.lease_ok():
                if not ownership.may_return():
                    return False
                self._seen.storage_away = True
                self._boss.waits()
                await asyncio.sleep(DOOR_SECONDS)
            return True
        finally:
            self._seen.storage_away = False

    def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Cancel all work, and return when nothing of it runs any more, however often that is cancelled meanwhile."""
        self._cancel()
        cancelled: asyncio.CancelledError | None = None
        while tasks := [task for task in self._tasks if not task.done()]:
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def stop_timers(self) -> None:
        """Nothing comes of itself any more."""
        self._coming, self._tick_at = [], inf
        if self._timer is not None:
            self._timer.cancel()

    async def over(self) -> None:
        """Cancel all work and wait for its end, so that nothing of the turn happens after its last words."""
        self._coming.clear()
        tasks = [task for task in self._tasks if not task.done()]
        self._cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
            for task in late:
                log.error("turn.work_ignores_cancellation", turn=self._identity.turn, work=task.get_name())

    def _asker(self, effect: RunTool, intend: Intend) -> Callable[[ToolQuestion], Awaitable[ToolAnswer]]:
        """What asks the person on behalf of a call that begins now."""
        clock = self._world.clock
        began = clock.monotonic()
        begun: tuple[list[AskedStep], dict[str, str]] | None = None  # made by the first question: hardly any call asks

        async def ask(question: ToolQuestion) -> ToolAnswer:
            turn = self._boss.turn
            surface = turn.opened.surface if turn.opened is not None else ""
            if not turn.settings.can_approve or surface in NOT_ASKED_ON or self._questions.asks(effect.call):
                return NOBODY
            nonlocal begun
            if begun is None:
                before = list(steps_of(effect.intention))
                begun = before, {one.mark: one.answer for one in before if one.answer}
            steps, known = begun
            seconds = min(turn.settings.approval_seconds, MOST_SECONDS - (clock.monotonic() - began))
            answer = await self._questions.ask(effect.call, PersonAsked(question, steps, known), seconds, intend)
            action = answer.action.value
            log.info("tool.asked", turn=self._identity.turn, tool=effect.name, call=effect.call, action=action)
            return answer

        return ask

    async def _run_tool(self, effect: RunTool) -> None:
        world = self._world
        began, began_at = world.clock.monotonic(), world.clock.now_ms()

        def heartbeat(words: str) -> None:
            self._seen.progress[effect.call] = words
            self._seen.wake()
            world.afar.told(self._identity.session, self._identity.turn, effect.call, words)

        async def intend(intention: Json) -> None:
            self._intending[effect.call] = kept = self.loop.create_future()
            self._boss.put(lambda at: ToolStarted(at=at, call=effect.call, intention=intention))
            await kept

        checked = self._still(effect)
        context = self.context(
            effect.call,
            heartbeat,
            intention=effect.intention,
            again=effect.again,
            intend=intend,
            ask=self._asker(effect, intend),
            tainted=bool(self._boss.turn.foreign),
        )
        if isinstance(checked, Runnable):
            outcome = await world.tools.run(checked, context)
        else:
            gone = checked if isinstance(checked, ToolChanged) else ToolChanged(effect.name, withdrawn=True)
            outcome = ToolOutcome(ToolStatus.FAILED, changed_words(gone))
        spec = checked.spec if isinstance(checked, Runnable) else None
        foreign = spec is not None and holds_foreign(spec, outcome)
        seconds = round(world.clock.monotonic() - began, 3)
        log.info(
            "tool.returned",
            turn=self._identity.turn,
            tool=effect.name,
            call=effect.call,
            status=outcome.status.value,
            seconds=seconds,
            left_out_chars=outcome.left_out_chars,
        )
        ran = ToolRan(
            turn=self._identity.turn, session=self._identity.session, call=effect.call, tool=effect.name,
            status=outcome.status.value, began_at=began_at, ended_at=world.clock.now_ms(),
        )  # fmt: skip
        world.tell(ran)
        self._boss.put(
            lambda at: ToolReturned(
                at=at,
                call=effect.call,
                status=outcome.status,
                text=outcome.text,
                seconds=seconds,
                left_out_chars=outcome.left_out_chars,
                facts=outcome.facts,
                foreign=foreign,
                doubt=outcome.doubt,
            )
        )
