"""Text on its way is shown by the frame: what is read when a frame begins is shown then, not in the next one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.bell import FRAME_SECONDS, LONG_SECONDS, MANY, Bell, Frames, next_frame
from agent_core.patience import Limit


async def begun(frames: Frames) -> None:
    """Return when the next frame begins."""
    began = asyncio.Event()
    frames.begins(began.set)
    await began.wait()


async def test_what_is_read_when_a_frame_begins_is_shown_at_once() -> None:
    bell, frames, shown = Bell(), Frames(), 0

    async def look() -> None:
        nonlocal shown
        while await bell.wait(5):
            shown += 1

    looking = asyncio.create_task(look())
    await begun(frames)
    bell.ring_in_frame()  # the first text
    await asyncio.sleep(0.002)
    bell.ring_in_frame()  # and more, too soon
    at_once = 0
    for _ in range(10):
        await begun(frames)
        await asyncio.sleep(0.001)  # the socket is read
        before = shown
        bell.ring_in_frame()
        for _ in range(3):
            await asyncio.sleep(0)
        at_once += shown > before
    looking.cancel()
    bell.close()
    assert at_once >= 7  # a busy machine may hold one up


async def test_text_that_comes_all_the_time_is_shown_once_a_frame() -> None:
    bell, shown = Bell(), 0
    loop = asyncio.get_running_loop()

    async def look() -> None:
        nonlocal shown
        while await bell.wait(5):
            shown += 1

    looking = asyncio.create_task(look())
    began = loop.time()
    while loop.time() - began < 8 * FRAME_SECONDS:
        bell.ring_in_frame()
        await asyncio.sleep(0.002)
    looking.cancel()
    bell.close()
    assert 3 <= shown <= 11


async def test_text_that_is_taken_wakes_nobody() -> None:
    """Whoever waits is woken for everything else, for text that is not taken, and at the end of the time."""
    bell, loop, asked = Bell(), asyncio.get_running_loop(), 0
    takes = True

    class Text:
        def new_text(self) -> bool:
            nonlocal asked
            asked += 1
            return takes

    text = Text()
    waiting = asyncio.create_task(bell.wait(20, text))
    await asyncio.sleep(0)
    for _ in range(3):
        bell.ring_in_frame()
        await asyncio.sleep(1.5 * FRAME_SECONDS)
    assert asked == 3
    assert not waiting.done()
    takes = False
    bell.ring_in_frame()
    assert await asyncio.wait_for(waiting, 10)
    assert asked == 4
    takes, began = True, loop.time()
    waiting = asyncio.create_task(bell.wait(4 * FRAME_SECONDS, text))
    await asyncio.sleep(2 * FRAME_SECONDS)
    bell.ring_in_frame()
    assert not await asyncio.wait_for(waiting, 10)
    assert loop.time() - began >= 4 * FRAME_SECONDS - 0.001
    waiting = asyncio.create_task(bell.wait(20, text))
    await asyncio.sleep(0)
    bell.ring()
    bell.ring_in_frame()  # it is being woken already
    assert await asyncio.wait_for(waiting, 10)
    assert asked == 5
    bell.ring_in_frame()  # nobody waits
    assert await bell.wait(5, text)
    bell.close()


async def test_text_is_taken_in_the_context_of_whoever_waits() -> None:
    whose = ContextVar("whose", default="nobody")
    bell, frames, seen = Bell(), Frames(), list[str]()

    class Text:
        def new_text(self) -> bool:
            seen.append(whose.get())
            return True

    async def wait() -> None:
        whose.set("reader")
        frames.begins(lambda: seen.append(whose.get()))
        await bell.wait(20, Text())

    waiting = asyncio.create_task(wait())
    await begun(frames)
    bell.ring_in_frame()
    assert seen == ["reader", "reader"]
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    bell.close()


async def test_what_a_frame_calls_is_called_in_its_order_with_others_between() -> None:
    frames, called, between = Frames(), list[int](), 0
    over = asyncio.Event()

    def call(number: int) -> None:
        called.append(number)
        if len(called) == 1:
            asyncio.get_running_loop().call_soon(count)
        if len(called) == 100:
            over.set()

    def count() -> None:
        nonlocal between
        between = len(called)

    for number in range(100):
        frames.begins(partial(call, number))
    await asyncio.wait_for(over.wait(), 10)
    assert called == list(range(100))
    assert 0 < between < 100


@pytest.mark.parametrize(("sharing", "seconds"), [(1, FRAME_SECONDS), (MANY - 1, FRAME_SECONDS), (MANY, LONG_SECONDS)])
async def test_where_many_share_a_frame_every_second_one_is_left_out(sharing: int, seconds: float) -> None:
    frames, loop = Frames(), asyncio.get_running_loop()
    asked: list[float] = []
    patched = loop.call_at

    def noted(when: float, callback: Callable[..., object], *arguments: object) -> asyncio.TimerHandle:
        asked.append(when)
        return patched(when, callback, *arguments)

    frames.loop = SimpleNamespace(call_at=noted, call_soon=loop.call_soon, time=loop.time)  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(4):
        before = loop.time()
        await asyncio.gather(*(begun(frames) for _ in range(sharing)))
        assert loop.time() >= before
    later = asked[1:]  # the first knows of nobody
    assert all(math.isclose(when / seconds, round(when / seconds), abs_tol=1e-6) for when in later)
    assert len(later) == 3


def test_a_frame_always_lies_ahead() -> None:
    for at in (0.0, 0.01, 0.049, 0.05, 0.051, 123.456):
        for behind in (0.0, FRAME_SECONDS / 2):
            assert at < next_frame(at, behind) <= at + FRAME_SECONDS + 1e-9


async def test_what_rang_before_the_wait_is_heard_and_heard_once() -> None:
    bell = Bell()
    bell.ring()
    assert await bell.wait(5)
    assert not await bell.wait(0.01)
    bell.close()


async def test_a_wait_ends_at_its_own_time_whatever_the_one_before_it_had() -> None:
    bell, loop = Bell(), asyncio.get_running_loop()
    for seconds in (0.04, 0.01, 0.03):  # the timer is there already: later than wanted, earlier than wanted
        began = loop.time()
        assert not await asyncio.wait_for(bell.wait(seconds), 5)
        assert loop.time() - began >= seconds - 0.001
        waiting = asyncio.create_task(bell.wait(5))
        await asyncio.sleep(0)
        bell.ring()
        assert await asyncio.wait_for(waiting, 4)
    bell.close()


@pytest.mark.parametrize(("before", "seconds"), [(5.0, 0.02), (0.01, 0.05), (0.02, 0.02)])
async def test_a_wait_is_not_cut_nor_drawn_out_by_the_time_of_one_that_was_rung(before: float, seconds: float) -> None:
    bell, loop = Bell(), asyncio.get_running_loop()
    waiting = asyncio.create_task(bell.wait(before))
    await asyncio.sleep(0)
    bell.ring()
    assert await waiting
    began = loop.time()
    assert not await asyncio.wait_for(bell.wait(seconds), 4)
    assert loop.time() - began >= seconds - 0.001
    bell.close()


async def test_whoever_is_not_waiting_any_more_takes_no_ring_from_the_next() -> None:
    bell = Bell()
    waiting = asyncio.create_task(bell.wait(5))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    bell.ring()
    assert await asyncio.wait_for(bell.wait(5), 4)
    bell.close()


async def test_a_closed_bell_leaves_no_timer() -> None:
    bell, loop = Bell(), asyncio.get_running_loop()
    assert not await bell.wait(0.001)
    waiting = asyncio.create_task(bell.wait(0.02))
    await asyncio.sleep(0)
    bell.ring()
    assert await waiting
    bell.ring_in_frame()
    assert await bell.wait(5)
    bell.ring_in_frame()  # so soon after the other it has to wait for a frame
    bell.close()
    until = loop.time() + 3 * FRAME_SECONDS
    assert not await bell.wait(until - loop.time())
    bell.close()


class Early(asyncio.SelectorEventLoop):
    """Its timers fire a little too soon, as those of uvloop do: it counts in whole milliseconds."""

    timers = 0

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_at(when - 0.0005, callback, *args, context=context)


async def rest(seconds: float) -> None:
    await Bell().wait(seconds)


async def be_late(seconds: float) -> None:
    with pytest.raises(TimeoutError):
        async with Limit(seconds):
            await asyncio.Event().wait()


@pytest.mark.parametrize("work", [rest, be_late])
def test_a_timer_that_fires_a_moment_too_soon_is_not_set_again(
    work: Callable[[float], Coroutine[Any, Any, None]],
) -> None:
    """Again and again, until the moment is over."""
    with asyncio.Runner(loop_factory=Early) as runner:
        runner.run(work(0.0204))  # a selector counts in whole milliseconds, upwards
        loop = runner.get_loop()
        assert isinstance(loop, Early)
        assert loop.timers == 1
