"""A turn that cannot be opened: what becomes of the messages that it was to answer, for each reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from agent_core.failures.notices import NotStarted
from agent_core.store.store import Conflict, Damaged, Fenced, LeaseLost, StorageUnavailable
from gateway.queues.inbox import NO_MODEL, NOT_OPENED
from gateway.queues.queue import SessionQueue, Waiting
from gateway.sessions.opening import NoWay, TurnOpener
from tests.gateway.test_slots import message


class World:
    """An opener that fails, and what it does then."""

    def __init__(self, error: Exception, *, left: bool = False, dropped: bool = False, aside: bool = False) -> None:
        self.error, self.given_up, self.found = error, list[tuple[list[int], str, NotStarted]](), list[str]()
        self._left, self._dropped, self._aside = left, dropped, aside
        self.queue = SessionQueue("a", "s", 3)
        self.queue.waiting = [message("a", 1), message("a", 2)]
        self.store = SimpleNamespace(left=SimpleNamespace(turns=self._turns))
        self.left = SimpleNamespace(find=self._find)
        self.aside = SimpleNamespace(put=self._put)

    async def _try_to_open(self, *_: object) -> None:
        raise self.error

    async def _turns(self, session: str) -> list[str]:
        return [session] if self._left else []

    async def _find(self, session: str) -> None:
        self.found.append(session)

    async def _put(self, *_: object) -> bool:
        return self._aside

    async def _dropped_meanwhile(self, *_: object) -> bool:
        return self._dropped

    async def _give_up(self, queue: SessionQueue, messages: list[Waiting], reason: str, told: NotStarted) -> None:
        assert queue is self.queue
        self.given_up.append(([one.inbox_id for one in messages], reason, told))

    async def open(self) -> None:
        with capture_logs():
            assert await TurnOpener.open(cast("Any", self), self.queue, (self.queue.waiting[0],)) is None

    @property
    def waiting(self) -> list[int]:
        return [one.inbox_id for one in self.queue.waiting]


async def test_what_an_earlier_process_left_open_comes_first_and_then_what_waits_behind_it() -> None:
    world = World(Conflict("a turn is open"), left=True)
    await world.open()
    assert (world.queue.blocked, world.found, world.given_up, world.waiting) == (True, ["s"], [], [1, 2])


async def test_what_was_dropped_while_it_was_opened_is_given_up_by_nobody_else() -> None:
    world = World(Conflict("it is dropped"), dropped=True)
    await world.open()
    assert (world.queue.blocked, world.found, world.given_up) == (False, [], [])


@pytest.mark.parametrize("error", [Fenced("another's"), LeaseLost("it is over")])
async def test_what_is_another_gateways_by_now_waits_there_and_not_here(error: Exception) -> None:
    world = World(error)
    await world.open()
    assert (world.waiting, world.queue.epoch, world.given_up) == ([], 0, []), "nothing of it is ours to give up"


@pytest.mark.parametrize(
    ("error", "reason", "told"),
    [
        (NoWay("no model"), NO_MODEL, NotStarted.NO_MODEL),
        (Conflict("odd"), NOT_OPENED, NotStarted.NOT_OPENED),
        (ZeroDivisionError("ours"), NOT_OPENED, NotStarted.NOT_OPENED),
    ],
)
async def test_what_cannot_be_opened_is_given_up_with_its_reason_and_what_is_behind_it_waits(
    error: Exception, reason: str, told: NotStarted
) -> None:
    world = World(error)
    await world.open()
    assert world.given_up == [([1], reason, told)]
    assert not world.queue.blocked


@pytest.mark.parametrize("aside", [True, False])
@pytest.mark.parametrize("error", [StorageUnavailable("away"), Damaged("damaged")])
async def test_while_the_storage_is_away_all_waits_and_what_is_damaged_is_set_aside_if_that_can_be_stored(
    error: Exception, aside: bool
) -> None:
    world = World(error, aside=aside)
    if aside and isinstance(error, Damaged):
        await world.open()
    else:
        with pytest.raises(type(error)):
            await world.open()
    assert (world.given_up, world.waiting) == ([], [1, 2])
