"""The auditor's question finds what is not true, and nothing else, on both engines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import product

import pytest_asyncio

from agent_core.store.deliveries.access import Lie, Lying
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Store
from tests.store.support import opened, row, turn_of

OPEN = (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


def every(origin: str) -> list[DeliveryRow]:
    """A part in each state, with and without a message, as it is to stay, on its way, and to go."""
    found: list[DeliveryRow] = []
    for state, message, final, gone in product(DeliveryState, (None, "55", "grows:55"), (True, False), (True, False)):
        number = len(found)
        part = DeliveryRow("telegram/1/7", origin, "answer", number, number + 1, b"text", "h", f"{origin}/{number}")
        found.append(replace(part, state=state, platform_id=message, final=final, gone=gone, at=number))
    return found


def truth(one: DeliveryRow) -> Lie | None:
    """What is wrong with a part of which nothing runs any more."""
    if one.state in OPEN:
        return Lie.OPEN
    if one.state is not DeliveryState.SENT:
        return None
    if one.gone or one.platform_id is None or one.platform_id.startswith("grows:"):
        return Lie.UNDONE
    return None if one.final else Lie.UNENDED


def lies(rows: list[DeliveryRow]) -> list[Lying]:
    return [
        Lying(lie, one.surface, one.origin, one.bubble, one.part, one.state, one.at)
        for one in rows
        if (lie := truth(one)) is not None
    ]


async def test_of_a_turn_that_runs_nothing_is_untrue_and_when_it_is_over_what_was_left(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    rows = every(turn)
    await store.deliveries.put(session, epoch, rows)
    assert await store.deliveries.lying(1_000) == []
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
    assert await store.deliveries.lying(1_000) == lies(rows)
    assert {one.lie for one in await store.deliveries.lying(1_000)} == set(Lie) - {Lie.UNTOLD}
    assert await store.deliveries.lying(3) == lies(rows)[:3]


async def test_a_turn_that_took_everything_back_and_left_nothing_is_found(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    text = DeliveryRow("telegram/1/7", turn, "text0", 0, 1, b"text", "h", f"{turn}/0")
    taken = replace(text, state=DeliveryState.SKIPPED, gone=True, at=5)
    await store.deliveries.put(session, epoch, [taken])
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
    assert [one.lie for one in await store.deliveries.lying()] == [Lie.UNTOLD]
    assert await store.deliveries.lying(since_ms=10**15) == [], "of what is older nobody can know"
    told = replace(text, part=1, state=DeliveryState.SENT, platform_id="55", final=True)
    await store.deliveries.put(session, epoch, [told])
    assert await store.deliveries.lying() == []


async def test_what_belongs_to_no_turn_is_over_when_it_was_said(store: Store) -> None:
    session, epoch, _ = await turn_of(store)
    rows = every("inbox:1")
    await store.deliveries.put(session, epoch, rows)
    assert await store.deliveries.lying(1_000) == lies(rows)


async def test_what_is_as_it_is_wanted_is_true(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    await store.deliveries.put(session, epoch, every(turn))
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
    mended = [
        replace(one, state=DeliveryState.SENT, platform_id="55", final=True, gone=False)
        if not one.gone
        else replace(one, state=DeliveryState.SKIPPED)
        for one in every(turn)
    ]
    await store.deliveries.put(session, epoch, mended)
    assert await store.deliveries.lying(1_000) == []


async def test_a_turn_that_was_taken_back_by_a_person_has_nothing_left_to_tell(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    text = DeliveryRow("telegram/1/7", turn, "text0", 0, 1, b"text", "h", f"{turn}/0")
    await store.deliveries.put(session, epoch, [replace(text, state=DeliveryState.SKIPPED, gone=True, at=5)])
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
    assert [one.lie for one in await store.deliveries.lying()] == [Lie.UNTOLD]
    await store.sessions.change(session, epoch, SessionChange(undo=turn))
    assert await store.deliveries.lying() == []
