"""What people want of what runs or waits: stopped, taken back, decided; and what they agreed to for longer. With a real runner and a real book."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromChat, SessionKey, Ticket
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.failures.exits import Stopped
from agent_core.failures.notices import NotStarted
from agent_core.rules.consents import Kind, Lasting
from agent_core.store.store import Conflict
from agent_core.turn.events import ApprovalAnswered, Verdict
from agent_core.turn.state import ActivityState, ConsentGiven
from agent_core.turn.view import LEFT_WORDS
from gateway.delivery.chatside import Dropping
from gateway.queues.queue import Running
from gateway.sessions import stopping as stops
from gateway.sessions.consents import ADMINS, ASKER, ConsentBook, may_decide
from gateway.sessions.stopping import TurnStopping, stop_turn
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.gateway.test_runner import Driver, World, running
from tests.gateway.test_slots import message
from tests.store.support import FakeClock


class Noted:
    """A store and the chats, which note what they are told."""

    def __init__(self) -> None:
        self.inbox = self
        self.dropped: list[int] = []
        self.begun_: list[int] = []
        self.not_run_: list[tuple[int, NotStarted]] = []
        self.taken = False

    async def drop(self, number: int, why: str, *_: object) -> None:
        del why
        if self.taken:
            raise Conflict("It is taken.")
        self.dropped.append(number)

    def begun(self, inbound: object, number: int) -> None:
        del inbound
        self.begun_.append(number)

    async def not_run(self, inbound: object, number: int, owner: object, why: NotStarted, drop: Dropping) -> None:
        del inbound, owner
        await drop(())
        self.not_run_.append((number, why))


def stopping(world: World, noted: Noted, consents: Any = None) -> TurnStopping:
    any_: Any = noted
    return TurnStopping(any_, world.queues, world.runner, any_, FakeClock(), consents, Portion())


@pytest.mark.parametrize("taken", [False, True])
async def test_what_a_person_takes_back_is_not_run_and_nothing_says_that_it_waits(*, taken: bool) -> None:
    noted = Noted()
    noted.taken = taken
    async with running() as world:
        queue = world.queue("a", blocked=True)
        for number in (1, 2):
            world.runner.add(queue, message("a", number))
        assert await stopping(world, noted).withdraw(Ticket(1, "a", duplicate=False))
        assert [one.inbox_id for one in queue.waiting] == [2]
        assert not await stopping(world, noted).withdraw(Ticket(1, "a", duplicate=False))
        queue.blocked = False
    assert noted.dropped == ([] if taken else [1])
    assert noted.begun_ == [1]


@pytest.mark.parametrize("opening", [False, True])
async def test_whoever_is_forgotten_is_not_answered_also_where_their_turn_is_just_being_opened(
    *, opening: bool
) -> None:
    noted = Noted()
    noted.taken = opening
    async with running() as world:
        queue = world.queue("a", blocked=True)
        world.runner.add(queue, message("a", 1))
        await stopping(world, noted).forget(queue, queue.waiting[0])
        assert queue.waiting == []
        assert queue.forgotten == {1}
        assert noted.not_run_ == ([] if opening else [(1, NotStarted.FORGOTTEN)])


@pytest.mark.parametrize("all_of_it", [False, True])
async def test_a_stop_of_a_turn_that_was_taken_up_waits_for_no_place(*, all_of_it: bool) -> None:
    key = SessionKey("api", "", "b")
    async with running(holds=True) as world:
        first, second = world.queue("a"), world.queue(key.text())
        world.runner.add(first, message("a", 1))
        await world.until(lambda: first.running)
        waits = Driver(world, [message("b", 2)])
        seen = SimpleNamespace(subscribe=gives(None), unsubscribe=gives(None), current_view=gives(None), over=True)
        waits.seen, waits.over = seen, True  # type: ignore[attr-defined]
        cast("Any", waits.turn).exit = None
        second.running = Running(cast("Any", waits), (message("b", 2),))
        world.runner.start(second)
        assert world.runner.slots.position(second) == 1
        made = stopping(world, Noted())
        await (made.stop(key) if all_of_it else made.stop_message(Ticket(2, key.text(), duplicate=False)))
        await world.until(lambda: [2] in world.ran)
        waits.may_end.set()


@pytest.mark.parametrize(("overtaken", "ending"), [(False, None), (True, None), (True, Stopped())])
async def test_a_stop_that_comes_as_the_gateway_ends_is_not_told_as_an_answer(
    *, overtaken: bool, ending: Stopped | None
) -> None:
    seen = SimpleNamespace(subscribe=gives(None), unsubscribe=gives(None), current_view=gives(None), over=True)
    turn = SimpleNamespace(exit=ending)
    driver: Any = SimpleNamespace(seen=seen, turn=turn, tell=gives(False), over=True, overtaken=overtaken, closed=False)
    outcome = await stop_turn(driver, 5)
    assert (outcome.stopped, outcome.words) == (False, LEFT_WORDS)


@pytest.mark.parametrize("all_of_it", [False, True])
@pytest.mark.parametrize("comes", [False, True])
async def test_a_stop_means_what_an_earlier_process_left_as_soon_as_it_is_taken_up(
    monkeypatch: pytest.MonkeyPatch, *, comes: bool, all_of_it: bool
) -> None:
    """Until then nothing runs here, and nobody knows yet what does: a person who writes while a gateway is gone writes to the next one."""
    monkeypatch.setattr(stops, "TAKEN_UP_SECONDS", 5.0 if comes else 0.05)
    key = SessionKey("api", "", "b")
    async with running() as world:
        queue = world.queue(key.text(), blocked=True)
        made = stopping(world, Noted())
        wanted = made.stop(key) if all_of_it else made.stop_message(Ticket(2, key.text(), duplicate=False))
        stopped = asyncio.create_task(wanted)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not stopped.done()
        left = Driver(world, [message("b", 2)])
        if comes:
            seen = SimpleNamespace(subscribe=gives(None), unsubscribe=gives(None), current_view=gives(None))
            left.seen, left.over = seen, True  # type: ignore[attr-defined]
            cast("Any", left.turn).exit = None
            queue.running = Running(cast("Any", left), (message("b", 2),))
            world.runner.unblock(queue)
        outcome = await stopped
        assert ("Nothing is running" in outcome.words) is not comes
        assert queue.watchers == []
        left.may_end.set()


@pytest.mark.parametrize("wanted", ["approve", "answer"])
async def test_a_decision_of_what_an_earlier_process_left_waits_until_that_is_taken_up(wanted: str) -> None:
    key = SessionKey("api", "", "b")
    async with running() as world:
        queue = world.queue(key.text(), blocked=True)
        made = stopping(world, Noted())
        told = (
            made.approve(key, "t", "c", Verdict.GIVEN, "ada")
            if wanted == "approve"
            else made.answer(key, "t", "c", "", "ada")
        )
        deciding = asyncio.ensure_future(told)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not deciding.done()
        world.runner.unblock(queue)
        assert not await deciding, "nothing was left"


@pytest.mark.parametrize("state", list(ActivityState))
@pytest.mark.parametrize("wanted", list(Lasting))
@pytest.mark.parametrize("verdict", [Verdict.GIVEN, Verdict.DENIED])
async def test_a_decision_counts_for_a_call_that_waits_for_one_and_lasts_as_long_as_was_offered(
    state: ActivityState, wanted: Lasting, verdict: Verdict
) -> None:
    offers = (Lasting.ONCE, Lasting.CONVERSATION)
    told: list[object] = []

    def tell(one: object) -> bool:
        told.append(one)
        return True

    activity = SimpleNamespace(state=state, offers=offers, name="send", arguments="{}")
    turn = SimpleNamespace(round=SimpleNamespace(activity=gives(activity)))
    running_: Any = SimpleNamespace(driver=SimpleNamespace(turn=turn, tell=tell), messages=())
    async with running() as world:
        queues = SimpleNamespace(turn_in=gives(running_), known=gives(None))
        made = replace(stopping(world, Noted()), queues=cast("Any", queues))
        counts = await made.approve(SessionKey("api", "", "a"), "t", "c", verdict, "ada", wanted)
    assert counts == (state is ActivityState.APPROVAL)
    lasts = wanted if verdict is Verdict.GIVEN and wanted in offers else Lasting.ONCE
    at = FakeClock().now
    assert told == ([ApprovalAnswered(at=at, call="c", verdict=verdict, by="ada", lasts=lasts)] if counts else [])


async def test_who_agrees_for_good_while_somebody_else_says_no_is_not_told_that_the_call_runs() -> None:
    activity = SimpleNamespace(state=ActivityState.APPROVAL, offers=tuple(Lasting), name="send", arguments="{}")
    turn = SimpleNamespace(round=SimpleNamespace(activity=gives(activity)))
    first = SimpleNamespace(inbound=said_by("ada", ChatKind.PRIVATE))
    running_: Any = SimpleNamespace(driver=SimpleNamespace(turn=turn, tell=gives(True)), messages=(first,))

    class Book:
        async def keep(self, *_: object) -> None:
            activity.state = ActivityState.NOT_RUN

    async with running() as world:
        made = replace(
            stopping(world, Noted(), Book()),
            queues=cast("Any", SimpleNamespace(turn_in=gives(running_), known=gives(None))),
        )
        key = SessionKey("api", "", "a")
        assert not await made.approve(key, "t", "c", Verdict.GIVEN, "ada", Lasting.ALWAYS)


# ---------------------------------------------------------------------- what was agreed to for longer


class Memory:
    """What is kept of kinds, by its owner."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, tuple[str, int]]] = {}

    async def entries(self, owner: str, kind: str) -> list[tuple[str, str, int]]:
        return [(name, value, at) for name, (value, at) in self.kept.get((owner, kind), {}).items()]

    async def put(self, owner: str, kind: str, name: str, value: str, *, at_ms: int, source: object = None) -> None:
        del source
        self.kept.setdefault((owner, kind), {})[name] = value, at_ms

    async def delete(self, owner: str, kind: str, name: str) -> None:
        self.kept.get((owner, kind), {}).pop(name, None)

    async def of_kind(self, kind: str, most: int) -> Sequence[object]:
        return [entries for (_, one), entries in self.kept.items() if one == kind and entries][:most]


def said_by(person: str, kind: ChatKind) -> FromChat:
    origin = ChatOrigin(ChatAddress("telegram", "1", "5"), kind, ChatPerson(person, person))
    return FromChat(
        account="telegram/1", platform_key="k", session=SessionKey("telegram", "1", "5"), input=(), surface="telegram",
        memory_scope="telegram/1/5", chat=origin,
    )  # fmt: skip


def past(*kinds: Kind, at: int) -> Any:
    return SimpleNamespace(consents={kind: ConsentGiven(Lasting.CONVERSATION, "ada", at) for kind in kinds})


async def test_what_was_agreed_to_covers_whose_turn_it_was_from_then_on_until_it_is_taken_back() -> None:
    clock = FakeClock()
    book = ConsentBook(cast("Any", Memory()), clock, Portion())
    ada, bob = (said_by(person, ChatKind.GROUP) for person in ("ada", "bob"))
    assert await book.standing(ada, past(at=0)) == []  # nobody has any: that is not looked up for a while
    mine = Kind("send", asker="telegram/1/ada")
    await book.keep(ada, mine, "ada", "t")
    assert [one.kind for one in await book.standing(ada, past(at=0))] == [mine], "from the next turn on"
    assert await book.standing(bob, past(at=0)) == [], "it is somebody else's"
    ours = Kind("post")
    before = past(ours, at=clock.now)
    found = {one.kind: one for one in await book.standing(ada, before)}
    assert set(found) == {mine, ours}
    assert [one.kind for one in await book.standing(bob, before)] == [ours]
    for one in found.values():
        await book.end(ada, one)
    assert await book.standing(ada, before) == []
    again = past(ours, at=clock.now + 1)
    assert [one.kind for one in await book.standing(ada, again)] == [ours], "what is agreed to after it counts again"


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("presser", ["telegram/1/ada", "telegram/1/bob"])
@pytest.mark.parametrize("asked", [("telegram/1/ada",), ()])
def test_whoever_asked_may_decide_and_in_a_private_chat_that_is_who_writes(
    asked: tuple[str, ...], presser: str, *, private: bool
) -> None:
    own = private or not asked or presser in asked
    assert may_decide((ASKER,), asked, (presser,), private=private, admin=False) == own
    assert may_decide((ASKER, ADMINS), asked, (presser,), private=private, admin=True)
    assert not may_decide((ADMINS,), asked, (presser,), private=private, admin=False)


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("askers", [True, False])
async def test_whoever_asked_decides_only_where_that_is_allowed_and_else_nothing_is_decided(
    monkeypatch: pytest.MonkeyPatch, *, askers: bool, counts: bool
) -> None:
    asked: list[str] = []

    async def approve(_: object, *of: Any) -> bool:
        asked.append(of[2])
        return counts

    monkeypatch.setattr(TurnStopping, "approve", approve)
    async with running() as world:
        made = replace(stopping(world, Noted()), approvers=(ASKER,) if askers else (ADMINS,))
        assert made.askers_decide is askers
        words = await made.approve_for_asker(SessionKey("api", "", "a"), "t", "c", Verdict.GIVEN, "ada", Lasting.ONCE)
    assert asked == (["c"] if askers else [])
    assert (words == "") is (askers and counts)
