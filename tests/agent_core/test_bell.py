"""Text on its way is shown by the frame: what is read when a frame begins is shown then, not in the next one."""

from __future__ import annotations

import asyncio

from agent_core.bell import FRAME_SECONDS, Bell, Frames, next_frame


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


def test_a_frame_always_lies_ahead() -> None:
    for at in (0.0, 0.01, 0.049, 0.05, 0.051, 123.456):
        for behind in (0.0, FRAME_SECONDS / 2):
            assert at < next_frame(at, behind) <= at + FRAME_SECONDS + 1e-9
