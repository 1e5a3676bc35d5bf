"""The laws of `adapters/slack/door.py`."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from adapters.slack.sockets import InOrder

SETTLE = 0.001


def run(numbers: list[int], cancelled: set[int]) -> list[tuple[int, int]]:
    """Who went in, in order, when all came while one was inside; those at the places in `cancelled` gave up waiting."""
    went: list[tuple[int, int]] = []

    async def main() -> None:
        gate, inside, free = InOrder(SETTLE), 0, asyncio.Event()

        async def first() -> None:
            async with gate.turn(0):
                await free.wait()

        async def one(place: int, number: int) -> None:
            nonlocal inside
            async with gate.turn(number):
                inside += 1
                assert inside == 1
                await asyncio.sleep(0)
                went.append((number, place))
                inside -= 1

        async with asyncio.TaskGroup() as group:
            group.create_task(first())
            await asyncio.sleep(4 * SETTLE)
            waiting = [group.create_task(one(place, number)) for place, number in enumerate(numbers)]
            await asyncio.sleep(4 * SETTLE)
            for place in cancelled:
                waiting[place].cancel()
            free.set()

    asyncio.run(main())
    return went


@given(st.lists(st.integers(0, 9), max_size=8), st.data())
def test_the_oldest_that_waits_goes_in_and_nobody_is_held_up(numbers: list[int], data: st.DataObject) -> None:
    places = range(len(numbers))
    cancelled = data.draw(st.sets(st.sampled_from(places))) if numbers else set[int]()
    left = [(number, place) for place, number in enumerate(numbers) if place not in cancelled]
    assert run(numbers, cancelled) == sorted(left)


async def test_one_that_is_let_in_and_cancelled_at_once_lets_the_next_in() -> None:
    gate, went = InOrder(0), list[int]()

    async def one(number: int) -> None:
        async with gate.turn(number):
            went.append(number)

    async with asyncio.TaskGroup() as group:
        async with gate.turn(0):
            tasks = [group.create_task(one(number)) for number in (1, 2)]
            await asyncio.sleep(0.01)
        tasks[0].cancel()  # it has the lock already, and has not noticed
    assert went == [2]


async def test_an_older_one_that_comes_a_moment_later_goes_first() -> None:
    gate, went = InOrder(1.0), list[int]()

    async def one(number: int) -> None:
        async with gate.turn(number):
            went.append(number)

    async with asyncio.TaskGroup() as group:
        group.create_task(one(2))
        await asyncio.sleep(0.01)
        group.create_task(one(1))
    assert went == [1, 2]
