"""Slots: whoever is begun is begun once, whatever else is asked meanwhile; and no slot, and no moment at which one may go on, is lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, SessionKey
from agent_core.ports import SystemClock
from agent_core.signals import nobody
from gateway.limits.admission import Bounds
from gateway.limits.ramp import FIRST
from gateway.queues import slots
from gateway.queues.queue import Running, SessionQueue, Waiting
from gateway.queues.slots import TurnSlots
from tests.store.support import FakeClock

MANY = 4
FEW = Bounds(open=2, opening=1, share=1, crowd=2, waiting=5)
STEPS = st.tuples(st.sampled_from(("ask", "begun", "leave", "hurry")), st.integers(0, MANY - 1))


def message(of: str, number: int = 1) -> Waiting:
    inbound = FromApi(
        account="api", platform_key=f"k{number}", session=SessionKey("api", "", of), input=(), surface="api",
        memory_scope=f"api/{of}",
    )  # fmt: skip
    return Waiting(number, number, inbound, number)


def queue_of(name: str) -> SessionQueue:
    queue = SessionQueue(name, name, 1)
    queue.waiting.append(message(name))
    return queue


class Begun:
    """Slots for some queues, and who has begun and not left yet."""

    def __init__(self, bounds: Bounds = FEW, count: int = MANY, clock: Any = None) -> None:
        self.queues = [queue_of(f"q{number}") for number in range(count)]
        self.now: list[SessionQueue] = []
        self.slots = TurnSlots(bounds, self.queues, self._begin, clock or FakeClock(), nobody)

    def _begin(self, queue: SessionQueue) -> None:
        assert queue not in self.now, "it runs already"
        self.now.append(queue)

    def leave(self, queue: SessionQueue) -> None:
        if queue in self.now:
            self.now.remove(queue)
        self.slots.leave(queue)


@given(st.lists(STEPS, max_size=30))
def test_who_is_begun_is_begun_once_and_waits_no_more(steps: list[tuple[str, int]]) -> None:
    begun = Begun()
    for step, which in steps:
        queue = begun.queues[which]
        match step:
            case "ask":
                if queue not in begun.now:
                    begun.slots.ask(queue)
            case "begun":
                begun.slots.begun(queue)
            case "hurry":
                begun.slots.hurry(queue)
            case _:
                begun.leave(queue)
        assert all(begun.slots.position(one) is None for one in begun.now)
    for queue in begun.queues:
        begun.leave(queue)
    assert (begun.slots.open, begun.slots.in_line) == (0, 0)
    begun.slots.ask(begun.queues[0])
    assert begun.now, "a slot was lost"


def test_who_leaves_makes_room_for_the_next() -> None:
    begun = Begun(Bounds(open=1, opening=1, share=1, crowd=1, waiting=5))
    first, second, *_ = begun.queues
    begun.slots.ask(first)
    begun.slots.begun(first)
    begun.slots.ask(second)
    assert begun.now == [first]
    begun.leave(first)
    assert begun.now == [second]


async def test_who_was_taken_up_goes_on_in_time_although_nothing_happens() -> None:
    """The ramp holds up what an earlier process left: when it may go on nobody asks, leaves or begins."""
    begun = Begun(Bounds(open=99, opening=99, share=99, crowd=99, waiting=99), FIRST + 2, SystemClock())
    for queue in begun.queues:
        queue.running = Running(cast("Any", None), tuple(queue.waiting))
        begun.slots.ask(queue)
    assert len(begun.now) == FIRST
    async with asyncio.timeout(20):
        while len(begun.now) < len(begun.queues):
            await asyncio.sleep(0.02)
    begun.slots.close()


async def test_a_share_is_of_whoever_asked_for_the_turn_that_was_taken_up() -> None:
    begun = Begun(Bounds(open=9, opening=9, share=1, crowd=9, waiting=9))
    one, other, *_ = begun.queues
    other.waiting[:] = one.waiting
    for queue in (one, other):
        queue.running = Running(cast("Any", None), tuple(queue.waiting))
        begun.slots.ask(queue)
    assert begun.now == [one], "both are one person's, whose share is one"


@pytest.mark.parametrize("coming", [0, 2])
def test_what_is_just_being_taken_in_counts_as_waiting(coming: int) -> None:
    clock = FakeClock()
    begun = Begun(Bounds(open=1, opening=1, share=1, crowd=1, waiting=MANY + 1), clock=clock)
    for _ in range(coming):
        begun.slots.coming()
    clock.now += round(slots.RECOUNT_SECONDS * 2000)
    for _ in range(MANY):
        begun.slots.coming()
        begun.slots.came()  # that many have come and gone: all has to be counted once more
    assert begun.slots.full() is (coming > 0)


def test_what_comes_into_the_queues_by_other_ways_counts_as_waiting_as_well() -> None:
    """What an earlier process left, and what other gateways have stored for us."""
    clock = FakeClock()
    assert Begun(Bounds(open=1, opening=1, share=1, crowd=1, waiting=MANY), clock=clock).slots.full()
    begun = Begun(Bounds(open=1, opening=1, share=1, crowd=1, waiting=MANY + 1), clock=clock)
    assert not begun.slots.full()
    begun.queues[0].waiting.append(message("q0", 2))
    clock.now += round(slots.COUNT_SECONDS * 1000)
    assert begun.slots.full()
