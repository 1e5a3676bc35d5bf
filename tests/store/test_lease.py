"""The lease by a clock that a test sets: when it ends, from when it counts, and who is not taken for dead just after it was had again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from sqlalchemy import TextClause

from agent_core.retry import Retry
from agent_core.store.database import ownership
from agent_core.store.database.ownership import PulseLock
from agent_core.store.database.place import PostgresPlace, parse_place

PATIENCE, MARGIN = 4.0, 1.0
"""The server's, and how much before that nothing is sent any more."""


class Wall:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Answering(PulseLock):
    """Its server takes `seconds` for an answer."""

    def __init__(self, clock: Wall) -> None:
        place = parse_place("postgresql://somebody@nowhere/db")
        assert isinstance(place, PostgresPlace)
        super().__init__(place, cast("Any", None), clock)
        self.wall, self.seconds, self.asked = clock, 0.0, asyncio.Event()
        self.left_behind: list[float] = []

    async def _ask(self, query: TextClause, **values: object) -> Any:
        del query, values
        if self.asked.is_set():
            raise OSError("the server is away")
        self.wall.now += self.seconds
        self.asked.set()
        return SimpleNamespace(scalar_one=lambda: round(self.wall.now * 1000))

    async def _end_stopped(self) -> None: ...


async def test_nothing_is_sent_from_a_second_before_the_servers_patience_on() -> None:
    clock = Wall()
    lock = Answering(clock)
    for passed, left in ((0.0, 3.0), (1.0, 2.0), (2.9, 0.1)):
        clock.now = 1_000 + passed
        assert lock.lease_left() == pytest.approx(left)
        assert lock.lease_ok()
        assert not lock.may_return()
    for passed in (PATIENCE - MARGIN, PATIENCE, 100):
        clock.now = 1_000 + passed
        assert not lock.lease_ok()
        assert lock.may_return()
    lock.lost.set()
    clock.now = 1_000
    assert lock.lease_left() == 0
    assert not lock.lease_ok()
    assert not lock.may_return()


async def test_a_slow_answer_counts_from_when_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "PING_SECONDS", 0.01)
    clock = Wall()
    lock = Answering(clock)
    clock.now += 1
    lock.seconds = 1.5
    await asyncio.wait_for(lock._hold(), 10)  # its second question is not answered
    assert clock.now == 1_002.5
    assert lock.lease_left() == pytest.approx(PATIENCE - MARGIN - 1.5)


async def test_who_has_just_had_its_locks_again_takes_nobody_for_dead_but_whose_pulse_was_heard_since() -> None:
    clock, asked = Wall(), list[tuple[object, Any]]()

    class Conn:
        def execute(self, query: object, values: Any) -> Any:
            asked.append((query, values))
            return self

        def scalars(self) -> list[int]:
            return [7]

    lock = Answering(clock)
    lock._patient_until = clock.now + 2.0
    clock.now += 1.9
    assert lock.dead(cast("Any", Conn()), [7]) == frozenset()
    assert asked == []
    lock._heard = frozenset({7, 8})
    assert lock.dead(cast("Any", Conn()), [6, 7]) == {7}
    assert [values["nodes"] for _, values in asked] == [[7]]
    lock._heard = frozenset()
    clock.now += 0.1
    assert lock.dead(cast("Any", Conn()), [7]) == {7}
    lock._node = 7
    assert lock.dead(cast("Any", Conn()), [7]) == frozenset(), "nobody is dead to itself"


@pytest.mark.parametrize(
    ("cut", "tries", "patience"),
    [
        (False, [], 2.0),
        (False, [ConnectionRefusedError()], 2.0),
        (True, [], 4.0),
        (False, [ConnectionRefusedError(), TimeoutError()], 4.0),
    ],
)
async def test_whose_connections_ended_or_were_refused_is_waited_for_half_as_long_as_who_hears_nothing(
    cut: bool, tries: list[OSError], patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, left = Wall(), [*tries]
    lock = Answering(clock)
    monkeypatch.setattr(ownership, "PULSE_AGAIN", Retry(0.0, 0.0))

    async def connect() -> None:
        if left:
            raise left.pop(0)

    async def retaken() -> bool:
        return True

    monkeypatch.setattr(lock, "connect", connect)
    monkeypatch.setattr(lock, "_retaken", retaken)
    for heard_nothing, seconds in ((cut, patience), (False, 2.0)):
        if heard_nothing:
            lock._cut()
        assert await lock._again()
        assert lock._patient_until == clock.now + seconds
        lock.asked.clear()


async def test_only_the_end_of_its_own_connection_takes_the_lease_away() -> None:
    clock = Wall()
    lock, mine, old = Answering(clock), cast("Any", object()), cast("Any", object())
    lock._conn = mine
    lock._gone(old, None)
    assert lock.lease_ok()
    assert not lock._ended.is_set()
    lock._gone(mine, None)
    assert not lock.lease_ok()
    assert lock._ended.is_set()


@pytest.mark.parametrize("again", [[True, True, False], [False]])
async def test_a_lost_lock_is_had_again_as_long_as_nobody_has_taken_the_node_for_dead(
    again: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, held, left = Answering(Wall()), list[bool](), list(again)

    async def hold() -> None:
        assert not lock.lost.is_set()
        held.append(True)

    async def retake() -> bool:
        return left.pop(0)

    monkeypatch.setattr(lock, "_hold", hold)
    monkeypatch.setattr(lock, "_again", retake)
    lock._node = 7
    await lock.beat()
    assert len(held) == len(again)
    assert left == []
    assert lock.lost.is_set()
