"""The rounds of the keeper, on a store that says what is left: what is taken up once, what is left alone, what is tried again, and what is charged.

What it decides is in `gateway.setaside.takeup`, and has laws of its own; with real processes that die it is tried in `test_keeper`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.ports import SystemIds
from agent_core.store.deliveries.rows import Delivery
from agent_core.store.sessions.takeups import (
    FIRST_PART,
    MOST,
    Charges,
    LeftMessage,
    LeftPart,
    LeftThere,
    LeftTurn,
    TakeUp,
)
from agent_core.store.slices.rows import ONCE, slice_of
from agent_core.store.store import Damaged
from agent_core.store.turns.rows import OpenTurn
from gateway.queues import inbox
from gateway.queues.queues import Queues
from gateway.recovery.keeper import IDLE_SECONDS, Keeper
from gateway.setaside.takeup import (
    BEHIND_SECONDS,
    LIMIT,
    MISTAKES,
    NOT_TAKEN,
    OURS_SECONDS,
    WINDOW,
    KnownItem,
    LeftItem,
    LeftKind,
)
from gateway.setaside.unclaimed import Unclaimed
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

ME, DEAD, LIVING = 2, 1, 3
LONG_MS = 10_000_000


def turn(number: int, owner: int | None = DEAD, suspicion: int = 0) -> LeftTurn:
    return LeftTurn(f"t{number}", f"s{number}", f"telegram/1/{number}//", owner, number, suspicion)


def said(number: int, lane: str = inbox.NORMAL_LANE, owner: int | None = DEAD) -> LeftMessage:
    return LeftMessage(number, f"s{number}", f"telegram/1/{number}//", owner, lane, number, 0)


def part(number: int) -> LeftPart:
    return LeftPart("telegram/1/1/", f"o{number}", "text0", number, f"s{number}", "telegram/1/1//", DEAD, number, 0)


@dataclass
class Stored:
    """What is left, and what becomes of it."""

    portion: Portion
    turns: list[LeftTurn] = field(default_factory=list[LeftTurn])
    messages: list[LeftMessage] = field(default_factory=list[LeftMessage])
    parts: list[LeftPart] = field(default_factory=list[LeftPart])
    kept: set[str] = field(default_factory=set[str])
    """Sessions whose owners live after all."""
    lost_sessions: frozenset[str] = frozenset()
    looks: int = 0
    meanwhile: Callable[[], None] = lambda: None
    """Happens while it is looked."""
    taken: list[set[str]] = field(default_factory=list[set[str]])
    charged: list[Charges] = field(default_factory=list[Charges])
    node: int = ME
    in_order: frozenset[int] = frozenset()
    """Nodes that have ended in order."""
    holding: frozenset[int] = frozenset()
    """Nodes for whose calls something is held in budgets."""
    wrong: set[str] = field(default_factory=set[str])
    """That these are taken up cannot be stored, by a mistake of ours."""
    damaged: set[str] = field(default_factory=set[str])
    """Nor of these, whose rows are damaged."""
    puts_aside: bool = False
    """What is taken up is put aside, which the keeper does one by one."""

    @property
    def left(self) -> Stored:
        return self

    async def everything(self, slices: Collection[str] | None, parts: tuple[str, int] | None) -> LeftThere:
        del slices
        self.looks += 1
        self.meanwhile()
        return LeftThere(self.turns, self.messages, self.parts if parts is not None else [])

    async def dead_among(self, nodes: Collection[int]) -> frozenset[int]:
        return frozenset(nodes) - {LIVING}

    async def holders(self) -> frozenset[int]:
        return self.holding

    async def ended(self, nodes: Collection[int]) -> frozenset[int]:
        return self.in_order & frozenset(nodes)

    async def take_up(self, make_row: object, sessions: Collection[str], charges: Mapping[str, Charges]) -> TakeUp:
        del make_row
        assert self.portion.changing_hands.locked() or self.puts_aside, "slices may change hands meanwhile"
        if any(session in self.wrong for session in sessions):
            raise OverflowError
        if any(session in self.damaged for session in sessions):
            raise Damaged("It cannot be read.")
        self.taken.append(set(sessions))
        self.charged += charges.values()
        mine = {session: 7 for session in sessions if session not in self.kept}
        return TakeUp(mine, [OpenTurn(one.turn, one.session, 7) for one in self.turns if one.session in mine])

    async def charge(self, charges: Charges) -> None:
        self.charged.append(charges)

    # what else is asked of a store

    @property
    def inbox(self) -> Stored:
        return self

    deliveries = inbox

    async def one(self, number: int) -> Any:
        return SimpleNamespace(id=number, session=f"s{number}", body=b"")

    async def of_all(self, origins: Sequence[str]) -> list[Delivery]:
        return [Delivery(one.session, cast("Any", one)) for one in self.parts if one.origin in origins]


class Resumed:
    """Notes what goes on here."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.turns_of: list[str] = []
        self.messages_of: list[str] = []
        self.aside: list[str | int] = []
        self.why: list[str] = []
        self.bad: set[str] = set()
        self.wrong: set[str] = set()
        """Where a mistake of ours is met."""

    def taken_over_row(self, *_: object) -> object:
        raise AssertionError("the store makes no rows here")

    async def turns(self, found: Sequence[OpenTurn], keys: Mapping[str, str]) -> None:
        if any(one.turn in self.bad for one in found):
            raise Damaged("It cannot be read.")
        if any(one.turn in self.wrong for one in found):
            raise LookupError
        for one in found:
            queue = self.queues.at(keys[one.session])
            self.queues.own(queue, one.session, one.epoch)
            driver = SimpleNamespace(
                identity=SimpleNamespace(turn=one.turn), turn=SimpleNamespace(round=SimpleNamespace(tools_done=[]))
            )
            queue.running = cast("Any", SimpleNamespace(driver=driver, messages=()))
            self.turns_of.append(one.turn)

    async def messages(self, session: str, key: str, epoch: int) -> None:
        del key, epoch
        if session in self.wrong:
            raise LookupError
        self.messages_of.append(session)

    async def set_aside_turn(self, found: OpenTurn, last: int, why: str) -> str:
        del last
        self.aside.append(found.turn)
        self.why.append(why)
        return "err_1"

    async def set_aside_message(self, row: Any, key: str, epoch: int, *, killed: bool) -> None:
        del key, epoch
        self.aside.append(row.id)
        self.why.append("killed" if killed else "a mistake")


class Parts:
    """Those of the outbox."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.taken: list[str] = []
        self.going_on: set[str] = set()

    def reaches(self, surface: str) -> bool:
        return bool(surface)

    def works_on(self, surface: str, name: tuple[str, str, int]) -> bool:
        del surface
        return name[0] in self.known

    def unsettled(self, surface: str, name: tuple[str, str, int]) -> bool:
        del surface
        return name[0] in self.known

    def take_up(self, found: Sequence[Any], epochs: Mapping[str, int], going_on: Collection[str] = ()) -> None:
        del epochs
        self.going_on |= set(going_on)
        self.taken += [one.row.origin for one in found]


class Commands:
    """None of them can be carried out."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.in_hand: set[int] = set()

    def carries_out(self, inbox_id: int) -> bool:
        return inbox_id in self.in_hand

    async def carry_out(self, inbox_id: int, owner: object) -> bool:
        del owner
        self.asked.append(inbox_id)
        return False


def _nothing(_: object) -> None:
    return None


class Rounds:
    """A keeper and what it meets. Make it inside the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, portion: Portion | None = None) -> None:
        monkeypatch.setattr(inbox, "decode", _nothing)
        self.clock, self.portion = FakeClock(), portion or Portion()
        self.stored, self.queues = Stored(self.portion), Queues()
        self.parts, self.commands = Parts(), Commands()
        self.unblocked: list[str] = []
        self.aside: list[str] = []
        runner = SimpleNamespace(closing=False, unblock=self._unblock, slots=SimpleNamespace(position=_nothing))
        self.told: list[str] = []
        self.damage = SimpleNamespace(everybodys=False)
        aside = SimpleNamespace(
            damage=self.damage, known={}, put=self._put, check=lambda: None, tell_waiting=self.told.append
        )
        store = cast("Any", self.stored)
        left = Unclaimed(store, cast("Any", aside), self.clock)
        named = dict.fromkeys(("accepting", "opener", "chats", "closer"))
        hub = SimpleNamespace(portion=self.portion, queues=self.queues, runner=runner, left=left, aside=aside, **named)
        self.runner, self.left, self.resumed = runner, left, Resumed(self.queues)
        parts, commands = cast("Any", self.parts), cast("Any", self.commands)
        self.keeper = Keeper(cast("Any", hub), store, self.clock, SystemIds(self.clock), parts, commands)
        self.keeper._resuming = cast("Any", self.resumed)

    def with_journals(self) -> None:
        """Each turn has one of a row."""

        async def journal(_: str) -> list[object]:
            return [object()]

        asked = {name: getattr(self.stored, name) for name in ("left", "dead_among", "node", "inbox", "deliveries")}
        self.keeper._store = cast("Any", SimpleNamespace(**asked, turns=SimpleNamespace(journal=journal)))

    def _unblock(self, queue: Any) -> None:
        queue.blocked = False
        self.unblocked.append(queue.session)

    async def _put(self, session: str, error: Exception) -> bool:
        del error
        self.aside.append(session)
        self.stored.turns = [one for one in self.stored.turns if one.session != session]
        return True

    async def round(self, after_ms: int = 0) -> float:
        self.clock.now += after_ms
        return await self.keeper._round()

    async def rounds(self, count: int, each_ms: int = 2_000) -> None:
        for _ in range(count):
            await self.round(each_ms)


@pytest.fixture
async def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    return Rounds(monkeypatch)


async def test_so_many_are_young_at_most_and_each_goes_on_once(rounds: Rounds) -> None:
    most = WINDOW[LeftKind.SESSION]
    rounds.stored.turns = [turn(number) for number in range(most + 5)]
    await rounds.round()
    await rounds.round(100)
    assert len(rounds.resumed.turns_of) == most, "what was just taken up is young"
    await rounds.rounds(4)
    assert sorted(rounds.resumed.turns_of) == sorted(one.turn for one in rounds.stored.turns)


@pytest.mark.parametrize(("holding", "settles"), [({DEAD}, 1), ({DEAD, LIVING, ME}, 1), ({LIVING, ME}, 0), ({ME}, 0)])
async def test_what_a_dead_process_held_of_budgets_is_settled_though_it_left_nothing_else(
    rounds: Rounds, holding: set[int], settles: int
) -> None:
    rounds.stored.holding = frozenset(holding)
    await rounds.rounds(3)
    assert rounds.stored.taken == [set()] * settles


async def test_of_what_somebody_works_on_nothing_is_taken_up(rounds: Rounds) -> None:
    rounds.stored.turns = [turn(1, LIVING)]
    rounds.stored.parts = [part(1), part(2)]
    rounds.parts.known = {"o1"}
    await rounds.rounds(3)
    assert rounds.resumed.turns_of == []
    assert set(rounds.parts.taken) == {"o2"}


async def test_a_command_that_nobody_can_carry_out_is_asked_for_once(rounds: Rounds) -> None:
    rounds.stored.messages = [said(1, inbox.COMMAND_LANE)]
    await rounds.rounds(20, 60_000)
    assert rounds.commands.asked == [1]


async def test_a_command_that_is_being_carried_out_is_not_carried_out_once_more(rounds: Rounds) -> None:
    rounds.stored.messages, rounds.commands.in_hand = [said(1, inbox.COMMAND_LANE), said(2, inbox.COMMAND_LANE)], {1}
    await rounds.rounds(3)
    assert rounds.commands.asked == [2]


async def test_what_a_turn_has_on_its_way_goes_on_changing_also_while_it_is_still_to_be_taken_up(
    rounds: Rounds,
) -> None:
    rounds.stored.turns = [turn(number) for number in range(WINDOW[LeftKind.SESSION] + 3)]
    rounds.stored.parts = [part(1)]
    await rounds.round()
    assert len(rounds.resumed.turns_of) < len(rounds.stored.turns)
    assert rounds.parts.going_on == {one.turn for one in rounds.stored.turns}


async def test_while_nothing_can_be_read_who_waits_is_told_and_nothing_is_taken_up(rounds: Rounds) -> None:
    rounds.stored.turns = [turn(1)]
    blocked = rounds.queues.at("telegram/1/1//")
    rounds.queues.own(blocked, "s1", 7)
    blocked.blocked = True
    rounds.damage.everybodys = True
    await rounds.rounds(2)
    assert (rounds.told, rounds.stored.looks, rounds.resumed.turns_of) == (["s1", "s1"], 0, [])
    rounds.damage.everybodys = False
    await rounds.round()
    assert rounds.resumed.turns_of == ["t1"]


async def test_what_its_owner_keeps_is_tried_again_and_does_not_go_on_here(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.stored.kept = [turn(1)], {"s1"}
    await rounds.round()
    await rounds.round(1)
    assert rounds.stored.taken == [{"s1"}], "not at once"
    await rounds.rounds(5, 60_000)
    assert len(rounds.stored.taken) > 1
    assert rounds.resumed.turns_of == []
    assert rounds.keeper.late()[LeftKind.SESSION] == 1, "it is said that it stays unclaimed"
    rounds.stored.kept = set()
    await rounds.rounds(5, 60_000)
    assert rounds.resumed.turns_of == ["t1"]


async def test_one_that_cannot_be_read_holds_up_no_other(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.resumed.bad = [turn(number) for number in range(7)], {"t3"}
    await rounds.round()
    assert sorted(rounds.resumed.turns_of) == ["t0", "t1", "t2", "t4", "t5", "t6"]
    assert rounds.aside == ["s3"]


async def test_who_only_waits_is_charged_when_something_is_begun_with_it(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.stored.messages = [turn(1)], [said(2), said(3, inbox.COMMAND_LANE)]
    await rounds.round()
    assert [(one.turns, one.messages) for one in rounds.stored.charged] == [({"t1": 1}, {}), ({}, {3: 1})]
    assert set(rounds.resumed.messages_of) == {"s1", "s2"}


@pytest.mark.parametrize("in_order", [True, False])
async def test_what_was_left_by_who_ended_in_order_comes_under_no_suspicion(rounds: Rounds, *, in_order: bool) -> None:
    rounds.stored.turns, rounds.stored.messages = [turn(1)], [said(3, inbox.COMMAND_LANE)]
    rounds.stored.parts, rounds.stored.in_order = [part(5)], frozenset({DEAD} if in_order else ())
    await rounds.round()
    kept = [
        how
        for one in rounds.stored.charged
        for how in (*one.turns.values(), *one.messages.values(), *one.parts.values())
    ]
    assert kept == [0 if in_order else 1] * 3


async def test_a_queue_of_which_nothing_is_left_goes_on(rounds: Rounds) -> None:
    blocked, held = rounds.queues.at("telegram/1/1//"), rounds.queues.at("telegram/1/2//")
    for number, queue in enumerate((blocked, held), 1):
        rounds.queues.own(queue, f"s{number}", 1)
        queue.blocked = True
    rounds.stored.turns, rounds.stored.kept = [turn(2)], {"s2"}
    await rounds.round()
    assert rounds.unblocked == ["s1"]


async def test_a_suspect_with_which_the_process_lives_is_spared_once(rounds: Rounds) -> None:
    rounds.stored.turns = [turn(1, suspicion=3)]
    await rounds.round()
    before = len(rounds.stored.charged)
    await rounds.round(LONG_MS)
    spared = [one.turns for one in rounds.stored.charged[before:]]
    assert spared == [{"t1": 3 + 2 - 1}]
    await rounds.rounds(3)
    assert len(rounds.stored.charged) == before + 1


async def test_who_ends_takes_up_nothing(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.runner.closing = [turn(1)], True
    assert await rounds.round() == IDLE_SECONDS
    assert rounds.stored.taken == []


async def test_what_is_another_gateways_by_now_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = Rounds(monkeypatch, Portion(whole=False))
    rounds.stored.turns = [turn(1)]
    await rounds.rounds(3)
    assert rounds.resumed.turns_of == []
    assert rounds.keeper.unclaimed()[LeftKind.SESSION] == 0


async def test_what_is_put_aside_is_charged_and_what_waits_behind_it_is_looked_for_at_once(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.stored.puts_aside = [turn(1, suspicion=LIMIT + 1)], True
    rounds.with_journals()
    await rounds.round()
    assert rounds.resumed.aside == ["t1"]
    assert rounds.stored.charged[0].turns == {"t1": LIMIT + 1}
    assert rounds.stored.looks == 2


async def test_who_waits_for_what_is_left_has_it_taken_up_next_and_does_nothing_before(rounds: Rounds) -> None:
    rounds.stored.turns = [turn(1)]
    await rounds.keeper._look()
    assert not await rounds.left.bell.wait(0.0)
    assert rounds.left.holds("s1")
    assert rounds.left.wanted == {"s1"}
    assert await rounds.left.bell.wait(0.0), "the keeper looks at once"
    await rounds.round()
    assert not rounds.left.holds("s1"), "it is taken up"
    rounds.left.taking = {"s1"}
    assert rounds.left.holds("s1"), "what is new in it comes after what waited"


@pytest.mark.parametrize(("before", "found"), [(0, True), (5, False), (6, True)])
async def test_of_what_waits_only_what_came_before_counts(
    before: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = Rounds(monkeypatch)

    async def turns(_: str) -> list[LeftTurn]:
        return []

    async def messages(_: str) -> list[LeftMessage]:
        return [said(3, inbox.COMMAND_LANE), said(5)]

    left = SimpleNamespace(turns=turns, messages=messages, ended=rounds.stored.ended)
    rounds.left._store = cast("Any", SimpleNamespace(left=left, node=ME))
    assert await rounds.left.find("s5", before) is found


@pytest.mark.parametrize("left", [True, False])
async def test_what_was_seen_of_ours_on_its_way_into_our_hands_holds_nothing_up_once_it_is_there(
    rounds: Rounds, *, left: bool
) -> None:
    asked: list[str] = []

    async def turns(session: str) -> list[LeftTurn]:
        asked.append(session)
        return []

    async def messages(_: str) -> list[LeftMessage]:
        return [replace(said(5), owner=ME)] if left else []

    there = SimpleNamespace(turns=turns, messages=messages, ended=rounds.stored.ended)
    rounds.left._store = cast("Any", SimpleNamespace(left=there, node=ME))
    for name, ours in (("s5", True), ("s6", False)):
        key = (LeftKind.SESSION, name)
        rounds.left.known[key] = KnownItem(LeftItem(LeftKind.SESSION, name, 0, ours=ours), 0.0)
        rounds.left.left[key] = said(int(name[1:]))
    assert await rounds.left.still_holds("s6"), (
        "what another one left is ours to take up first, whatever is stored by now"
    )
    assert asked == []
    assert await rounds.left.still_holds("s5", 9) is left
    assert asked == ["s5"]
    assert ((LeftKind.SESSION, "s5") in rounds.left.known) is left


async def test_what_is_just_being_taken_up_is_forgotten_by_nobody(rounds: Rounds) -> None:
    """The keeper waits for slices that change hands; whoever begins something in the conversation sees meanwhile that nothing of it is left."""
    rounds.stored.messages = [replace(said(5), owner=ME)]
    await rounds.round()
    rounds.clock.now += round(OURS_SECONDS * 1000)

    async def nothing(_: str) -> list[Any]:
        return []

    there = SimpleNamespace(turns=nothing, messages=nothing, charge=rounds.stored.charge)
    rounds.left._store = cast("Any", SimpleNamespace(left=there, node=ME))
    async with rounds.portion.changing_hands:
        keeping = asyncio.create_task(rounds.round())
        while not rounds.left.taking:
            await asyncio.sleep(0)
        assert not await rounds.left.find("s5")
    await keeping
    assert rounds.stored.taken == [{"s5"}]
    assert rounds.resumed.messages_of == ["s5"]


async def test_what_comes_while_it_looks_is_looked_for_at_once(rounds: Rounds) -> None:
    await rounds.rounds(10)
    before = rounds.stored.looks
    rounds.stored.meanwhile = rounds.keeper.look_at_once
    await rounds.round(round(IDLE_SECONDS * 1000))
    rounds.stored.meanwhile = lambda: None
    await rounds.round()
    assert rounds.stored.looks == before + 2


async def test_what_is_left_in_chats_that_come_from_others_comes_before_what_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    portion = Portion(whole=False)
    rounds = Rounds(monkeypatch, portion)
    left = part(1)
    name = slice_of(left.surface)
    assert not rounds.portion.comes_first(left.surface), "it is not ours to say"
    await rounds.rounds(2)
    portion.change({name}, {name: 3})
    assert rounds.portion.comes_first(left.surface), "nobody has looked yet"
    rounds.keeper.look_at_once()
    await rounds.round()
    assert not rounds.portion.comes_first(left.surface)
    portion.change(set())
    portion.change({name}, {name: 5})
    assert rounds.portion.comes_first(left.surface), "another one has had it meanwhile"
    rounds.stored.parts, rounds.stored.kept = [left], {left.session}
    rounds.stored.meanwhile = lambda: portion.change({name}, {name: 7})
    rounds.keeper.look_at_once()
    await rounds.round()
    assert rounds.portion.comes_first(left.surface), "it has changed hands while it was looked"
    rounds.stored.meanwhile = lambda: None
    rounds.keeper.look_at_once()
    await rounds.round()
    assert not rounds.portion.comes_first(left.surface), "what cannot be taken up holds nothing up"


async def test_what_others_have_left_in_a_conversation_that_is_ours_by_now_is_taken_up_at_once(rounds: Rounds) -> None:
    mine = replace(part(1), owner=ME)
    rounds.stored.parts = [mine, replace(part(2), owner=ME, earlier=True)]
    await rounds.round()
    assert rounds.parts.taken == ["o2"], "the other one may only just be coming from here"
    assert rounds.keeper.taken == {LeftKind.PART: 1}
    assert rounds.stored.charged[0].parts[("telegram/1/1/", "o2", "text0", 2)] == 0, "who had it may be well"


async def test_chats_wait_for_those_of_their_parts_that_are_taken_up_in_the_next_rounds(rounds: Rounds) -> None:
    most = WINDOW[LeftKind.PART]
    left = [replace(part(number), surface=f"telegram/1/{number}/") for number in range(most + 2)]
    rounds.stored.parts = [*left[:-1], replace(left[-1], suspicion=1)]
    await rounds.round()
    assert not rounds.portion.comes_first(left[0].surface)
    assert rounds.portion.comes_first(left[most].surface)
    assert rounds.portion.comes_first(left[-1].surface), "also for one that may be what ends the process"
    rounds.parts.known |= set(rounds.parts.taken)
    await rounds.round(2_000)
    assert not rounds.portion.comes_first(left[most].surface)
    assert rounds.portion.comes_first(left[-1].surface), "that comes when nothing else is young"
    rounds.parts.known |= set(rounds.parts.taken)
    await rounds.round(2_000)
    assert rounds.parts.taken[-1] == left[-1].origin
    assert not rounds.portion.comes_first(left[-1].surface)


async def test_a_chat_waits_for_a_suspected_part_no_longer_than_for_a_while(rounds: Rounds) -> None:
    """A conversation that has no place yet keeps suspects back."""
    waits = said(5)
    rounds.stored.messages, rounds.stored.parts = [waits], [replace(part(1), suspicion=1)]
    rounds.runner.slots.position = gives(3)
    rounds.queues.own(rounds.queues.at(waits.key), waits.session, 7)
    await rounds.round()
    assert rounds.portion.comes_first(rounds.stored.parts[0].surface)
    await rounds.rounds(round(BEHIND_SECONDS) // 2 + 1)
    assert rounds.parts.taken == []
    assert not rounds.portion.comes_first(rounds.stored.parts[0].surface)


async def test_what_cannot_even_be_stored_as_taken_up_holds_up_no_other_and_is_set_aside(rounds: Rounds) -> None:
    rounds.stored.turns, rounds.stored.puts_aside = [turn(number) for number in range(7)], True
    rounds.stored.wrong, rounds.stored.damaged = {"s3"}, {"s5"}
    await rounds.round()
    assert sorted(rounds.resumed.turns_of) == ["t0", "t1", "t2", "t4", "t6"]
    assert rounds.aside == ["s5"]
    await rounds.rounds(MISTAKES + 2, 31_000)
    assert rounds.aside == ["s5", "s3"], "in the way that writes nothing into it"


async def test_what_a_mistake_of_ours_keeps_from_going_on_is_set_aside_after_some_tries_and_says_so(
    rounds: Rounds,
) -> None:
    rounds.stored.turns, rounds.stored.messages, rounds.stored.puts_aside = [turn(1), turn(2)], [said(3)], True
    rounds.resumed.wrong = {"t1", "s3"}
    rounds.with_journals()
    await rounds.rounds(MISTAKES, 31_000)
    assert not rounds.resumed.aside
    await rounds.rounds(1, 31_000)
    assert {*zip(rounds.resumed.aside, rounds.resumed.why, strict=True)} == {("t1", NOT_TAKEN), (3, "a mistake")}
    assert rounds.resumed.turns_of == ["t2"]


@pytest.mark.parametrize("key", ["telegram/1/1//", f"{ONCE}x"])
@pytest.mark.parametrize("whole", [True, False])
def test_of_a_living_gateway_only_what_it_has_given_away_is_taken_and_never_a_single_request(
    *, whole: bool, key: str
) -> None:
    keeper: Any = SimpleNamespace(_portion=SimpleNamespace(whole=whole))
    given_up = vars(Keeper)["_given_up"](keeper, LeftTurn("t1", "s1", key, LIVING, 1, 0))
    assert given_up is (not whole and not key.startswith(ONCE))


@pytest.mark.parametrize("count", [0, MOST - 1, MOST, MOST + 3])
@pytest.mark.parametrize("taken", [False, True])
def test_parts_that_nobody_can_take_up_hide_none_behind_them_and_all_are_looked_at_in_turn(
    count: int, taken: bool
) -> None:
    keeper: Any = SimpleNamespace(_parts_from=FIRST_PART)
    there = [part(number) for number in range(count)]
    items = [LeftItem(LeftKind.PART, "p", 0, 0)] if taken else []
    more = vars(Keeper)["_pass_parts"](keeper, there, items)
    assert more is (count >= MOST and not taken)
    assert keeper._parts_from == ((there[-1].surface, there[-1].place) if more else FIRST_PART)
