"""Who follows what: whoever leaves is not counted any more, places in the queue are told as they are, and another branch is in no list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, MessageState, SessionKey, TaskTerms, Ticket, TurnSight
from agent_core.messages import InputMessage
from agent_core.store.keeping.forgetting import CONVERSATION, CONVERSATION_KEY, ForgettingJob, begin_conversation
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.queues import inbox
from gateway.queues.branches import Branches
from gateway.queues.queue import Running, SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions import recents
from gateway.sessions.followers import Watching
from gateway.setaside.unclaimed import Unclaimed
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.store.support import FakeClock, message, opened, turn_of

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


async def test_who_leaves_last_leaves_no_queue_behind_that_nobody_needs() -> None:
    here = watching()
    queue = here.queues.at(KEY.text())
    queue.recent_loaded = True
    here.queues.own(queue, "s", 1)

    def message() -> Any:
        return here.follow(Ticket(7, "s", duplicate=False))

    def whole() -> Any:
        return here.follow_session(KEY)

    for first, last in ((message, message), (whole, message), (message, whole)):
        here.queues.own(queue, "s", 1)
        async with last():
            async with first():
                assert len(queue.watchers) == 2
            assert [*here.queues] == [queue]
        assert (queue.watchers, [*here.queues]) == ([], [])
    here.left.close()


@dataclass(eq=False)
class Driver:
    identity: object
    seen: object


def told(sights: tuple[TurnSight, ...] | None) -> tuple[TurnSight, ...]:
    assert sights is not None
    return sights


async def test_what_a_task_asked_cannot_be_answered_any_more_when_it_is_over() -> None:
    here = watching()
    own, beside = here.queues.at(KEY.text()), here.queues.at("task//1")
    own.recent_loaded = True
    terms = TaskTerms(KEY.text(), "ada", 60, 7, number=1, title="Report")
    asked = FromApi(
        account="web", platform_key="task:1", session=SessionKey("task", "", "1"), input=(), surface="task", memory_scope="web",
        task=terms,
    )  # fmt: skip
    shown = View(
        (Bubble("b1", BubbleKind.DECIDED, "yes", True), Bubble("b2", BubbleKind.APPROVAL, "may it?", False)), True
    )
    seen = SimpleNamespace(current_view=lambda: shown, over=False, subscribe=gives(None), unsubscribe=gives(None))
    driver = Driver(identity=SimpleNamespace(turn="t9"), seen=seen)
    beside.running, beside.task = Running(cast("Any", driver), (Waiting(9, 9, asked, 9),)), cast("Any", object())
    async with here.follow_session(KEY) as following:
        (before,) = told(await following.next(0.0))
        assert [one.kind for one in before.view.bubbles] == [BubbleKind.DECIDED, BubbleKind.APPROVAL]
        beside.running = beside.task = None
        own.wake()
        (after,) = told(await following.next(0.0))
        assert (after.key, [one.kind for one in after.view.bubbles], after.view.open) == (
            before.key,
            [BubbleKind.DECIDED],
            False,
        )


@pytest.mark.parametrize("anew", [True, False], ids=["and begun anew", "and that is all"])
async def test_whoever_watches_a_conversation_of_another_gateway_comes_again_when_it_is_deleted(
    tmp_path: Path, *, anew: bool
) -> None:
    key = KEY.text()
    async with opened(str(tmp_path / "s.db")) as store:
        none = cast("Any", None)
        here = Watching(store, Queues(), none, FakeClock(), Portion(whole=False), none)
        async with here.follow_session(KEY) as following:
            assert await following.next(0.0) == ()
            session = (await store.inbox.accept(message("m1", key, inbox.encode(waits(1).inbound)))).session
            following._due.ring()
            await following.next(0.0)
            assert not following.over, "it has only begun"
            job = ForgettingJob("f", ((CONVERSATION, session), (CONVERSATION_KEY, key)), 5, None)
            await store.keeping.remove(begin_conversation(job, f"api/gone/{session}//"))
            if anew:
                await store.inbox.accept(message("m2", key, inbox.encode(waits(2).inbound)))
            following._due.ring()
            await following.next(0.0)
            assert following.over
        async with here.follow_session(KEY) as following:
            await following.next(0.0)
            assert not following.over


@pytest.mark.parametrize("far", [True, False], ids=["at another gateway", "here"])
async def test_a_message_that_cannot_be_read_hides_nothing_else_of_its_conversation(
    tmp_path: Path, *, far: bool
) -> None:
    key = KEY.text()
    async with opened(str(tmp_path / "s.db")) as store:
        lost, sound = message("m1", key, b"\0"), message("m2", key, inbox.encode(waits(2).inbound))
        await store.asides.drop((await store.inbox.accept(lost)).inbox_id, inbox.NOT_READ)
        await store.asides.drop((await store.inbox.accept(sound)).inbox_id, inbox.NOT_OPENED)
        if far:
            await store.inbox.accept(message("m3", key, b"\0"))  # its owner has not dropped it yet

        async def find(_: str) -> bool:
            return False

        unclaimed = SimpleNamespace(find=find)
        runner = SimpleNamespace(closing=False)
        here = Watching(
            store, Queues(), cast("Any", runner), FakeClock(), Portion(whole=not far), cast("Any", unclaimed)
        )
        async with here.follow_session(KEY) as following:
            sights = await following.next(0.0)
        assert sights is not None
        said = {one.key: (one.person, one.view.text if one.view else "") for one in sights}
        assert set(said) == {"m1", "k2"}
        assert "cannot be read any more" in said["m1"][1]
        assert said["k2"][0] == "hello"


async def test_whoever_follows_waits_while_what_an_earlier_process_left_is_not_taken_up_and_no_longer(
    sqlite: str,
) -> None:
    async with opened(sqlite) as store:
        session, epoch, _ = await turn_of(store)
    clock, none = FakeClock(), cast("Any", None)
    async with opened(sqlite) as store:
        left, runner = Unclaimed(store, none, clock), SimpleNamespace(closing=False)
        here = Watching(store, Queues(), cast("Any", runner), clock, Portion(), left)
        queue = SessionQueue("chat", session)
        assert await here.lacks(queue), "it is looked up, where nobody knows of it"
        queue.epoch = epoch + 1
        assert await here.lacks(queue), "it is ours, and known"
        runner.closing = True
        assert not await here.lacks(queue), "nobody takes it up any more"
        runner.closing = False
        (key,) = left.known
        left.known[key] = replace(left.known[key], taken_at=clock.monotonic())
        assert not await here.lacks(queue), "it is taken up"
        queue.blocked = True
        assert await here.lacks(queue), "and is not in its queue yet"
    left.bell.close()
