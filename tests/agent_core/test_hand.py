"""The writer's thread: in order, one at a time; what was given up is not begun; what is under way is done."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from agent_core.workers.hand import WorkerThread


async def test_work_is_done_in_order_in_one_thread_of_its_own() -> None:
    hand, seen = WorkerThread("tests"), list[tuple[int, str]]()
    for number in [*[hand.run(lambda n=n: seen.append((n, threading.current_thread().name))) for n in range(50)]]:
        await number
    assert seen == [(n, "tests") for n in range(50)]
    hand.end()


async def test_what_it_raises_comes_to_who_waits() -> None:
    hand = WorkerThread("tests")

    def wrong() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        await hand.run(wrong)
    assert await hand.run(lambda: 7) == 7
    hand.end()


async def test_what_was_given_up_is_not_begun_and_what_is_under_way_ends() -> None:
    hand, going, done = WorkerThread("tests"), threading.Event(), list[str]()

    def slow() -> None:
        going.wait(10)
        done.append("slow")

    first, second, third = hand.run(slow), hand.run(lambda: done.append("second")), hand.run(lambda: done.append("3"))
    await asyncio.sleep(0.01)
    first.cancel()
    second.cancel()
    going.set()
    await third
    assert done == ["slow", "3"]
    hand.end()


async def test_its_end_waits_for_what_was_asked_for() -> None:
    hand, done = WorkerThread("tests"), list[str]()
    asked = hand.run(lambda: (time.sleep(0.05), done.append("it")))
    hand.end()
    assert done == ["it"]
    await asked


def test_a_loop_that_has_ended_is_told_nothing() -> None:
    hand, going, done = WorkerThread("tests"), threading.Event(), list[str]()

    async def leave() -> None:
        hand.run(lambda: (going.wait(10), done.append("it")))

    asyncio.run(leave())
    going.set()
    hand.end()
    assert done == ["it"]


def test_who_never_asked_has_nothing_to_end() -> None:
    WorkerThread("tests").end()
