"""Whatever falls together while it is read what there is to do, nothing is done twice, and nothing is left."""

from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from gateway.sharing.inhand import InHand


def test_what_was_in_hand_at_any_time_of_a_reading_is_named_by_it() -> None:
    hands = InHand[str, int]()
    hands.take("before", 1)
    hands.take("over before", 2)
    hands.leave("over before")
    with hands.reading() as first, hands.reading() as second:
        hands.leave("before")
        hands.take("meanwhile", 3)
        hands.leave("meanwhile")
    hands.take("behind", 4)
    assert first == second == {"before", "meanwhile"}
    assert [*hands] == [4]


def test_two_readings_that_see_the_same_are_two() -> None:
    hands = InHand[str, int]()
    with hands.reading() as outer:
        with hands.reading() as inner:
            pass
        hands.take("late", 1)
    assert (outer, inner) == ({"late"}, set())


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_each_thing_is_done_once_by_however_many_that_look(seed: int, lookers: int) -> None:
    """Each reading, each doing and each storing takes its own time."""
    draw = random.Random(seed)
    waiting, done = {*range(8)}, list[int]()
    hands = InHand[int, int]()

    async def pause() -> None:
        for _ in range(draw.randint(0, 3)):
            await asyncio.sleep(0)

    async def do(number: int) -> None:
        await pause()
        done.append(number)
        waiting.discard(number)  # stored as done
        await pause()
        hands.leave(number)

    async def look(group: asyncio.TaskGroup) -> None:
        while waiting:
            with hands.reading() as ours:
                await pause()
                found = [*waiting]
                await pause()
            for number in found:
                if number not in ours:
                    hands.take(number, number)
                    group.create_task(do(number))
            await asyncio.sleep(0)

    async def all_of_them() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(lookers):
                group.create_task(look(group))

    asyncio.run(all_of_them())
    assert sorted(done) == [*range(8)]
