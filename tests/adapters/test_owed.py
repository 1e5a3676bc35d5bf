"""What could not be stored is stored before what was said later, once, though nobody listened for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from adapters.slack.owed import Owed


def event(ts: str) -> dict[str, Any]:
    return {"type": "message", "channel": "C1", "ts": ts}


class Storage:
    """Takes one at a time, when it is let."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self.taken, self.let = list[str](), asyncio.Semaphore(0)
        self.asked = 0
        self._group = group
        self.owed = Owed(self.take, lambda _: None, self._begin)

    async def take(self, body: object) -> None:
        self.asked += 1
        await self.let.acquire()
        self.taken.append(str(body))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._group.create_task(work)

    def owes(self, *times: str) -> None:
        for ts in times:
            self.owed.put(event(ts), ts)

    async def asks(self, times: int) -> None:
        async with asyncio.timeout(5):
            while self.asked < times:
                await asyncio.sleep(0)


async def test_what_was_said_first_is_stored_first_and_nothing_overtakes_it() -> None:
    async with asyncio.TaskGroup() as group:
        storage = Storage(group)
        storage.owes("2.0", "1.0", "2.0")
        assert storage.owed.before(event("3.0"))
        assert not storage.owed.before(event("1.0"))
        storage.let.release()
        storage.let.release()
    assert storage.taken == ["1.0", "2.0"]
    assert not storage.owed.before(event("3.0"))


async def test_what_is_owed_when_somebody_listens_again_is_stored_beside_what_is_under_way() -> None:
    async with asyncio.TaskGroup() as group:
        storage = Storage(group)
        storage.owes("1.0", "2.0")
        await storage.asks(1)
        storage.owed.clear()  # nobody listens: the histories have it
        storage.owes("3.0", "4.0")
        await storage.asks(2)
        for _ in range(4):
            storage.let.release()
    assert storage.taken == ["1.0", "3.0", "4.0"]
    assert not storage.owed.before(event("9.0"))


async def test_what_waits_for_the_past_of_a_thread_holds_up_that_thread_alone() -> None:
    async with asyncio.TaskGroup() as group:
        storage = Storage(group)
        storage.owed.put(event("1.0") | {"thread_ts": "0.5"}, "1.0", "C1:0.5")
        assert storage.owed.before(event("2.0") | {"thread_ts": "0.5"})
        assert not storage.owed.before(event("2.0"))
        storage.owes("2.0")
        assert storage.owed.before(event("3.0"))
        for _ in range(2):
            storage.let.release()
    assert storage.taken == ["1.0", "2.0"]
