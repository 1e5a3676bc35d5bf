"""Reserving and settling: atomic, repeatable, fenced; what a dead process held counts as used."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from sqlalchemy import create_engine

from agent_core.limits.budgets import Amount, BudgetRefused, Granted, Level, Pot
from agent_core.limits.spend import Budget, Measure
from agent_core.store import tables as t
from agent_core.store.budgets.rows import PotRow, ReservationRow, ReservationState
from agent_core.store.budgets.sql import release
from agent_core.store.evidence import EvidenceReads
from agent_core.store.store import Conflict, Fenced, Store
from tests.store.support import FakeClock, child, opened, row, session_of, take_over, turn_of

DAY = Pot(Budget.DAY, "day:all", 1_000, 2_000, Amount(1_000), Amount(800))
PERSON = Pot(Budget.PERSON, "person:p", 1_000, 2_000)
POTS = (PERSON, DAY)
KEYS = [pot.key for pot in POTS]


@pytest.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as store:
        yield store


async def level(store: Store, pot: Pot = DAY) -> Level:
    return (await store.budgets.levels([pot.key])).get(pot.key, Level())


async def test_what_is_reserved_is_held_and_what_is_settled_is_spent(store: Store) -> None:
    session, epoch = await session_of(store)
    assert await store.budgets.levels(KEYS) == {}
    assert await store.budgets.reserve(session, epoch, "c1", Amount(300, 7), POTS, 1) == Granted()
    assert await store.budgets.levels(KEYS) == {key: Level(held=Amount(300, 7)) for key in KEYS}
    settled = await store.budgets.settle(session, epoch, "c1", Amount(120, 3), POTS, 2, estimated=True)
    assert settled.warnings == ()
    after = Level(spent=Amount(120, 3), estimated=Amount(120, 3), calls=1)
    assert await store.budgets.levels(KEYS) == dict.fromkeys(KEYS, after)


async def test_a_pot_without_room_refuses_and_nothing_is_held_anywhere(store: Store) -> None:
    session, epoch = await session_of(store)
    await store.budgets.reserve(session, epoch, "c1", Amount(1_000), POTS, 1)
    before = await store.budgets.levels(KEYS)
    refused = await store.budgets.reserve(session, epoch, "c2", Amount(1), POTS, 1)
    assert isinstance(refused, BudgetRefused)
    assert (refused.reached.pot, refused.reached.measure) == (DAY, Measure.TOKENS)
    assert await store.budgets.levels(KEYS) == before
    with pytest.raises(Conflict):
        await store.budgets.settle(session, epoch, "c2", Amount(1), POTS, 1, estimated=False)


async def test_both_may_be_repeated_and_other_content_is_fenced(store: Store) -> None:
    session, epoch = await session_of(store)
    for _ in range(2):
        assert await store.budgets.reserve(session, epoch, "c1", Amount(300), POTS, 1) == Granted()
    with pytest.raises(Fenced):
        await store.budgets.reserve(session, epoch, "c1", Amount(301), POTS, 1)
    for _ in range(2):
        await store.budgets.settle(session, epoch, "c1", Amount(120), POTS, 2, estimated=False)
    with pytest.raises(Fenced):
        await store.budgets.settle(session, epoch, "c1", Amount(121), POTS, 2, estimated=False)
    assert await level(store) == Level(spent=Amount(120), calls=1)


async def test_who_does_not_own_the_session_can_neither_reserve_nor_settle(store: Store) -> None:
    session, epoch = await session_of(store)
    with pytest.raises(Fenced):
        await store.budgets.reserve(session, epoch + 1, "c1", Amount(300), POTS, 1)
    assert await store.budgets.levels(KEYS) == {}


async def test_a_hundred_at_once_hold_no_more_than_one_beyond_the_limit(store: Store) -> None:
    session, epoch = await session_of(store)
    answers = await asyncio.gather(
        *(store.budgets.reserve(session, epoch, f"c{n}", Amount(300), POTS, 1) for n in range(100))
    )
    assert sum(isinstance(answer, Granted) for answer in answers) == 4
    assert (await level(store)).held == Amount(1_200)


async def test_the_warning_comes_once_a_window(store: Store) -> None:
    session, epoch = await session_of(store)
    warned: list[int] = []
    other = replace(DAY, window=2_000, until=3_000)
    for number, pot in enumerate((DAY, DAY, DAY, other)):
        await store.budgets.reserve(session, epoch, f"c{number}", Amount(1), (pot,), 1)
        used = Amount(850 if pot is other else 400)
        settled = await store.budgets.settle(session, epoch, f"c{number}", used, (pot,), 2, estimated=False)
        warned.append(len(settled.warnings))
    assert warned == [0, 1, 0, 1]


async def test_what_a_dead_process_held_counts_as_used_and_is_said_to_be_estimated(where: str) -> None:
    async with child("reserve", where) as process:
        assert (await process.line()).split()[0] == "held"
        process.send(signal.SIGKILL)
        while await process.line():
            pass
    await asyncio.sleep(0.1)
    async with opened(where) as store:
        await take_over(store)
        expected = Level(spent=Amount(400), estimated=Amount(300), calls=2)
        assert await store.budgets.levels(KEYS) == dict.fromkeys(KEYS, expected)
        await take_over(store)
        assert await store.budgets.levels(KEYS) == dict.fromkeys(KEYS, expected)


@pytest.mark.parametrize("pots", ['[["gone",1000]]', "[[day", "7", '[["day:all",1000],["gone",0]]'])
def test_a_budget_that_is_gone_or_makes_no_sense_ends_no_start_and_the_others_are_settled(pots: str) -> None:
    engine = create_engine("sqlite://")
    with engine.begin() as conn:
        t.metadata.create_all(conn)
        t.POT.add(conn, [t.POT.values(PotRow("day:all", 1_000, 2_000, held_tokens=30))])
        held = ReservationRow("t_1:1", "s", 1, ReservationState.OPEN, pots, 10, 0, 0, 0, estimated=False, at=5)
        sound = replace(held, call="t_1:2", pots='[["day:all",1000]]', held_tokens=20)
        t.RESERVATION.add(conn, [t.RESERVATION.values(one) for one in (held, sound)])
        release(conn, {1}, 2)
        (pot,) = [t.POT.make(row) for row in conn.execute(t.POT.query)]
        calls = [t.RESERVATION.make(row) for row in conn.execute(t.RESERVATION.query)]
    assert {(one.state, one.used, one.estimated) for one in calls} == {
        (ReservationState.SETTLED, Amount(10), True),
        (ReservationState.SETTLED, Amount(20), True),
    }
    mine = 10 if "day:all" in pots else 0
    assert pot.level.spent == pot.level.estimated == Amount(20 + mine)
    assert pot.level.held == Amount(10 - mine)


async def test_what_a_living_process_holds_is_left_alone(postgres: str) -> None:
    async with child("reserve", postgres) as process:
        assert (await process.line()).split()[0] == "held"
        async with opened(postgres) as store:
            await take_over(store)
            assert (await level(store)).held == Amount(300)


async def test_two_nodes_check_and_add_one_after_the_other(postgres: str) -> None:
    async with opened(postgres) as one, opened(postgres) as two:
        owned = [(store, *await session_of(store, key)) for store, key in ((one, "a"), (two, "b"))]
        answers = await asyncio.gather(
            *(
                store.budgets.reserve(session, epoch, f"{session}{n}", Amount(300), POTS, 1)
                for n in range(20)
                for store, session, epoch in owned
            )
        )
        assert sum(isinstance(answer, Granted) for answer in answers) == 4
        assert (await level(one)).held == Amount(1_200)


async def test_old_calls_and_turns_are_forgotten_and_running_ones_are_not(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        session, epoch = await session_of(store)
        turn, running = Pot(Budget.TURN, "turn:t1"), Pot(Budget.TURN, "turn:t2")
        await store.budgets.reserve(session, epoch, "c1", Amount(5), (turn, DAY), 1)
        await store.budgets.settle(session, epoch, "c1", Amount(5), (turn, DAY), 2, estimated=False)
        await store.budgets.reserve(session, epoch, "c2", Amount(5), (running,), 1)
        await store.keeping.prune(clock.now)
        left = await store.budgets.levels([turn.key, running.key])
        assert left == {running.key: Level(held=Amount(5))}
        await store.budgets.settle(session, epoch, "c2", Amount(5), (running,), 3, estimated=False)
        with pytest.raises(Conflict):
            await store.budgets.settle(session, epoch, "c1", Amount(5), (turn, DAY), 2, estimated=False)


@pytest.mark.parametrize("estimated", [False, True])
async def test_a_turn_that_used_more_than_was_counted_for_its_calls_is_known_unless_that_was_a_guess(
    store: Store, estimated: bool
) -> None:
    turns: dict[str, int] = {}
    for number, paid in enumerate((14, 15, 16, 0)):
        session, epoch, turn = await turn_of(store, f"chat{number}")
        for call, used in enumerate((paid // 2, paid - paid // 2) if paid else ()):
            name = f"{turn}:{call}"
            await store.budgets.reserve(session, epoch, name, Amount(50), (PERSON,), 1)
            await store.budgets.settle(session, epoch, name, Amount(used), (PERSON,), 2, estimated=estimated)
        await store.turns.close(session, epoch, turn, [row(1)], "answered", 100 + number, used=(10, 5))
        turns[turn] = paid
    found = (await EvidenceReads(store.asks).ledger(0)).unpaid
    less = [turn for turn, paid in turns.items() if paid == 14 and not estimated]
    assert [(one.turn, one.used, one.paid) for one in found] == [(turn, 15, 14) for turn in less]
