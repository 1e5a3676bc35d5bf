"""A queue is there as long as anybody needs it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.bell import Bell
from gateway.queues.queue import MOST_BEGUN, Running, SessionQueue, Waiting
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


@pytest.mark.parametrize("busy", ["running", "waiting", "steers"])
def test_what_came_from_a_chat_comes_from_it_under_its_new_id(busy: str) -> None:
    """Also its conversation, which files are found by, and its memory."""

    def came(chat: str) -> Waiting:
        address = ChatAddress("telegram", "1", chat, "7")
        origin = ChatOrigin(address, ChatKind.GROUP, ChatPerson("2", "Ada"))
        inbound = FromChat(
            account="telegram/1", platform_key="1:1", session=SessionKey("telegram", "1", chat), input=(), surface="telegram",
            memory_scope=f"telegram/1/{chat}//", chat=origin,
        )  # fmt: skip
        return Waiting(1, 1, inbound, 0)

    queues, message, other = Queues(), came("5"), came("55")
    queue = queues.at("telegram/1/5//")
    if busy == "running":
        queue.running = Running(cast("Any", None), (message, other), over=cast("Any", None))
    else:
        setattr(queue, busy, [message, other])
    queues.move("telegram", "1", "5", "-9")
    assert (message.inbound, other.inbound) == (came("-9").inbound, came("55").inbound)


async def test_who_waits_for_a_session_is_rung_when_it_comes_and_when_nothing_is_run_here_any_more() -> None:
    queues, bell = Queues(), Bell()
    queues.expect("s1", bell)
    queues.own(queues.at("k2"), "s2", 1)
    assert not await bell.wait(0.0)
    queues.own(queues.at("k1"), "s1", 1)
    assert await bell.wait(0.0)
    queues.ring_all()
    assert await bell.wait(0.0)
    queues.expect_no_more(bell)
    queues.ring_all()
    assert not await bell.wait(0.0)
    bell.close()


def known(queues: Queues, key: str = "telegram/1/2//") -> SessionQueue:
    """A queue of ours of which all is known."""
    queue = queues.at(key)
    queues.own(queue, "s1", 1)
    queue.memory_loaded = queue.prefs_loaded = True
    return queue


def test_what_was_known_of_a_session_is_not_known_after_it_was_somebody_elses() -> None:
    queues = Queues()
    queue = known(queues)
    queues.disown(queue)
    assert not any((queue.memory_loaded, queue.prefs_loaded, queue.epoch))
    assert queues.of("s1") is None


@pytest.mark.parametrize("what", ["it is gone", "it is another", "it has changed", "its chat has another id"])
def test_the_past_of_a_forgotten_queue_is_believed_only_while_nothing_happens(what: str) -> None:
    queues = Queues()
    queue = known(queues)
    queues.release(queue)
    assert queues.known(queue.key) is None
    assert queues.pasts.whose(queue.key) == ("s1", 1)
    match what:
        case "it is gone":
            queues.let_go(queue)
        case "it is another":
            queues.point(queue, "s2", 3)
        case "it has changed":
            queues.forget_memory(queue.key)
        case _:
            queues.move("telegram", "1", "2", "-5")
    assert queues.pasts.whose(queue.key) != ("s1", 1)


def test_a_message_is_known_wherever_it_is() -> None:
    queue = SessionQueue("k")
    for number, place in enumerate((queue.waiting, queue.steers), 1):
        place.append(Waiting(number, number, cast("Any", None), 0))
    queue.begun.add(3)
    assert [number for number in range(5) if queue.knows(number)] == [1, 2, 3]


def test_what_has_begun_is_known_though_its_queue_was_forgotten() -> None:
    """Whoever read it as new before, and puts it into a queue now, would run it twice."""
    queues = Queues()
    queue = queues.at("k")
    queue.begun.add(1)
    queues.release(queue)
    assert queues.at("k") is not queue
    assert queues.at("k").knows(1)
    for number in range(2, MOST_BEGUN + 3):
        queue.begun.add(number)
    assert [number for number in range(5) if queue.knows(number)] == [3, 4], "not for ever"


async def test_tasks_and_what_they_ask_are_of_the_conversation_that_began_them() -> None:
    queues = Queues()

    def runs(key: str, parent: str = "", *, asks: bool = False) -> Any:
        terms = SimpleNamespace(parent=parent) if parent else None
        driver = SimpleNamespace(identity=SimpleNamespace(turn=f"t{key}"), asks=asks)
        running: Any = SimpleNamespace(task=terms, driver=driver)
        queue = queues.at(key)
        queue.running, queue.task = running, cast("Any", "its task")
        return running

    own, asking = runs("a"), runs("task 1", "a", asks=True)
    other = runs("task 2", "b", asks=True)
    assert queues.tasks_of("a") == [asking]
    assert queues.tasks_of("b") == [other]
    assert queues.tasks_of("c") == []
    assert queues.turn_in("a", "") is asking
    assert queues.turn_in("a", "ta") is own
    assert queues.turn_in("a", "ttask 2") is None, "it is asked about in its own conversation"
