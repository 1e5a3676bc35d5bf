"""The runner, with its real queues and slots, before drivers that do as they are told: in which order messages run, what becomes of those that were
withdrawn, steered or given away meanwhile, and who holds a place when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.driver.driver import Overtaken, TurnLeftOpen
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.signals import nobody
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.text.tongue import begin_speaking, spoken_now
from agent_core.turn.events import StopRequested
from agent_core.turn.state import PersonItem
from gateway.limits.admission import Bounds
from gateway.queues.queue import Running, SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions import runner as runners
from gateway.sessions.runner import Runner
from tests.gateway.test_slots import message

ONE = Bounds(open=1, opening=1, share=1, crowd=1, waiting=9)
TWO = Bounds(open=2, opening=1, share=2, crowd=2, waiting=9)


class Driver:
    """Of one turn, which ends when it is told so."""

    opened_at = 5

    def __init__(self, world: World, messages: Sequence[Waiting]) -> None:
        self._world = world
        self.messages = messages
        self.told: list[object] = []
        self.items: list[PersonItem] = []
        self.may_end = asyncio.Event()
        self.abandoned = False
        self.identity = SimpleNamespace(turn=f"t{messages[0].inbox_id}")
        self.turn = SimpleNamespace(items=self.items, opened=None, kept_out=())
        self.spoken: str | None = None

    def tell(self, event: object) -> bool:
        self.told.append(event)
        return True

    def abandon(self) -> None:
        self.abandoned = True
        self.may_end.set()

    async def run(self) -> None:
        self.spoken = spoken_now()
        self._world.ran.append([one.inbox_id for one in self.messages])
        if self._world.holds:
            await self.may_end.wait()
        if self.abandoned:
            raise TurnLeftOpen(self.identity.turn)
        if self._world.overtaken:
            self.identity.turn = "t_same"
            raise Overtaken(self.identity.turn)


@dataclass
class World:
    """Runs queues; what its opener does is said here."""

    bounds: Bounds = ONE
    holds: bool = False
    """Turns run until they are told to end."""
    ran: list[list[int]] = field(default_factory=list[list[int]])
    drivers: list[Driver] = field(default_factory=list[Driver])
    spoken: list[str] = field(default_factory=list[str])
    """The language in which each turn was opened."""
    opening: Callable[[SessionQueue], Awaitable[None]] | None = None
    queues: Queues = field(default_factory=Queues)
    overtaken: bool = False
    """Each turn is found to be another's."""
    aside: list[str] = field(default_factory=list[str])
    runner: Runner = field(init=False)

    async def put(self, session: str, error: Exception) -> bool:
        assert isinstance(error, Damaged)
        self.aside.append(session)
        return True

    async def open_turn(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> Any:
        if self.opening is not None:
            await self.opening(queue)
        self.spoken.append(spoken_now())
        self.drivers.append(Driver(self, messages))
        return self.drivers[-1]

    def queue(self, name: str, *, blocked: bool = False) -> SessionQueue:
        queue = self.queues.at(name)
        queue.blocked = blocked
        self.queues.own(queue, name, 1)
        return queue

    async def until(self, what: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not what():
                await asyncio.sleep(0.001)


@asynccontextmanager
async def running(**more: Any) -> AsyncGenerator[World]:
    world = World(**more)

    async def left(key: str) -> None:
        del key

    async with asyncio.TaskGroup() as group:
        none = cast("Any", None)
        world.runner = Runner(
            world.queues, world.open_turn, left, cast("Any", world), none, world.bounds, SystemClock(), nobody, group
        )
        try:
            yield world
        finally:
            for driver in world.drivers:
                driver.may_end.set()
            world.runner.cancel()


async def test_messages_run_in_the_order_in_which_they_were_stored() -> None:
    """Whenever they come here: another gateway may have stored the first."""
    async with running(holds=True) as world:
        queue = world.queue("a")
        for number in (3, 5, 1, 4, 2):
            world.runner.add(queue, message("a", number))
        world.holds = False
        await world.until(lambda: world.drivers)
        world.drivers[0].may_end.set()
        await world.until(lambda: len(world.ran) == 5)
    assert world.ran in ([[1], [2], [3], [4], [5]], [[3], [1], [2], [4], [5]])  # who came first may have begun
    assert [one.inbox_id for one in queue.waiting] == []


async def test_a_queue_behind_something_left_begins_when_that_was_taken_up() -> None:
    async with running() as world:
        queue = world.queue("a", blocked=True)
        world.runner.add(queue, message("a"))
        await asyncio.sleep(0.01)
        assert world.ran == []
        assert queue.task is None
        world.runner.unblock(queue)
        await world.until(lambda: world.ran)


@pytest.mark.parametrize("forgotten", [False, True])
async def test_what_was_withdrawn_while_its_turn_was_opened_is_stopped_and_nothing_else_is(*, forgotten: bool) -> None:
    async with running() as world:
        queue = world.queue("a")

        async def withdraw(queue: SessionQueue) -> None:
            assert world.runner.take_out(queue, 1) is not None
            queue.forgotten |= frozenset({1} if forgotten else ())

        world.opening = withdraw
        world.runner.add(queue, message("a", 1))
        await world.until(lambda: world.ran)
        world.opening = None
        world.runner.add(queue, message("a", 2))
        await world.until(lambda: len(world.ran) == 2)
    stopped, other = world.drivers
    assert stopped.told == [StopRequested(at=5, forgotten=forgotten)]
    assert other.told == []
    assert not queue.forgotten


async def test_what_was_put_into_a_turn_and_not_heard_comes_next_and_what_was_heard_does_not() -> None:
    async with running(holds=True) as world:
        queue = world.queue("a")
        world.runner.add(queue, message("a", 1))
        await world.until(lambda: queue.running)
        queue.steers += [message("a", 2), message("a", 3)]
        world.drivers[0].items.append(PersonItem(InputMessage("x"), 2))
        world.runner.add(queue, message("a", 4))
        world.holds = False
        world.drivers[0].may_end.set()
        await world.until(lambda: len(world.ran) == 3)
    assert world.ran == [[1], [3], [4]]
    assert queue.steers == []


async def test_whoever_waits_for_the_storage_holds_up_nobody_and_waits_no_longer_than_the_first_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[int] = []

    def seconds(attempt: int) -> float:
        pauses.append(attempt)
        return 20.0

    monkeypatch.setattr(runners, "NOT_OPENED", SimpleNamespace(seconds=seconds))
    async with running(bounds=TWO) as world:
        away, other = world.queue("away"), world.queue("other")

        async def opening(queue: SessionQueue) -> None:
            if queue is away and not world.ran:
                raise StorageUnavailable("It is away.")

        world.opening = opening
        world.runner.add(away, message("away", 1))
        await world.until(lambda: pauses)
        world.runner.add(other, message("other", 2))
        await world.until(lambda: world.ran == [[2]])
        away.wake()
        await world.until(lambda: len(world.ran) == 2)
        world.ran.clear()
        world.runner.add(away, message("away", 3))
        await world.until(lambda: len(pauses) == 2)
        world.ran.append([])
        away.wake()
        await world.until(lambda: [3] in world.ran)
    assert pauses == [1, 1]


async def test_each_turn_has_a_language_of_its_own() -> None:
    async with running(bounds=TWO) as world:
        begin_speaking("de")
        world.runner.add(world.queue("a"), message("a"))
        await world.until(lambda: world.ran)
    assert (world.spoken, world.drivers[0].spoken) == ([""], "")


async def test_what_is_handed_over_waits_no_more_here_and_its_place_goes_to_others() -> None:
    async with running(holds=True) as world:
        first, second, third = (world.queue(name) for name in "abc")
        world.runner.add(first, message("a", 1))
        await world.until(lambda: first.running)
        world.runner.add(second, message("b", 2))
        world.runner.add(third, message("c", 3))
        assert world.runner.slots.position(second) == 1
        world.runner.hand_over(second)
        assert world.runner.slots.position(second) is None
        assert (second.waiting, second.epoch) == ([], 0)
        assert world.queues.of("b") is None
        world.drivers[0].may_end.set()
        await world.until(lambda: len(world.ran) == 2)
        assert world.ran == [[1], [3]]


async def test_a_turn_that_was_taken_up_and_has_no_place_is_left_to_the_next_process() -> None:
    async with running(holds=True) as world:
        first, second = world.queue("a"), world.queue("b")
        world.runner.add(first, message("a", 1))
        await world.until(lambda: first.running)
        waits = Driver(world, [message("b", 2)])
        second.running = Running(cast("Any", waits), (message("b", 2),))
        world.runner.start(second)
        world.drivers[0].may_end.set()
        hurry = asyncio.Event()
        hurry.set()
        for driver in world.drivers:
            cast("Any", driver).hold = cast("Any", driver).leave = driver.abandon
            cast("Any", driver).waits_for_person = False
        await world.runner.drain(0.1, hurry)
        assert waits.abandoned
        assert world.ran == [[1]]
        second.running = None


async def test_a_turn_is_stopped_with_its_queue_also_where_that_has_only_just_begun() -> None:
    async with running() as world:
        queue = world.queue("a")
        waits = asyncio.Event()
        driving: Any = asyncio.create_task(waits.wait())
        queue.running = Running(cast("Any", None), (message("a"),), driving=driving)
        queue.task = cast("Any", asyncio.create_task(waits.wait()))
        world.runner.cancel()
        assert driving.cancelling()
        await asyncio.wait({driving, cast("Any", queue.task)})
        queue.running = queue.task = None


async def test_a_queue_whose_last_message_was_taken_out_is_in_no_line_and_forgotten() -> None:
    async with running(holds=True) as world:
        first, second = world.queue("a"), world.queue("b")
        world.runner.add(first, message("a", 1))
        await world.until(lambda: first.running)
        world.runner.add(second, message("b", 2))
        assert world.runner.take_out(second, 2)
        assert world.runner.slots.in_line == 0
        assert world.queues.known("b") is None
        assert world.runner.take_out(first, 7) is None


async def test_a_stop_by_a_message_that_waits_for_its_pieces_runs_nothing() -> None:
    """It was withdrawn while the runner waited for the rest of it."""
    async with running() as world:
        queue = world.queue("a")
        world.runner.add(queue, replace(message("a", 1), came=None))
        queue.waiting.clear()
        await world.until(lambda: queue.task is None)
    assert world.ran == []


async def test_a_turn_that_comes_back_again_and_again_as_anothers_is_nobodys_and_is_set_aside() -> None:
    async with running(overtaken=True) as world:
        queue = world.queue("a")
        for number in range(1, runners.OVERTAKEN_MOST):
            world.runner.add(queue, message("a", number))
        await world.until(lambda: len(world.ran) == runners.OVERTAKEN_MOST - 1 and queue.running is None)
        assert world.aside == []
        world.runner.add(queue, message("a", 9))
        await world.until(lambda: world.aside)
    assert world.aside == ["a"]
