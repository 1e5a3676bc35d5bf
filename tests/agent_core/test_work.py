"""The doors of a turn's work: nothing goes out before the lease is asked, and a tool is given what its turn knows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.driver import work
from agent_core.driver.closing import TurnIdentity
from agent_core.driver.watcher import NobodyAfar, TurnSeen
from agent_core.driver.work import Work, World, unheard
from agent_core.jsonvalue import Json
from agent_core.model.reach import AskedByOthers
from agent_core.ports import SystemClock, SystemIds
from agent_core.records import changed
from agent_core.settings import ToolFacts
from agent_core.store.store import Fenced
from agent_core.tools.asking import ToolQuestion
from agent_core.tools.base import EffectClass, Reach, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import ArgumentsUnreadable, Checked, Runnable, ToolChanged, ToolRegistry
from agent_core.turn.effects import AskApproval, CallModel, Effect, RunTool
from agent_core.turn.events import (
    ApprovalAnswered,
    DriverFailed,
    Event,
    ReplyFinished,
    ToolReturned,
    ToolStarted,
    Verdict,
    WaitEnded,
)
from tests.agent_core.turns import ROUTE, Rig
from tests.store.support import FakeClock

CLOCK = SystemClock()


class Tool:
    """Does what a test says."""

    def __init__(self, does: Callable[[ToolContext], Coroutine[Any, Any, ToolOutcome]], *, foreign: bool) -> None:
        self._does, self._foreign = does, foreign

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("read", "for tests", {"type": "object"}, EffectClass.PURE, foreign=self._foreign)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        return await self._does(context)


@dataclass
class Brought:
    """Is brought by another program."""

    spec: ToolSpec

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, "done")


class Turns:
    """A turn's driver, its store and its model, as far as its work sees them."""

    def __init__(
        self,
        leases: Sequence[tuple[bool, bool]] = (),
        does: Callable[[ToolContext], Coroutine[Any, Any, ToolOutcome]] | None = None,
        *,
        foreign: bool = False,
        named: str = "t",
    ) -> None:
        self.leases = list(leases)
        self.events: list[Event] = []
        self.lost_lease, self.waited, self.asked, self.ran, self.over = 0, 0, 0, 0, False
        self.turn = Rig().turn
        self.seen = SimpleNamespace(storage_away=False, progress={}, wake=lambda: None)
        self.does = does
        store = SimpleNamespace(ownership=self)
        world = World(
            cast("Any", store), ToolRegistry([Tool(self._run, foreign=foreign)]), CLOCK, SystemIds(CLOCK),
            self._aside, lambda: None, cast("Any", None),
        )  # fmt: skip
        caller = SimpleNamespace(offered=lambda _turn: ("read",), call=self._call)  # pyright: ignore[reportUnknownLambdaType]
        self.work = Work(
            world, TurnIdentity(named, "s", 7), cast("Any", caller), self._context, cast("Any", self.seen), self
        )

    def lease_ok(self) -> bool:
        return self.leases.pop(0)[0] if len(self.leases) > 1 else not self.leases or self.leases[0][0]

    def may_return(self) -> bool:
        return not self.leases or self.leases[0][1]

    def put(self, event: Callable[[int], Event]) -> None:
        self.events.append(event(5))

    def counted(self, event: Event) -> Event:
        return event

    def _aside(self, credential: str, seconds: float, why: str) -> None: ...

    def content(self, events: Sequence[Event]) -> None: ...

    def idle(self) -> None: ...

    def waits(self) -> None:
        assert self.seen.storage_away
        self.waited += 1

    def lost(self) -> None:
        self.lost_lease += 1

    async def _call(self, *_: object) -> Event:
        self.asked += 1
        return ReplyFinished(at=5, reason="stop")

    async def _run(self, context: ToolContext) -> ToolOutcome:
        self.ran += 1
        return await self.does(context) if self.does is not None else ToolOutcome(ToolStatus.OK, "done")

    def _context(self) -> ToolContext:
        return ToolContext("t", "", "", Path("nowhere"), "m", CLOCK, unheard)

    async def perform(self, effect: Effect) -> None:
        self.work.perform(effect)
        try:
            while self.work.busy:
                await asyncio.sleep(0)
        finally:
            await self.work.ended()


MODEL, TOOL = CallModel(1, ROUTE, offer_tools=True), RunTool("c1", "read", "{}")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "DOOR_SECONDS", 0.0)


@pytest.mark.parametrize("effect", [MODEL, TOOL])
@pytest.mark.parametrize(
    ("leases", "begins", "waits"),
    [
        ([(True, True)], True, False),
        ([(False, False)], False, False),
        ([(False, True), (False, True), (True, True)], True, True),
        ([(False, True), (False, False)], False, False),
    ],
)
async def test_no_model_is_asked_and_no_tool_run_without_the_lease(
    effect: Effect, leases: list[tuple[bool, bool]], begins: bool, waits: bool
) -> None:
    turn = Turns(leases)
    await turn.perform(effect)
    assert (turn.asked, turn.ran) == ((begins, False) if effect is MODEL else (False, begins))
    assert turn.lost_lease == (not begins)
    assert bool(turn.waited) is waits
    assert not turn.seen.storage_away, "whoever waited does not wait any more"


async def test_a_mistake_in_one_piece_of_work_ends_its_turn_in_words() -> None:
    turn = Turns()

    async def breaks(*_: object) -> Event:
        raise KeyError("x")

    cast("Any", turn.work)._caller.call = breaks
    await turn.perform(MODEL)
    (event,) = turn.events
    assert isinstance(event, DriverFailed)
    assert event.reference.startswith("err")


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("said", [True, False, None])
async def test_a_result_with_words_of_others_is_told_as_one(declared: bool, said: bool | None) -> None:
    async def reads(_: ToolContext) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, "text", foreign=said)

    turn = Turns(does=reads, foreign=declared)
    await turn.perform(TOOL)
    (event,) = turn.events
    assert isinstance(event, ToolReturned)
    assert event.foreign is (declared if said is None else said)


@pytest.mark.parametrize("foreign", [True, False])
async def test_a_tool_knows_whether_words_of_others_were_read_and_that_it_was_begun_before(foreign: bool) -> None:
    given: list[ToolContext] = []

    async def looks(context: ToolContext) -> ToolOutcome:
        given.append(context)
        return ToolOutcome(ToolStatus.OK, "text")

    turn = Turns(does=looks)
    if foreign:
        turn.turn.round.foreign = ("read",)
    await turn.perform(RunTool("c1", "read", "{}", intention="x", again=foreign))
    (context,) = given
    assert (context.tainted, context.again, context.intention) == (foreign, foreign, "x")


async def test_a_call_has_a_key_that_no_other_call_of_any_turn_has() -> None:
    """Ids of calls come from models, which begin anew to count with each turn."""
    turns = Turns(), Turns(named="u")
    keys = [turn.work.context(call).key for turn in turns for call in ("c1", "c2")]
    assert len({*keys}) == 4
    assert keys == [turn.work.context(call).key for turn in turns for call in ("c1", "c2")], "each time the same"


async def test_what_a_tool_puts_down_counts_when_it_is_committed_and_not_before() -> None:
    done: list[str] = []

    async def intends(context: ToolContext) -> ToolOutcome:
        await context.intend("other")
        done.append("acted")
        return ToolOutcome(ToolStatus.OK, "text")

    turn = Turns(does=intends)
    performing = asyncio.create_task(turn.perform(TOOL))
    while not turn.events:
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert turn.events == [ToolStarted(at=5, call="c1", intention="other")]
    assert done == []
    turn.work.intended("c1")
    await performing
    assert done == ["acted"]


async def test_a_question_that_nobody_answers_is_over_and_not_agreed_to() -> None:
    turn = Turns()
    await turn.perform(AskApproval("c1", "read", "{}", cast("Any", 0.01)))
    async with asyncio.timeout(5):
        while not turn.events:
            await asyncio.sleep(0.001)
    assert turn.events == [ApprovalAnswered(at=5, call="c1", verdict=Verdict.EXPIRED)]


@pytest.mark.parametrize("surface", ["api", "telegram"])
async def test_where_nobody_can_answer_a_tool_is_told_so_at_once(surface: str) -> None:
    answers: list[object] = []

    async def asks(context: ToolContext) -> ToolOutcome:
        answers.append(await context.ask(ToolQuestion("name", "What is it?")))
        return ToolOutcome(ToolStatus.OK, "text")

    turn = Turns(does=asks)
    assert turn.turn.opened is not None
    turn.turn.opened = replace(turn.turn.opened, surface=surface)
    performing = asyncio.create_task(turn.perform(TOOL))
    for _ in range(20):
        await asyncio.sleep(0)
    asked = turn.work.asks
    performing.cancel()
    await asyncio.wait([performing])
    assert asked is (surface != "api")
    assert answers == ([] if asked else [work.NOBODY])


async def test_a_turn_ends_when_all_of_its_work_has_however_often_that_is_cancelled() -> None:
    left: list[str] = []

    async def clears_up(_: ToolContext) -> ToolOutcome:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)  # a socket that is closed, a process that is reaped
            left.append("cleared up")
        raise AssertionError("it was cancelled")

    turn = Turns(does=clears_up)
    turn.work.perform(TOOL)
    await asyncio.sleep(0)
    ending = asyncio.create_task(turn.work.ended())
    for _ in range(3):
        await asyncio.sleep(0)
        ending.cancel()
    await asyncio.wait([ending])
    assert ending.cancelled()
    assert left == ["cleared up"]
    assert not turn.work.busy


async def test_what_is_to_come_comes_once_and_in_its_order_and_nothing_does_behind_the_end() -> None:
    turn = Turns()
    for seconds in (0.03, 0.01, 0.02, 60.0):
        turn.work.later(seconds, lambda at, seconds=seconds: WaitEnded(at=at + round(seconds * 1000)))
    while len(turn.events) < 3:
        await asyncio.sleep(0.005)
    assert [event.at - 5 for event in turn.events] == [10, 20, 30]
    turn.work.later(0.01, lambda at: WaitEnded(at=at))
    turn.work.stop_timers()
    await asyncio.sleep(0.03)
    assert len(turn.events) == 3


async def test_where_the_loop_was_held_all_that_was_due_comes_in_its_order() -> None:
    turn = Turns()
    for seconds in (0.003, 0.001, 0.002):
        turn.work.later(seconds, lambda at, seconds=seconds: WaitEnded(at=at + round(seconds * 1000)))
    time.sleep(0.01)
    await asyncio.sleep(0.01)
    assert [event.at - 5 for event in turn.events] == [1, 2, 3]


async def test_watchers_look_again_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "TICK_SECONDS", 0.01)
    turn, looks = Turns(), list[int]()
    turn.seen.wake = lambda: looks.append(1)
    turn.work.tick()
    turn.work.later(0.005, lambda at: WaitEnded(at=at))
    while len(looks) < 3:
        await asyncio.sleep(0.005)
    assert len(turn.events) == 1
    turn.over = True
    await asyncio.sleep(0.02)
    seen = len(looks)
    await asyncio.sleep(0.03)
    assert len(looks) == seen
    turn.over = False
    turn.work.tick()
    turn.work.stop_timers()
    await asyncio.sleep(0.03)
    assert len(looks) == seen


@pytest.mark.parametrize("comes_again", [True, False])
async def test_a_call_is_checked_once_and_again_where_its_tool_is_another_when_it_begins(
    comes_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, checks = ToolRegistry.check, list[str]()

    def counted(tools: ToolRegistry, name: str, *more: Any) -> Checked:
        checks.append(name)
        return check(tools, name, *more)

    monkeypatch.setattr(ToolRegistry, "check", counted)
    turn = Turns()
    tools = cast("Any", turn.work)._world.tools
    spec = ToolSpec("brought", "for tests", {"type": "object"}, EffectClass.PURE)
    tools.bring([Brought(spec)])
    assert turn.turn.opened is not None
    facts = (*turn.turn.settings.tools, ToolFacts("brought", EffectClass.PURE))
    turn.turn.opened = replace(turn.turn.opened, settings=replace(turn.turn.settings, tools=facts))
    cast("Any", turn.work)._caller.offered = lambda _turn: ("brought",)  # pyright: ignore[reportUnknownLambdaType]
    call = RunTool("c1", "brought", "{}")
    assert isinstance(turn.work.checked(call), Runnable)
    if not comes_again:
        tools.bring([])
    await turn.perform(call)
    (event,) = turn.events
    assert isinstance(event, ToolReturned)
    assert event.status is (ToolStatus.OK if comes_again else ToolStatus.FAILED)
    assert len(checks) == (1 if comes_again else 2)


def test_what_was_seen_last_is_held_and_made_anew_once_more_is_there() -> None:
    rig, seen = Rig(), TurnSeen(CLOCK)
    seen.turn = rig.turn
    before = seen.current_view()
    seen.hold()
    rig.text("something")
    assert seen.current_view() is before
    seen.release()
    assert seen.current_view().bubbles != before.bubbles
    rig.text(" more")
    seen.wake_for_text()
    seen.hold()
    assert any("something more" in bubble.text for bubble in seen.current_view().bubbles)


async def test_nothing_of_its_own_comes_behind_the_last_words() -> None:
    turn = Turns()
    turn.work.later(0.0, lambda at: WaitEnded(at=at))
    await turn.work.over()
    await asyncio.sleep(0.01)
    assert turn.events == []


async def test_what_may_not_be_stored_any_more_is_nobodys_mistake() -> None:
    turn = Turns()

    async def fenced(*_: object) -> Event:
        raise Fenced("somebody else's")

    cast("Any", turn.work)._caller.call = fenced
    await turn.perform(MODEL)
    assert (turn.lost_lease, turn.events) == (1, [])


async def test_what_was_stopped_before_its_first_byte_is_nobodys_mistake() -> None:
    turn = Turns()

    async def asked_by_others(*_: object) -> Event:
        raise AskedByOthers

    cast("Any", turn.work)._caller.call = asked_by_others
    await turn.perform(MODEL)
    assert (turn.lost_lease, turn.events) == (1, [])


async def test_a_tool_that_is_not_as_safe_any_more_as_its_turn_was_told_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(Turns().work.checked(TOOL), Runnable)
    other = ToolSpec("read", "for tests", {"type": "object"}, EffectClass.EFFECT)
    monkeypatch.setattr(Tool, "spec", other)
    assert isinstance(Turns().work.checked(TOOL), ToolChanged)


@pytest.mark.parametrize("effect", list(EffectClass))
@pytest.mark.parametrize("reach", list(Reach))
async def test_only_what_changes_nothing_and_nobody_elsewhere_hears_of_may_run_before_that_is_stored(
    effect: EffectClass, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tool, "spec", ToolSpec("read", "for tests", {"type": "object"}, effect, reach=reach))
    turn = Turns()
    assert turn.turn.opened is not None
    facts = tuple(replace(one, effect=effect) if one.name == "read" else one for one in turn.turn.settings.tools)
    turn.turn.opened = replace(turn.turn.opened, settings=replace(turn.turn.settings, tools=facts))
    assert not turn.work.only_reads("c1"), "it was not checked"
    assert isinstance(turn.work.checked(TOOL), Runnable)
    assert turn.work.only_reads("c1") is (effect is EffectClass.PURE and reach is Reach.HERE)


@pytest.mark.parametrize(
    ("allowed", "gone", "seconds"), [(60.0, 0, 60.0), (7_200.0, 0, 3_600.0), (3_000.0, 900, 2_700.0)]
)
async def test_a_question_is_open_no_longer_than_its_call_may_take(
    allowed: float, gone: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waited = FakeClock(), list[float]()

    async def answered(_: object, call: str, asking: object, seconds: float, intend: object) -> object:
        del call, asking, intend
        waited.append(seconds)
        return work.NOBODY

    async def asks(context: ToolContext) -> ToolOutcome:
        clock.now += gone * 1000
        await context.ask(ToolQuestion("name", "What is it?"))
        return ToolOutcome(ToolStatus.OK, "text")

    monkeypatch.setattr(work.OpenQuestions, "ask", answered)
    turn = Turns(does=asks)
    hands = cast("Any", turn.work)
    hands._world = changed(hands._world, clock=clock)
    assert turn.turn.opened is not None
    settings = replace(turn.turn.settings, can_approve=True, approval_seconds=allowed)
    turn.turn.opened = replace(turn.turn.opened, surface="telegram", settings=settings)
    await turn.perform(TOOL)
    assert waited == [seconds]


async def test_a_call_asks_one_question_at_a_time() -> None:
    answers: list[object] = []

    async def asks(context: ToolContext) -> ToolOutcome:
        first = asyncio.ensure_future(context.ask(ToolQuestion("name", "What is it?")))
        await asyncio.sleep(0)
        answers.append(await context.ask(ToolQuestion("age", "And how old?")))
        first.cancel()
        return ToolOutcome(ToolStatus.OK, "text")

    turn = Turns(does=asks)
    assert turn.turn.opened is not None
    settings = replace(turn.turn.settings, can_approve=True)
    turn.turn.opened = replace(turn.turn.opened, surface="telegram", settings=settings)
    async with asyncio.timeout(20):
        await turn.perform(TOOL)
    assert answers == [work.NOBODY]


async def test_how_far_a_tool_is_is_told_here_and_to_those_who_watch_elsewhere() -> None:
    told: list[tuple[object, ...]] = []

    async def beats(context: ToolContext) -> ToolOutcome:
        context.heartbeat("half of it")
        return ToolOutcome(ToolStatus.OK, "done")

    class Afar(NobodyAfar):
        def told(self, session: str, turn: str, call: str, words: str) -> None:
            told.append((session, turn, call, words))

    turn = Turns(does=beats)
    turn.work._world = replace(turn.work._world, afar=Afar())
    await turn.perform(RunTool("c1", "read", "{}"))
    assert turn.seen.progress == {"c1": "half of it"}
    assert told == [("s", "t", "c1", "half of it")]


def test_what_another_program_brings_takes_the_place_of_nothing_of_ours() -> None:
    async def never(context: ToolContext) -> ToolOutcome:
        raise AssertionError(context)

    own = Tool(never, foreign=False)
    registry = ToolRegistry([own])
    theirs = [ToolSpec(name, "theirs", {"type": "object"}, EffectClass.EFFECT) for name in ("read", "act")]
    registry.bring([Brought(one) for one in theirs])
    assert (set(registry.names), [one.name for one in registry.brought]) == ({"read", "act"}, ["act"])
    found = registry.check("read", "{}")
    assert isinstance(found, Runnable)
    assert found.spec.effect is EffectClass.PURE
    narrower = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    assert isinstance(registry.check("act", "{}"), Runnable)
    registry.bring([Brought(replace(theirs[1], parameters=narrower))])
    assert isinstance(registry.check("act", "{}"), ArgumentsUnreadable), "it is checked as it is now"
    registry.bring([])
    assert registry.names == ("read",)
