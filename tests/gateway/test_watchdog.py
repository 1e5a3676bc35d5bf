"""A driver that does nothing any more: its turn is ended visibly and its queue is free again. The bugs are planted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import Ended, LeftOpen
from agent_core.driver.modelcalls import ModelCaller
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.jsonvalue import Json
from agent_core.judging.overdue import longest_timer_seconds
from agent_core.machine.turn import Turn
from agent_core.model.client import Sink
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.slices.rows import HOUSE, chat_slices
from agent_core.store.store import Conflict, Fenced, StorageUnavailable
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.turn.effects import CallModel
from agent_core.turn.events import Event, TurnEnded
from agent_core.turn.state import Phase
from agent_core.turn.view import BubbleKind
from gateway.queues import watchdog
from gateway.queues.queue import Running
from gateway.queues.watchdog import Watchdog
from gateway.sessions.recents import stored_end
from tests.agent_core.turns import Rig as TurnRig
from tests.gateway.rig import QUICK, call_chunk, chunk, gateway

WATCH: dict[str, Any] = {"watch_look_seconds": 0.2, "watch_grace_seconds": 0.3}


@dataclass
class Deaf:
    """A tool that does not hear that it is cancelled."""

    released: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("deaf", "for tests", {"type": "object"}, EffectClass.EFFECT, deadline_seconds=0.2)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutcome(ToolStatus.OK, "done after all")


@pytest.fixture
async def deaf() -> AsyncGenerator[Deaf]:
    tool = Deaf()
    yield tool
    tool.released.set()
    await asyncio.sleep(0.05)


async def calls_once(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
    if messages[-1]["content"] == "use it":
        await response.write(call_chunk("deaf", "{}"))
    else:
        await response.write(chunk({"content": "here"}) + chunk({}, "stop"))


async def test_a_tool_that_ignores_its_deadline_blocks_nobody(tmp_path: Path, deaf: Deaf) -> None:
    async with gateway(tmp_path, calls_once, tools=[deaf], **WATCH) as rig:
        stuck = await rig.hub.accept(rig.inbound("use it"))
        waiting = await rig.hub.accept(rig.inbound("next"))
        ended = await rig.end(stuck)
        assert ended.exit.code is ExitCode.INTERNAL_ERROR
        assert ended.exit.tools_unsure == ("deaf",)
        assert any(bubble.kind is BubbleKind.NOTICE for bubble in ended.view.bubbles)
        assert (await rig.end(waiting)).exit.code is ExitCode.ANSWERED
        deaf.released.set()
        stored = await stored_end(rig.store, stuck.inbox_id)
        assert stored is not None
        assert stored.exit == ended.exit


async def test_whoever_follows_it_at_one_of_several_gateways_is_told_the_end_that_is_stored(
    tmp_path: Path, deaf: Deaf
) -> None:
    async with gateway(tmp_path, calls_once, tools=[deaf], **WATCH) as rig:
        stuck = await rig.hub.accept(rig.inbound("use it"))
        portion = rig.hub.portion
        portion.change([*chat_slices(), HOUSE])
        portion.whole = False
        async with rig.hub.follow(stuck) as follower, asyncio.timeout(90):
            while not isinstance(sight := await follower.next(60), Ended | LeftOpen):
                pass
        portion.whole = True
        assert isinstance(sight, Ended)
        assert sight.exit.code is ExitCode.INTERNAL_ERROR


async def test_a_stop_frees_the_queue_although_the_tool_does_not_hear_it(tmp_path: Path, deaf: Deaf) -> None:
    async with gateway(tmp_path, calls_once, tools=[deaf], **WATCH) as rig:
        stuck = await rig.hub.accept(rig.inbound("use it"))
        async with asyncio.timeout(90):
            while True:
                queue = rig.hub.queues.of(stuck.session)
                if queue is not None and queue.running is not None and queue.running.driver.turn.phase is Phase.ACTING:
                    break
                await asyncio.sleep(0.01)
            stopped = asyncio.create_task(rig.hub.stop(rig.inbound("x").session))
            waiting = await rig.hub.accept(rig.inbound("next"))
            async with rig.hub.follow(waiting) as follower:
                while not isinstance(sight := await follower.next(60), Ended):
                    assert sight is not None
            assert sight.exit.code is ExitCode.ANSWERED
            await stopped


async def test_a_lost_event_ends_the_turn_with_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ModelCaller.call
    lost: list[int] = []

    async def loses_the_first(caller: ModelCaller, turn: Turn, effect: CallModel, sink: Sink) -> Event | None:
        if lost:
            return await whole(caller, turn, effect, sink)
        lost.append(effect.number)
        return None

    monkeypatch.setattr(ModelCaller, "call", loses_the_first)
    async with gateway(tmp_path, calls_once, settings=QUICK, **WATCH) as rig:
        ended = await rig.say("hello")
        assert ended.exit.code is ExitCode.INTERNAL_ERROR
        assert isinstance(ended.exit, exits.InternalError)
        assert ended.exit.reference.startswith("err")
        assert (await rig.say("again")).exit.code is ExitCode.ANSWERED


async def test_who_works_within_the_limits_is_left_alone(tmp_path: Path) -> None:
    async def slow(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        for number in range(12):
            await response.write(chunk({"content": f"word{number} "}))
            await asyncio.sleep(0.25)
        await response.write(chunk({}, "stop"))

    async with gateway(tmp_path, slow, **WATCH) as rig:
        assert (await rig.say("hello")).exit.code is ExitCode.ANSWERED


class Looking(Watchdog):
    """Looks as often as it is told what there is to see: whether it comes late, and whose driver is overdue."""

    def __init__(self, looks: Sequence[tuple[bool, set[str]]]) -> None:
        super().__init__(self._seen, cast("Any", None), cast("Any", self), SystemIds(SystemClock()), 0.0, 1.0)
        self.looks, self.clock, self.at = looks, [0.0], -1
        self.ended: list[tuple[int, str]] = []

    def monotonic(self) -> float:
        """Asked before and after each pause."""
        before = len(self.clock) % 2
        if before:
            self.at += 1
            if self.at == len(self.looks):
                raise asyncio.CancelledError
        self.clock.append(self.clock[-1] + (not before and self.looks[self.at][0]))
        return self.clock[-1]

    def _seen(self) -> list[Running]:
        due = self.looks[self.at][1]
        return [
            cast(
                "Any",
                SimpleNamespace(driver=SimpleNamespace(identity=SimpleNamespace(turn=name), overdue_seconds=seconds)),
            )
            for name, seconds in [*((each, 1.1) for each in sorted(due)), ("at its limit", 1.0)]
        ]

    async def _end(self, running: Running) -> None:
        self.ended.append((self.at, running.driver.identity.turn))


@example([(False, {"a"}), (False, {"a", "b"}), (True, {"b"}), (False, {"b"}), (False, {"b"})])
@given(st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from("ab"))), max_size=8))
def test_a_driver_is_ended_at_the_second_look_in_a_row_and_nobody_after_a_standstill(
    looks: list[tuple[bool, set[str]]],
) -> None:
    dog = Looking(looks)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(dog.run())
    due = [set[str]() if late else names for late, names in looks]
    assert dog.ended == [(at, name) for at in range(1, len(due)) for name in sorted(due[at - 1] & due[at])]


def test_the_longest_timer_follows_from_what_the_turn_waits_for() -> None:
    rig = TurnRig()
    assert longest_timer_seconds(rig.turn, 130, lambda _: 60) == 130
    rig.calls_tool("danger")
    assert longest_timer_seconds(rig.turn, 130, lambda _: 60) == rig.settings.approval_seconds
    other = TurnRig()
    other.calls_tool("read")
    assert longest_timer_seconds(other.turn, 130, lambda _: 60) == 60


class Stuck:
    """A driver that does nothing, and who has it."""

    def __init__(self, *, closed: bool = False, fails: Exception | None = None) -> None:
        self.identity = SimpleNamespace(turn="t1", session="s1", epoch=1, surface="")
        self.turn, self.closed, self.outlet, self.first_content_at = TurnRig().turn, closed, None, 0
        self.overdue_seconds, self.active_at = 100.0, 0.0
        self.fails, self.driver = fails, self
        self.said: list[str] = []

    # as of the store, and of who closes turns

    @property
    def store(self) -> Any:
        return SimpleNamespace(turns=self)

    async def journal(self, _: str) -> list[object]:
        if self.fails is not None:
            raise self.fails
        return []

    async def close(self, *_: object) -> None:
        self.said.append("closed")

    # as of what runs

    def leave(self) -> None:
        self.said.append("left")

    def give_up(self, _: Turn) -> None:
        self.said.append("given up")


@pytest.mark.parametrize(
    ("closed", "fails", "said"),
    [
        (False, None, ["closed", "given up"]),
        (True, None, ["given up"]),
        (False, Fenced("another has it"), ["left"]),
        (False, Conflict("it has ended"), ["left"]),
        (False, StorageUnavailable("away"), []),
    ],
)
async def test_whose_driver_is_stuck_has_its_queue_again_and_its_end_once(
    closed: bool, fails: Exception | None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = Stuck(closed=closed, fails=fails)
    ended = TurnRig().turn
    ended.feed(TurnEnded(at=1, exit=exits.Stopped()))

    def folded(_: object) -> Turn:
        return ended

    monkeypatch.setattr(watchdog, "fold", folded)
    clock = SystemClock()
    made = Watchdog(list, cast("Any", stuck), clock, SystemIds(clock), 1.0, 1.0)
    began = clock.monotonic()
    await made._end(cast("Running", stuck))
    assert stuck.said == said
    assert (stuck.active_at >= began) == isinstance(fails, StorageUnavailable), (
        "what waits for the storage has its time again"
    )
