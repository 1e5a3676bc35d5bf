"""Which requests that were not taken are noted: so that an operator sees them, and nobody fills the storage with them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import RefusedRequest
from agent_core.store.store import StorageUnavailable
from gateway.queues.refusals import LANE, MOST_A_MINUTE, Refusals
from tests.store.support import FakeClock


class World:
    def __init__(self, error: Exception | None = None) -> None:
        self.clock, self.stored, self.told = FakeClock(), list[Any](), list[object]()
        self.error = error
        ids = SimpleNamespace(new=lambda prefix: f"{prefix}{len(self.told)}")  # pyright: ignore[reportUnknownLambdaType]
        store = SimpleNamespace(inbox=SimpleNamespace(accept=self._accept))
        self.refusals = Refusals(cast("Any", store), self.clock, cast("Any", ids), self.told.append)

    async def _accept(self, message: Any) -> None:
        if self.error is not None:
            raise self.error
        self.stored.append(message)

    async def refuse(self, times: int, *, stranger: bool = False) -> None:
        for number in range(times):
            await self.refusals(RefusedRequest(400, "it is odd", f"r{number}", "key", stranger=stranger))


async def test_so_many_a_minute_are_stored_and_all_are_counted() -> None:
    world = World()
    await world.refuse(MOST_A_MINUTE + 5)
    assert len(world.stored) == MOST_A_MINUTE
    assert {one.lane for one in world.stored} == {LANE}
    assert {one.refused for one in world.stored} == {"it is odd"}
    assert len({one.platform_key for one in world.stored}) == MOST_A_MINUTE
    assert len({one.session_key for one in world.stored}) == 1, "no conversation comes to be by what is not taken"
    world.clock.now += 61_000
    await world.refuse(1)
    assert len(world.stored) == MOST_A_MINUTE + 1


async def test_of_strangers_nothing_is_stored_and_they_take_nobodys_room() -> None:
    world = World()
    await world.refuse(2 * MOST_A_MINUTE, stranger=True)
    assert world.stored == []
    assert len(world.told) == 2 * MOST_A_MINUTE, "but they are counted"
    await world.refuse(1)
    assert len(world.stored) == 1


@pytest.mark.parametrize("error", [StorageUnavailable("away"), TimeoutError()])
async def test_who_is_refused_is_so_although_nothing_can_be_stored(error: Exception) -> None:
    world = World(error)
    await world.refuse(1)
    assert world.stored == []
