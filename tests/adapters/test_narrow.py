"""Of a crowd the first are taken in before the last are read; and nobody waits for long for somebody who does not come to an end."""

from __future__ import annotations

import asyncio
import time

from adapters.http.api.taking import BUSY_SECONDS, Narrow


async def test_so_many_are_inside_at_a_time_in_the_order_in_which_they_came() -> None:
    narrow, inside, most, came = Narrow(3, 60), 0, 0, list[int]()

    async def one(number: int) -> None:
        nonlocal inside, most
        async with narrow:
            came.append(number)
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001 * (number % 3))
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(40))), 20)
    assert came == list(range(40))
    assert most == 3


async def test_who_goes_while_waiting_takes_no_place_and_who_fails_gives_it_back() -> None:
    narrow, over = Narrow(1, 60), asyncio.Event()

    async def holds() -> None:
        try:
            async with narrow:
                await over.wait()
                raise LookupError
        finally:
            waiting[1].cancel()  # it was let in just now, and has not gone on yet

    async def passes() -> str:
        async with narrow:
            return "passed"

    holder = asyncio.create_task(holds())
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(passes()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    over.set()
    await asyncio.gather(holder, return_exceptions=True)
    assert await asyncio.wait_for(waiting[2], 10) == "passed"
    assert waiting[1].cancelled()
    assert await asyncio.wait_for(passes(), 10) == "passed"
    assert isinstance((await asyncio.gather(holder, return_exceptions=True))[0], LookupError)


async def test_where_nobody_comes_to_an_end_more_and_more_are_let_in() -> None:
    narrow, loop, over = Narrow(2, 0.05), asyncio.get_running_loop(), asyncio.Event()
    came: list[float] = []

    async def holds() -> None:
        async with narrow:
            came.append(loop.time())
            await over.wait()

    began = loop.time()
    holding = [asyncio.create_task(holds()) for _ in range(60)]
    async with asyncio.timeout(20):
        while len(came) < 60:
            await asyncio.sleep(0.01)
    assert sum(at - began < 0.049 for at in came) == 2
    over.set()
    await asyncio.gather(*holding)
    async with asyncio.timeout(20), narrow:  # and it is narrow again
        others = [asyncio.create_task(narrow.__aenter__()) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [one.done() for one in others] == [True, False]
    await asyncio.gather(*others)


async def test_where_nobody_waits_any_more_it_is_looked_no_more() -> None:
    narrow, over = Narrow(1, 0.01), asyncio.Event()

    async def holds() -> None:
        async with narrow:
            await over.wait()

    both = [asyncio.create_task(holds()) for _ in range(2)]
    await asyncio.sleep(0)
    over.set()
    await asyncio.gather(*both)
    async with asyncio.timeout(5):
        while narrow._timer is not None:
            await asyncio.sleep(0.005)


async def test_the_last_who_wait_are_let_in_once_the_loop_has_nothing_else_to_do() -> None:
    narrow, loop, told = Narrow(2, 60), asyncio.get_running_loop(), list[str]()

    def works(rounds: int) -> None:
        """What those who came out have begun: more than one round of the loop."""
        time.sleep(0.002)
        if rounds:
            loop.call_soon(works, rounds - 1)
        else:
            told.append("first word")

    async def one(number: int) -> None:
        async with narrow:
            told.append(f"{number}")
            await asyncio.sleep(0)
        if number < 2:
            loop.call_soon(works, 3)

    await asyncio.wait_for(asyncio.gather(*(one(number) for number in range(4))), 20)
    assert told == ["0", "1", "first word", "first word", "2", "3"]


async def test_what_goes_on_for_ever_holds_nobody_up_for_long() -> None:
    narrow, loop, over = Narrow(1, 60), asyncio.get_running_loop(), False

    def works() -> None:
        time.sleep(0.002)
        if not over:
            loop.call_soon(works)

    async def passes() -> None:
        async with narrow:
            await asyncio.sleep(0)

    works()
    began = loop.time()
    await asyncio.wait_for(asyncio.gather(passes(), passes()), 20)
    over = True
    assert BUSY_SECONDS / 2 < loop.time() - began < 10


async def test_of_a_large_crowd_each_who_comes_out_lets_the_next_in_at_once() -> None:
    narrow, came = Narrow(2, 60), list[int]()

    async def one(number: int) -> None:
        async with narrow:
            came.append(number)
            await asyncio.sleep(0)

    everybody = [asyncio.create_task(one(number)) for number in range(40)]
    for _ in range(6):
        await asyncio.sleep(0)
        time.sleep(0.002)
    assert len(came) > 4, "nobody is held up while the line is long"
    await asyncio.wait_for(asyncio.gather(*everybody), 20)
    assert came == list(range(40))


async def test_a_line_that_grows_while_it_is_looked_is_let_in_at_once() -> None:
    narrow, loop, came, busy = Narrow(2, 60), asyncio.get_running_loop(), list[int](), True

    def works() -> None:
        """What those who came out have begun does not end."""
        time.sleep(0.001)
        if busy:
            loop.call_soon(works)

    async def one(number: int) -> None:
        async with narrow:
            came.append(number)
            await (asyncio.sleep(0) if number < 2 else over.wait())  # who came out would have the next let in

    over, everybody = asyncio.Event(), [asyncio.create_task(one(number)) for number in range(4)]
    works()
    for _ in range(4):
        await asyncio.sleep(0)
    assert came == [0, 1], "two wait for a round in which there is nothing to do"
    everybody += [asyncio.create_task(one(number)) for number in range(4, 8)]
    began = time.monotonic()
    while len(came) < 4 and time.monotonic() - began < BUSY_SECONDS / 2:
        await asyncio.sleep(0)
    assert came == [0, 1, 2, 3]
    busy = False
    over.set()
    await asyncio.wait_for(asyncio.gather(*everybody), 20)
    assert came == list(range(8))
