"""A queue is there as long as anybody needs it."""

from __future__ import annotations

import asyncio

from gateway.queues.queues import Queues


async def test_a_queue_is_not_forgotten_while_somebody_waits_to_be_let_in() -> None:
    """A message that comes three times at once: the first leaves, and the second goes on with the queue that it waits at."""
    queues = Queues()
    known: list[bool] = []

    async def come() -> None:
        queue = queues.at("api/1")
        async with queue.accepting:
            await asyncio.sleep(0)
            known.append(queues.known("api/1") is queue)
        queues.release(queue)

    coming = [asyncio.create_task(come()) for _ in range(3)]
    await asyncio.gather(*coming)
    assert known == [True] * 3
    assert queues.known("api/1") is None


async def test_who_gives_up_waiting_keeps_no_queue() -> None:
    queues = Queues()
    queue = queues.at("api/1")
    async with queue.accepting:
        waiting = asyncio.create_task(queue.accepting.acquire())
        await asyncio.sleep(0)
        assert queue.accepting.wanted == 2
        waiting.cancel()
        await asyncio.wait({waiting})
        assert not queue.idle
    assert queue.idle
