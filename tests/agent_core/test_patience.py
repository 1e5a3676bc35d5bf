"""A limit of time ends what it is around, and nothing else; who was cancelled from outside stays so."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvloop

from agent_core.bell import Bell
from agent_core.patience import Limit, timer_at


async def test_what_takes_too_long_ends_and_its_task_goes_on() -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(TimeoutError):
        async with Limit(0.01):
            await asyncio.sleep(60)
    assert task.cancelling() == 0
    async with Limit(60):
        await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_it_may_be_moved_in_both_directions() -> None:
    began = time.monotonic()
    async with Limit(0.05) as limit:
        for _ in range(5):
            limit.move(0.2)
            await asyncio.sleep(0.03)

    async def brought_forward() -> None:
        async with Limit(60) as limit:
            limit.move(0.01)
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await brought_forward()
    assert time.monotonic() - began < 30


async def test_the_inner_one_of_two_ends_what_is_in_it_alone() -> None:
    async with Limit(60):
        with pytest.raises(TimeoutError):
            async with Limit(0.01):
                await asyncio.sleep(60)
        await asyncio.sleep(0)

    async def both() -> None:
        async with Limit(0.01):
            async with Limit(60):
                await asyncio.sleep(60)
            raise AssertionError("the outer one has passed")

    with pytest.raises(TimeoutError):
        await both()


async def test_who_is_cancelled_from_outside_is_cancelled_also_where_the_time_is_over_in_the_same_moment() -> None:
    entered = asyncio.Event()

    async def works() -> None:
        async with Limit(0.01):
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(works())
    await entered.wait()
    time.sleep(0.03)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_an_error_of_the_block_stays_what_it_is() -> None:
    async def fails() -> None:
        async with Limit(0.01):
            try:
                await asyncio.sleep(60)
            finally:
                raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fails()


async def test_who_was_held_has_a_moment_in_which_it_can_be_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.patience.CHANCE_SECONDS", 30)
    async with Limit(0.01):
        time.sleep(0.2)
        await asyncio.sleep(0.05)


def test_what_is_due_already_has_a_timer_like_all_others() -> None:
    """The gateway runs on uvloop, which calls it soon by a handle without a time: whoever asked that when it is due failed, and the turn with it."""

    async def asked() -> None:
        loop, rang = asyncio.get_running_loop(), asyncio.Event()
        assert timer_at(loop, loop.time() - 5, rang.set).when() < loop.time() + 1
        async with asyncio.timeout(10):
            await rang.wait()
        async with Limit(0) as limit:
            limit.move(-1)
            limit.move(60)
        bell = Bell()
        bell.ring()
        assert await bell.wait(0)
        waiting = asyncio.create_task(bell.wait(0))
        await asyncio.sleep(0)
        bell.ring()
        assert await waiting
        assert not await bell.wait(0.001)

    uvloop.run(asked())
