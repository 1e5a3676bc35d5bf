"""Small rules of queues and chats, each of which somebody would notice: whose turn it is, how long something took, where a chat has gone, who is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import (
    CallFailed,
    Cause,
    ChatAddress,
    ChatKind,
    ChatOrigin,
    ChatPerson,
    Doing,
    Fate,
)
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import AdapterDown
from agent_core.store.store import StorageUnavailable
from agent_core.turn.view import Bubble, BubbleKind, View
from gateway.chats import supervisor
from gateway.chats.supervisor import Supervisor
from gateway.delivery.cosmetics import doing_of
from gateway.delivery.outbox import Outbox
from gateway.delivery.surfaces import Surfaces
from gateway.limits.admission import Bounds
from gateway.queues.held import HELD_IN_ALL, HELD_MOST, HeldHere, HeldMessage, edited
from gateway.queues.pasts import EACH_BYTES, Pasts
from gateway.queues.queue import summary_of
from tests.agent_core.turns import Rig, gives
from tests.gateway.test_accepting import in_chat
from tests.gateway.test_recents import gives as answers
from tests.gateway.test_runner import running
from tests.gateway.test_sender import part_in_german
from tests.gateway.test_slots import Begun, message
from tests.store.support import FakeClock

# ---------------------------------------------------------------------- queues


def test_whoever_lets_go_of_a_place_lets_the_next_begin() -> None:
    begun = Begun(Bounds(open=1, opening=1, share=1, crowd=1, waiting=9), 3)
    for queue in begun.queues:
        begun.slots.ask(queue)
    for number in range(3):
        assert begun.now == begun.queues[: number + 1]
        begun.slots.leave(begun.queues[number])


def test_who_has_begun_lets_others_begin_to_open_theirs() -> None:
    begun = Begun(Bounds(open=9, opening=1, share=9, crowd=9, waiting=9), 3)
    for queue in begun.queues:
        begun.slots.ask(queue)
    for number in range(3):
        assert begun.now == begun.queues[: number + 1]
        begun.slots.begun(begun.queues[number])


async def test_what_waits_behind_something_left_begins_only_when_that_was_taken_up() -> None:
    async with running() as world:
        queue = world.queue("a")
        queue.blocked = True
        queue.waiting = [message("a", 1)]
        await world.runner._run(queue)
        assert world.ran == []
        world.runner.unblock(queue)
        await world.until(lambda: world.ran)


def test_a_past_is_told_to_the_session_and_the_ownership_under_which_it_was_kept() -> None:
    memory: Any = SimpleNamespace(size=0)
    for session, epoch in (("s", 3), ("s", 4), ("another", 3)):
        pasts = Pasts(EACH_BYTES * 9)
        pasts.keep("k", "s", 3, memory)
        assert (pasts.take("k", session, epoch) is memory) == ((session, epoch) == ("s", 3))
        assert pasts.take("k", "s", 3) is None, "whoever has asked once knows more than what was kept"


def test_only_so_many_wait_for_room_in_a_conversation_and_in_all() -> None:
    from contextlib import ExitStack

    with ExitStack() as stack:
        here = HeldHere()
        for number in range(HELD_MOST):
            assert here.takes("a")
            stack.enter_context(here.lining_up("a", number))
        assert not here.takes("a")
        for number in range(HELD_IN_ALL - HELD_MOST):
            assert here.takes(f"b{number}")
            stack.enter_context(here.lining_up(f"b{number}", 1))
        assert not here.takes("c"), "of all conversations together there are too many"
    assert here.takes("a")


@given(st.permutations([3, 5, 8, 13]))
def test_who_waits_for_room_is_next_by_when_they_came_and_not_by_when_they_lined_up(order: list[int]) -> None:
    """After a start they line up as they are taken up."""
    from contextlib import ExitStack

    here = HeldHere()
    with ExitStack() as stack:
        for number in order:
            stack.enter_context(here.lining_up("a", number))
        assert [number for number in order if here.next("a", number)] == [3]


@pytest.mark.parametrize("due", [0, 77_000])
def test_a_message_that_is_held_is_edited_and_waits_as_long_as_before(due: int) -> None:
    command = HeldMessage(due, "before").command()
    stored = in_chat("2", 1)
    stored = replace(stored, input=(replace(stored.input[0], content=f"/{command.name} {command.words}"),))
    made = edited(replace(stored, input=(replace(stored.input[0], content="after"),)), stored)
    assert made is not None
    held = HeldMessage.of(made)
    assert held is not None
    assert (held.due, held.text) == (due, "after")


def test_a_turn_is_told_in_seconds() -> None:
    class Later:
        """A turn whose phase has lasted since then."""

        def __getattr__(self, name: str) -> Any:
            return 3_500 if name == "phase_since" else getattr(rig.turn, name)

    rig = Rig()
    assert rig.turn.opened is not None
    assert rig.turn.opened.at == 1_000
    assert summary_of(cast("Any", Later())).seconds == 2.5


# ---------------------------------------------------------------------- chats


@pytest.mark.parametrize("kind", [BubbleKind.APPROVAL, BubbleKind.ANSWER])
def test_while_a_person_is_asked_the_agent_waits_and_works_on_nothing(kind: BubbleKind) -> None:
    view = View((Bubble("b", kind, "words", final=False),), open=True)
    outlet: Any = SimpleNamespace(
        driver=SimpleNamespace(seen=SimpleNamespace(current_view=gives(view))), task=None, reply_to="5", person="7"
    )
    wanted = Doing.WAITING if kind is BubbleKind.APPROVAL else Doing.WORKING
    assert doing_of(ChatAddress("slack", "1", "D1"), [outlet]) == {"5": (wanted, "7")}
    outlet.task = (1, "a task")
    assert doing_of(ChatAddress("slack", "1", "D1"), [outlet]) == {}


async def test_a_chat_that_has_moved_there_and_back_is_where_it_is_now() -> None:
    shared: Any = SimpleNamespace(accounts=SimpleNamespace())
    surfaces = Surfaces(shared)
    for old, new in (("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("a", "a")):
        surfaces.move("telegram", "1", old, new)
    moved: dict[tuple[str, str, str], str] = cast("Any", surfaces)._moved
    assert ("telegram", "1", "a") not in moved
    for one in ("b", "c"):
        assert moved["telegram", "1", one] == "a"


def test_what_is_left_of_a_chat_goes_where_it_is_now_however_often_it_has_moved() -> None:
    surfaces = Surfaces(cast("Any", SimpleNamespace(accounts=SimpleNamespace())))
    here: Any = SimpleNamespace(address=ChatAddress("telegram", "1", "d"))
    surfaces._surfaces[here.address.text()] = here
    for old, new in (("a", "b"), ("b", "c"), ("c", "d")):
        surfaces.move("telegram", "1", old, new)
    for chat in "abcd":
        assert surfaces.at(ChatAddress("telegram", "1", chat)) is here


@pytest.mark.parametrize(
    ("kind", "asked_in", "told"),
    [(ChatKind.GROUP, "2", True), (ChatKind.GROUP, "9", False), (ChatKind.PRIVATE, "2", False), (None, "", False)],
)
async def test_only_who_asked_in_the_group_that_takes_nothing_is_told_in_private(
    kind: ChatKind | None, asked_in: str, told: bool
) -> None:
    said: list[str] = []

    async def say(where: ChatAddress, *_: object) -> None:
        said.append(where.chat)

    here = ChatAddress("telegram", "1", "2")
    asker = ChatOrigin(replace(here, chat=asked_in), kind, ChatPerson("77", "Ada"), "5") if kind is not None else None
    outbox: Any = SimpleNamespace(
        _asker_of=answers(asker), port_of=gives(SimpleNamespace(private=answers("88"))), words=SimpleNamespace(say=say),
        _store=SimpleNamespace(
            deliveries=SimpleNamespace(of=answers([SimpleNamespace(session="s")])), sessions=SimpleNamespace(claim=answers(1))
        ),
    )  # fmt: skip
    refused = CallFailed(Fate.REFUSED, "it is so", cause=Cause.NO_RIGHTS)
    await Outbox._tell_privately(outbox, here, part_in_german(), refused)
    assert said == (["88"] if told else [])


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailable("away"),
        NotAccepted("away", NotAcceptedCode.STORAGE_AWAY),
        AdapterDown("gone"),
        OSError("gone"),
    ],
)
async def test_a_storage_that_is_away_says_nothing_of_whether_the_platform_is_reached(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    class Over(Exception):
        """Enough was seen."""

    async def run(_: object) -> None:
        raise error

    async def sleep(_: float) -> None:
        raise Over

    adapter: Any = SimpleNamespace(name="toy/1", run=run, sight=gives(None), silent_seconds=0.0, deaf_after_seconds=9.0)
    one = Supervisor(adapter, FakeClock(), lambda: None, lambda: 0.0, lambda _: None)
    names = SimpleNamespace(sleep=sleep, ensure_future=asyncio.ensure_future, wait=asyncio.wait)
    monkeypatch.setattr(supervisor, "asyncio", names)
    with pytest.raises(Over):
        await one._run()
    assert bool(one.failing_seconds) is not isinstance(error, StorageUnavailable | NotAccepted)


async def test_whoever_changes_a_part_by_hand_is_told_why_it_stays_as_it_is() -> None:
    from agent_core.bell import Bell
    from gateway.delivery.surface import Amendments

    bell = Bell()
    amendments, name = Amendments(bell), ("t1", "b", 0)

    async def nothing() -> None: ...

    async def change(_: object) -> Any:
        raise StorageUnavailable("away")

    for parts, error in (({name: part_in_german()}, StorageUnavailable), ({}, LookupError)):
        asked = asyncio.create_task(amendments.ask(name, nothing, change))
        await asyncio.sleep(0)
        await amendments.carry_out(cast("Any", parts), ())
        with pytest.raises(error):
            await asked
    bell.close()
