"""Who may begin a turn: the laws on made-up crowds; then real turns of a real hub."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from adapters.contract.base import Ended, Queued, Showing
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from gateway.limits.admission import Admission, Bounds, SlotClaim
from tests.gateway.rig import QUICK, Rig, chunk, gateway


class Crowd(RuleBasedStateMachine):
    """People come, get a place, begin, leave: in any order."""

    bounds = Bounds(open=4, opening=2, share=2, crowd=3, waiting=100)

    def __init__(self) -> None:
        super().__init__()
        self.admission: Admission[int] = Admission(self.bounds)
        self.claims: dict[int, SlotClaim] = {}
        """Who waits."""
        self.placed: dict[int, SlotClaim] = {}
        self.beginning: set[int] = set()
        self.number = 0
        self.now = 0.0

    def _give(self) -> None:
        while (key := self.admission.next(self.now)) is not None:
            claim = self.claims.pop(key)
            room = claim.taken_up or self.admission.ramp.room(self.now)
            better = [k for k, other in self.claims.items() if self._rank(k, other) < self._rank(key, claim)]
            better = [k for k in better if room or not self.claims[k].taken_up]
            assert all(self._has_share(self.claims[k].person) for k in better), "somebody was passed over for nothing"
            self.placed[key] = claim
            self.beginning.add(key)
        ready = [c for c in self.claims.values() if not c.taken_up or self.admission.ramp.room(self.now)]
        assert not (ready and self._room()) or all(self._has_share(c.person) for c in ready)

    @rule(seconds=st.floats(0, 3))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self._give()

    @precondition(lambda self: self.admission.held_up_seconds(self.now))
    @rule()
    def the_ramp_lets_one_go_on(self) -> None:
        self.now += self.admission.held_up_seconds(self.now) + 1e-6
        assert self.admission.ramp.room(self.now)
        self._give()

    @staticmethod
    def _rank(key: int, claim: SlotClaim) -> tuple[bool, int, int]:
        return not claim.taken_up, claim.since, key

    def _has_share(self, person: str) -> bool:
        held = Counter(claim.person for claim in self.placed.values())[person]
        return held >= self.bounds.of_person(person)

    def _room(self) -> bool:
        return len(self.placed) < self.bounds.open and len(self.beginning) < self.bounds.opening

    @rule(person=st.sampled_from(["", "ada", "bob", "eve"]), since=st.integers(0, 5), taken_up=st.booleans())
    def comes(self, person: str, since: int, taken_up: bool) -> None:
        self.number += 1
        self.claims[self.number] = claim = SlotClaim(person, since, taken_up)
        self.admission.ask(self.number, claim)
        self.admission.ask(self.number, SlotClaim("eve", 0, taken_up=True))  # asking again changes nothing
        self._give()

    @precondition(lambda self: self.beginning)
    @rule(data=st.data())
    def begins(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.beginning)))
        self.beginning.discard(key)
        self.admission.begun(key)
        self._give()

    @precondition(lambda self: self.placed)
    @rule(data=st.data())
    def ends(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.placed)))
        del self.placed[key]
        self.beginning.discard(key)
        self.admission.leave(key)
        self._give()

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def gives_up(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.claims)))
        del self.claims[key]
        self.admission.leave(key)
        self._give()

    @invariant()
    def never_more_than_there_may_be(self) -> None:
        assert self.admission.open == len(self.placed) <= self.bounds.open
        assert len(self.beginning) <= self.bounds.opening
        for person, held in Counter(claim.person for claim in self.placed.values()).items():
            assert held <= self.bounds.of_person(person)

    @invariant()
    def the_place_in_the_line_is_how_many_come_before(self) -> None:
        in_order = sorted(self.claims, key=lambda key: self._rank(key, self.claims[key]))
        assert [self.admission.position(key) for key in in_order] == list(range(1, len(in_order) + 1))
        assert self.admission.waiting == len(in_order)
        assert self.admission.oldest_since() == min((claim.since for claim in self.claims.values()), default=None)
        assert all(self.admission.position(key) is None for key in self.placed)


TestCrowd = Crowd.TestCase


@given(st.lists(st.tuples(st.sampled_from(["", "ada", "bob"]), st.integers(0, 9), st.booleans()), max_size=40))
def test_everybody_gets_a_place_in_the_end_however_the_turns_end(people: list[tuple[str, int, bool]]) -> None:
    admission: Admission[int] = Admission(Bounds.of(3, 100))
    for number, (person, since, taken_up) in enumerate(people):
        admission.ask(number, SlotClaim(person, since, taken_up))
    begun: list[int] = []
    ends = 0
    while len(begun) < len(people):
        while (key := admission.next(60.0 * ends)) is not None:
            begun.append(key)
            admission.begun(key)
        admission.leave(begun[ends])
        ends += 1
        assert ends <= len(people), "somebody starves"
    assert sorted(begun) == list(range(len(people)))


def test_nobody_who_waits_is_passed_over_by_who_would_begin_at_once() -> None:
    admission: Admission[int] = Admission(Bounds(open=4, opening=4, share=4, crowd=4, waiting=9))
    admission.ask(1, SlotClaim("ada", 5))
    assert not admission.at_once(2, SlotClaim("bob", 6))
    assert admission.next(0.0) == 1
    assert admission.at_once(2, SlotClaim("bob", 6))


@pytest.mark.parametrize("given_one", [False, True])
def test_nothing_is_kept_of_who_left(given_one: bool) -> None:
    admission: Admission[int] = Admission(Bounds(open=1, opening=1, share=1, crowd=1, waiting=9))
    admission.ask(1, SlotClaim("ada", 5))
    if given_one:
        assert admission.next(0.0) == 1
    admission.leave(1)
    kept = admission._line, admission._claims, admission._keys, admission._given, admission._held
    assert not any(kept)


@given(st.integers(1, 5_000), st.integers(1, 5_000))
def test_bounds_leave_room_for_everybody(open_turns: int, waiting: int) -> None:
    bounds = Bounds.of(open_turns, waiting)
    assert 1 <= bounds.share <= bounds.open == open_turns
    assert 1 <= bounds.crowd <= bounds.open
    assert 1 <= bounds.opening <= bounds.open
    if open_turns >= 4:
        assert bounds.crowd < bounds.open, "who cannot be told apart takes everything"


# --- a real hub ---

PATIENT = replace(QUICK, first_content_seconds=60, stall_seconds=60, remedy_seconds=60)


def rig(folder: Path, reply: Any, bounds: Bounds) -> AbstractAsyncContextManager[Rig]:
    return gateway(folder, reply, settings=PATIENT, bounds=bounds)


class Slow:
    """A model that answers when it is let, and knows how many it talks to at once."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.now = 0
        self.most = 0

    async def reply(self, messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await response.write(chunk({"content": "so "}))
            await self.let.wait()
            await response.write(chunk({"content": f"{messages[-1]['content']}"}, "stop") + b"data: [DONE]\n\n")
        finally:
            self.now -= 1


async def until(true: Any, seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.01)


async def test_no_more_turns_are_open_than_there_are_places_and_everybody_is_told_and_answered(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(4, 100)) as up:
        tickets = [await up.hub.accept(up.inbound(f"number {i}", session=f"s{i}")) for i in range(12)]
        await until(lambda: slow.now == 3)  # three quarters: these people cannot be told apart
        told: list[int] = []
        for ticket in tickets[3:]:
            async with up.hub.follow(ticket) as follower:
                sight = await follower.next(5)
                assert isinstance(sight, Queued), sight
                told.append(sight.line)
        assert told == list(range(1, 10))
        assert (up.hub.slots.in_line, len(up.hub.running()), up.hub.slots.messages) == (9, 3, 9)
        slow.let.set()
        ended = [await up.end(ticket) for ticket in tickets]
        assert ["".join(b.text for b in one.view.bubbles) for one in ended] == [f"so number {i}" for i in range(12)]
        assert slow.most == 3
        await until(lambda: not up.hub.running())
        assert up.hub.slots.open == up.hub.slots.in_line == 0


async def test_who_waits_sees_the_place_get_smaller_and_then_the_turn(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(1, 100)) as up:
        first = await up.hub.accept(up.inbound("first", session="a"))
        await until(lambda: slow.now == 1)
        between = await up.hub.accept(up.inbound("between", session="b"))
        last = await up.hub.accept(up.inbound("last", session="c"))
        async with up.hub.follow(last) as follower:
            assert await follower.next(5) == Queued(1, 2)
            assert await follower.next(0.05) is None  # nothing new: a sign of life is enough
            assert (await up.hub.stop_message(between)).stopped
            assert await follower.next(0.05) == Queued(1, 1)
            slow.let.set()
            async with asyncio.timeout(60):
                while not isinstance(sight := await follower.next(5), Ended):
                    assert isinstance(sight, Showing | None)
        assert isinstance(await up.end(first), Ended)
        assert [r["messages"][-1]["content"] for r in up.model.requests] == ["first", "last"]


async def test_a_stop_waits_for_no_place(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(1, 100)) as up:
        await up.hub.accept(up.inbound("first", session="a"))
        await until(lambda: slow.now == 1)
        waits = up.inbound("waits", session="b")
        ticket = await up.hub.accept(waits)
        async with asyncio.timeout(60):
            outcome = await up.hub.stop(waits.session)
        assert outcome.stopped
        assert up.hub.slots.in_line == 0
        ended = await up.end(ticket)
        assert ended.exit.code.value == "not_started"
        slow.let.set()


async def test_beyond_the_bound_a_message_is_refused_counted_and_not_stored(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(1, 5)) as up:
        taken = await asyncio.gather(
            *(up.hub.accept(up.inbound("x", session=f"s{i}", key=f"k{i}")) for i in range(40)), return_exceptions=True
        )
        refused = [one for one in taken if isinstance(one, NotAccepted)]
        assert {one.code for one in refused} == {NotAcceptedCode.GATEWAY_FULL}
        assert all(one.retry_after_seconds > 0 and "Send it again" in str(one) for one in refused)
        kept = [i for i, one in enumerate(taken) if not isinstance(one, NotAccepted)]
        assert 5 <= len(kept) <= 6, "one runs, five wait"
        assert up.hub.slots.turned_away == len(refused) == 40 - len(kept)
        for i in range(40):
            assert (await up.store.inbox.by_key("test", f"k{i}") is not None) == (i in kept)
        again = await up.hub.accept(up.inbound("x", session=f"s{kept[-1]}", key=f"k{kept[-1]}"))
        assert again.duplicate, "what was taken is not turned away when it is asked for again"
        slow.let.set()
        await until(lambda: not up.hub.slots.full())
        assert not (await up.hub.accept(up.inbound("x", session="s99"))).duplicate


async def test_one_person_does_not_take_all_places(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds(open=4, opening=4, share=2, crowd=3, waiting=100)) as up:
        flood = [up.inbound("flood", session=f"f{i}", memory_scope="api/eve") for i in range(6)]
        for inbound in flood:
            await up.hub.accept(inbound)
        await until(lambda: slow.now == 2)
        other = await up.hub.accept(up.inbound("other", session="o", memory_scope="api/ada"))
        await until(lambda: slow.now == 3)
        assert sum("other" in str(r["messages"][-1]["content"]) for r in up.model.requests) == 1
        slow.let.set()
        await up.end(other)


async def test_turns_that_were_left_open_come_before_new_ones_and_within_the_bound(tmp_path: Path) -> None:
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(8, 100)) as up:
        for i in range(4):
            await up.hub.accept(up.inbound(f"old {i}", session=f"o{i}"))
        await until(lambda: slow.now == 4)
        for i in range(4):
            await up.hub.accept(up.inbound(f"waits {i}", session=f"o{i}"))
    slow = Slow()
    async with rig(tmp_path, slow.reply, bounds=Bounds.of(2, 100)) as up:
        await until(lambda: slow.now >= 1)
        assert up.recovered == 4
        slow.let.set()
        await until(lambda: not up.hub.slots.messages and not up.hub.running())
        said = [str(r["messages"]) for r in up.model.requests]
        old = [i for i, words in enumerate(said) if "waits" not in words]
        assert slow.most <= 2
        assert old == [0, 1, 2, 3], "who was taken up comes first"
