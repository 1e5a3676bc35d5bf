"""The laws of `adapters.slack.sockets.InOrder`."""

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


PARTIES = st.frozensets(st.sampled_from("abcd"), min_size=1, max_size=2)


@given(st.lists(st.tuples(st.integers(0, 9), PARTIES), max_size=12), st.data())
def test_each_party_has_one_at_a_time_the_oldest_first_and_nobody_is_held_up(
    told: list[tuple[int, frozenset[str]]], data: st.DataObject
) -> None:
    cancelled = data.draw(st.sets(st.sampled_from(range(len(told))))) if told else set[int]()
    went, busy, free = list[int](), set[str](), asyncio.Event()

    async def main() -> None:
        gate = InOrder(SETTLE)

        async def first() -> None:
            async with gate.turn(0, frozenset("abcd")):
                await free.wait()

        async def one(place: int, number: int, parties: frozenset[str]) -> None:
            async with gate.turn(number, parties):
                assert not busy & parties
                busy.update(parties)
                for _ in range(place % 3):
                    await asyncio.sleep(0)
                went.append(place)
                busy.difference_update(parties)

        async with asyncio.TaskGroup() as group:
            group.create_task(first())
            await asyncio.sleep(4 * SETTLE)
            waiting = [group.create_task(one(place, *whose)) for place, whose in enumerate(told)]
            await asyncio.sleep(4 * SETTLE)
            for place in cancelled:
                waiting[place].cancel()
            free.set()
        assert not gate._lines
        assert not gate._busy

    asyncio.run(main())
    assert sorted(went) == [place for place in range(len(told)) if place not in cancelled]
    for party in "abcd":
        mine = [(told[place][0], place) for place in went if party in told[place][1]]
        assert mine == sorted(mine)


async def test_who_has_nobody_in_common_with_who_is_inside_does_not_wait_for_it() -> None:
    gate = InOrder(SETTLE)
    async with asyncio.timeout(5), gate.turn(1, frozenset("ab")), gate.turn(0, frozenset("cd")):
        pass


async def test_who_has_waited_for_its_moment_is_not_held_up_by_those_who_come_later() -> None:
    """However many keep coming."""
    gate, went = InOrder(3_600.0), list[int]()

    async def one(number: int) -> None:
        async with gate.turn(number):
            went.append(number)

    tasks = [asyncio.create_task(one(number)) for number in (1, 2, 3)]
    await asyncio.sleep(0)
    for told in ([1], [1, 2], [1, 2, 3]):
        gate._settle(gate._lines[""][0])
        for _ in range(4):
            await asyncio.sleep(0)
        assert went == told
    await asyncio.gather(*tasks)
