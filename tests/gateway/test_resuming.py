"""What an earlier process has left goes on here in its order: before a real runner, with a store that has what is said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.failures.notices import NotStarted
from agent_core.journal.rows import row_of
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.store import Conflict
from agent_core.store.turns.rows import OpenTurn
from agent_core.turn.events import Steered, TakenOver, TextArrived, TurnOpened
from gateway.delivery.chatside import Dropping
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.queues.queue import SessionQueue
from gateway.recovery.resuming import Resuming
from gateway.setaside.takeup import SET_ASIDE
from tests.agent_core.turns import gives, opened
from tests.gateway.test_runner import Driver, World, running
from tests.gateway.test_slots import message

CLOCK = SystemClock()


def row(number: int, lane: str = NORMAL_LANE, **more: Any) -> InboxRow:
    body = inbox.encode(message("a", number).inbound)
    made = InboxRow(number, "api", f"k{number}", "a", number, lane, body, InboxState.NEW, None, number)
    return replace(made, **more)


class Left:
    """What is stored, what is told in chats, and what is set aside."""

    def __init__(self, rows: Sequence[InboxRow] = ()) -> None:
        self.rows = rows
        self.told: list[tuple[int, NotStarted]] = []
        self.loaded: list[list[int]] = []
        self.dropped: list[tuple[int, str]] = []
        self.lost: list[int] = []
        self.resumed: list[tuple[Any, ...]] = []
        self.journal: dict[str, list[tuple[str, bytes]]] = {}
        self.too_late = False

    async def pending(self, session: str) -> Sequence[InboxRow]:
        return [one for one in self.rows if one.session == session]

    async def inputs(self, *turns: str) -> Sequence[InboxRow]:
        return [one for one in self.rows if one.turn in turns]

    async def journals(self, turns: Sequence[str]) -> dict[str, list[tuple[str, bytes]]]:
        return {turn: self.journal[turn] for turn in turns}

    async def drop(self, number: int, why: str, *_: object) -> None:
        if self.too_late:
            raise Conflict("It is taken.")
        self.dropped.append((number, why))

    async def lose(self, number: int, _fresh: object) -> None:
        self.lost.append(number)

    async def load(self, _turns: object, begun: Sequence[int]) -> None:
        self.loaded.append([*begun])

    async def load_words(self, _owner: object, waiting: Sequence[int]) -> None:
        self.loaded.append([*waiting])

    async def not_run(self, _inbound: object, number: int, _owner: object, why: NotStarted, drop: Dropping) -> None:
        await drop(())
        self.told.append((number, why))

    def resume(self, *what: Any) -> None:
        self.resumed.append(what)


def resuming(world: World, left: Left) -> Resuming:
    async def owned(key: str, session: str, epoch: int) -> SessionQueue:
        queue = world.queues.at(key)
        world.queues.own(queue, session, epoch)
        return queue

    async def nothing(*_: object) -> None: ...

    def driver(turn: str, _s: str, epoch: int, messages: Any, *_: object) -> Any:
        made = Driver(world, messages)
        made.identity = SimpleNamespace(turn=turn, epoch=epoch)
        made.resume, made.outlet = left.resume, None  # type: ignore[attr-defined]
        world.drivers.append(made)
        return made

    instructions = SimpleNamespace(told=nothing)
    opener = SimpleNamespace(load_memory=nothing, instructions=instructions, driver=driver)
    hub: Any = SimpleNamespace(
        queues=world.queues, runner=world.runner, accepting=SimpleNamespace(owned=owned), opener=opener, chats=left, aside=left,
        closer=None,
    )  # fmt: skip
    store: Any = SimpleNamespace(inbox=left, turns=left)
    return Resuming(hub, store, CLOCK, SystemIds(CLOCK))


async def test_what_waited_comes_before_what_has_come_since_and_only_what_waits_for_a_turn() -> None:
    left = Left([row(3), row(1), row(2, COMMAND_LANE), row(5, body=b"{"), row(7)])
    async with running() as world:
        queue = world.queue("k", blocked=True)
        world.queues.own(queue, "a", 1)
        for number in (6, 7):
            world.runner.add(queue, replace(message("a", number), came=1.0))
        await resuming(world, left).messages("a", "k", 1)
        await world.until(lambda: len(world.ran) == 4)
        assert not queue.waiting, "what was known already waits once"
    assert world.ran == [[1], [3], [6], [7]]
    assert left.lost == [5]
    assert left.loaded == [[3, 1, 2, 5, 7]], "what says that they wait is taken back when they do not"


async def test_what_was_said_into_a_turn_that_goes_on_belongs_to_it() -> None:
    left = Left([row(4), row(5)])
    async with running(holds=True) as world:
        queue = world.queue("k")
        world.queues.own(queue, "a", 1)
        world.runner.add(queue, message("a", 3))
        await world.until(lambda: queue.running)
        steered = Steered(at=1, input=InputMessage("more"), inbox=4)
        turn = cast("Any", world.drivers[0].turn)
        turn.items, turn.steers = world.drivers[0].items, [steered_item(steered)]
        await resuming(world, left).messages("a", "k", 1)
        assert [one.inbox_id for one in queue.steers] == [4]
        assert [one.inbox_id for one in queue.waiting] == [5]


def steered_item(event: Steered) -> Any:
    from agent_core.turn.state import PersonItem

    return PersonItem(event.input, event.inbox)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("too_late", [False, True])
async def test_a_message_that_is_set_aside_waits_no_more_and_its_chat_is_told_unless_it_was_taken(
    *, too_late: bool, killed: bool
) -> None:
    left = Left()
    left.too_late = too_late
    async with running() as world:
        queue = world.queue("k", blocked=True)
        world.queues.own(queue, "a", 1)
        for number in (1, 2):
            world.runner.add(queue, message("a", number))
        await resuming(world, left).set_aside_message(row(1), "k", 1, killed=killed)
        assert [one.inbox_id for one in queue.waiting] == [2]
        assert queue.blocked, "what waited behind it is not known yet"
        queue.blocked = False
    why, said = (SET_ASIDE, NotStarted.QUARANTINED) if killed else (inbox.NOT_OPENED, NotStarted.NOT_OPENED)
    assert left.dropped == ([] if too_late else [(1, why)])
    assert left.told == ([] if too_late else [(1, said)])


def journal(told_at: int) -> list[tuple[str, bytes]]:
    events = [opened(), TextArrived(at=told_at, text="Once"), TakenOver(at=5, epoch=2)]
    return [(made.kind, made.body) for made in (row_of(event, seq) for seq, event in enumerate(events))]


async def test_a_turn_goes_on_with_its_messages_and_with_the_time_that_it_had_told() -> None:
    left = Left([row(1, turn="t1", state=InboxState.TAKEN)])
    left.journal["t1"] = journal(told_at=77_000)
    async with running() as world:
        made = resuming(world, left)
        await made.turns([OpenTurn("t1", "a", 2)], {"a": "k"})
        queue = world.queues.at("k")
        await world.until(lambda: world.ran)
        ((turn, seq, taken_over, told_at),) = left.resumed
        assert isinstance(turn.opened, TurnOpened)
        assert (seq, taken_over, told_at) == (3, TakenOver(at=5, epoch=2), 77_000)
        assert world.ran == [[1]]
        assert left.loaded == [[1]]
        assert queue.blocked, "what waited comes after it, once that is known"
        queue.blocked = False


async def test_a_turn_that_goes_on_by_an_earlier_try_is_not_waited_for_when_its_neighbours_are_tried_again() -> None:
    left = Left([row(1, turn="t1", state=InboxState.TAKEN), row(2, turn="t2", state=InboxState.TAKEN, session="b")])
    left.journal = {"t1": journal(told_at=3), "t2": []}  # nobody can go on with the second
    turns, keys = [OpenTurn("t1", "a", 2), OpenTurn("t2", "b", 2)], {"a": "k", "b": "l"}
    async with running(holds=True) as world:
        made = resuming(world, left)
        with pytest.raises(IndexError):
            await made.turns(turns, keys)
        queue = world.queues.at("k")
        await world.until(lambda: world.ran)
        async with asyncio.timeout(5):
            await made.turns(turns[:1], keys)
        assert len(left.resumed) == 1
        assert queue.blocked, "what waited comes after it, once that is known"
        queue.blocked = False
        world.drivers[0].may_end.set()


async def test_what_a_turn_that_is_set_aside_has_shown_is_known_when_it_ends_and_nothing_says_that_it_waits() -> None:
    left, ended = Left([row(1, turn="t1", state=InboxState.TAKEN), row(2)]), list[list[list[int]]]()

    async def close(*_: object) -> None:
        ended.append([*left.loaded])

    async with running() as world:
        made = resuming(world, left)
        cast("Any", made)._closer = SimpleNamespace(close=close)
        cast("Any", left).outlet = gives(None)
        await made.set_aside_turn(OpenTurn("t1", "a", 2), 3, SET_ASIDE)
    assert ended == [[[1]]], "of its own messages, before it ends"
