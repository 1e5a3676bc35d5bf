"""A lock that lets in the oldest that waits.

What a platform tells by several ways at once (sockets, parallel requests) is read in an order of its own. Whoever takes it in waits
for a moment, in which what is older can still come, and then in the order of what was said.

Laws (tests/adapters/test_inorder.py): one at a time; of those that wait, the one with the lowest number is next, and of equal ones the one
that came first; whoever is cancelled (or fails) while waiting holds nobody up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from heapq import heappop, heappush


class InOrder:
    """`settle_seconds` is how long each waits for older ones that are still on their way."""

    def __init__(self, settle_seconds: float) -> None:
        self._settle_seconds = settle_seconds
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0
        self._busy = False

    @asynccontextmanager
    async def turn(self, number: int) -> AsyncGenerator[None]:
        """Come back when it is the turn of `number` (any measure of age, lower is older), and let the next in at the end."""
        await self._wait(number)
        try:
            yield
        finally:
            self._let_in()

    async def _wait(self, number: int) -> None:
        mine = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._waiting, (number, self._count, mine))
        try:
            await asyncio.wait([mine], timeout=self._settle_seconds)
            if not self._busy:
                self._let_in()  # maybe an older one that came later
            await mine
        except BaseException:
            if mine.done() and not mine.cancelled():
                self._let_in()
            mine.cancel()
            raise

    def _let_in(self) -> None:
        """The oldest that still waits; it is busy from now on, also before that one has noticed."""
        self._busy = False
        while self._waiting:
            _, _, future = heappop(self._waiting)
            if not future.done():
                self._busy = True
                future.set_result(None)
                return
