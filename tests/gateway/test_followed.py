"""Who follows what: whoever leaves is not counted any more, places in the queue are told as they are, and another branch is in no list."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, MessageState, SessionKey, Ticket, TurnSight
from agent_core.messages import InputMessage
from gateway.queues.branches import Branches
from gateway.queues.queue import SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions import recents
from gateway.sessions.followers import Watching
from gateway.sharing.portion import Portion
from tests.store.support import FakeClock

KEY = SessionKey("web", "page", "a")


def watching() -> Watching:
    none = cast("Any", None)
    return Watching(none, Queues(), cast("Any", SimpleNamespace(closing=False)), FakeClock(), Portion(), none)


def waits(number: int) -> Waiting:
    said = FromApi(
        account="web", platform_key=f"k{number}", session=KEY, input=(InputMessage("hello"),), surface="web",
        memory_scope="web",
    )  # fmt: skip
    return Waiting(number, number, said, number)


async def test_a_message_is_followed_by_as_many_as_are_there_and_when_the_last_has_left_that_is_told() -> None:
    here = watching()
    ticket, other = Ticket(7, "s", duplicate=False), Ticket(8, "s", duplicate=False)
    async with here.follow(other):
        async with here.follow(ticket):
            async with here.follow(ticket):
                assert here.following == {7: 2, 8: 1}
            assert here.following == {7: 1, 8: 1}
            assert not await here.left.wait(0.0)
        assert here.following == {8: 1}
        assert await here.left.wait(0.0)
    here.left.close()


def positions(sights: tuple[TurnSight, ...] | None) -> dict[str, int]:
    assert sights is not None
    assert all(one.state is MessageState.QUEUED for one in sights)
    return {one.key: one.position for one in sights}


async def test_places_in_a_queue_are_told_from_1_and_told_again_where_they_change() -> None:
    here = watching()
    queue = here.queues.at(KEY.text())
    queue.recent_loaded, queue.session = True, "s"
    queue.waiting = [waits(1), waits(2), waits(3)]
    async with here.follow_session(KEY) as following:
        assert positions(await following.next(0.0)) == {"k1": 1, "k2": 2, "k3": 3}
        queue.wake()
        assert await following.next(0.0) is None, "nothing has changed"
        del queue.waiting[1]
        queue.wake()
        assert positions(await following.next(0.0)) == {"k3": 2}


@pytest.mark.parametrize("known", [True, False], ids=["known before", "stored"])
async def test_what_is_on_another_branch_is_not_in_the_list_of_what_was_said_last(
    monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    def sight(turn: str, order: int) -> TurnSight:
        return TurnSight(f"k{turn}", order, MessageState.CLOSED, "hello", turn)

    there = [sight(turn, order) for order, turn in enumerate(("t1", "t2", "t3"))]

    async def recent_sights(*_: object) -> tuple[Branches, list[TurnSight]]:
        return Branches(True, frozenset({"t1", "t2", "t3"}), frozenset({"t2"})), [] if known else there

    monkeypatch.setattr(recents, "recent_sights", recent_sights)
    queue = SessionQueue(KEY.text(), "s")
    queue.recent = there if known else [there[2]]
    await recents.load_recent(cast("Any", None), queue, cast("Callable[..., Any]", None))
    assert [one.turn for one in queue.recent] == ["t1", "t3"]
