"""What was done by hand is noted with what it changes, once; and what the console asks of the store."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
import pytest_asyncio

from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, Store
from tests.store.support import FakeClock, message, opened, row, turn_of

ENTRY = AuditRow("a_1", 50, "with the key", "drop", "telegram/1/7//t_1/answer/0", "It was dropped.", "{}", "{}")
DAY_MS = 24 * 3600 * 1000


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


def part(origin: str, number: int = 0) -> DeliveryRow:
    return DeliveryRow("telegram/1/7/", origin, "answer", number, number + 1, b"text", "h", f"{origin}/{number}")


async def test_an_act_is_stored_with_its_entry_and_a_repeated_one_is_noted_once(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    await store.deliveries.put(session, epoch, [part(turn)])
    dropped = replace(part(turn), state=DeliveryState.SKIPPED, gone=True)
    for _ in range(2):
        await store.deliveries.act(ENTRY, session, epoch, [dropped])
    assert await store.overview.audit(10) == [ENTRY]
    assert await store.deliveries.open() == []
    found = await store.deliveries.one("telegram/1/7/", turn, "answer", 0)
    assert found is not None
    assert (found.session, found.row) == (session, dropped)
    assert await store.deliveries.one("telegram/1/7/", turn, "answer", 1) is None


async def test_who_does_not_own_the_session_neither_acts_nor_leaves_an_entry(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    with pytest.raises(Fenced):
        await store.deliveries.act(ENTRY, session, epoch + 1, [part(turn)])
    assert await store.overview.audit(10) == []
    assert await store.deliveries.of(turn) == []


async def test_an_entry_alone_needs_no_session_and_the_latest_comes_first(store: Store) -> None:
    later = replace(ENTRY, audit="a_2", act="show text", at=60)
    await store.deliveries.act(ENTRY)
    await store.deliveries.act(later)
    assert await store.overview.audit(10) == [later, ENTRY]
    assert await store.overview.audit(1) == [later]


async def test_entries_are_kept_for_four_hundred_days(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        await store.deliveries.act(replace(ENTRY, at=clock.now))
        clock.now += 399 * DAY_MS
        await store.keeping.prune(clock.now)
        assert len(await store.overview.audit(10)) == 1
        clock.now += 2 * DAY_MS
        await store.keeping.prune(clock.now)
        assert await store.overview.audit(10) == []


async def test_the_newest_turns_and_what_is_open_and_what_waits(store: Store) -> None:
    first = await turn_of(store, "one")
    await store.turns.close(first[0], first[1], first[2], [row(1)], "answered", 300, used=(12, 3))
    second = await turn_of(store, "two")
    await store.inbox.accept(message("later", "two", at=77))
    newest = await store.overview.turns(10)
    assert sorted((one.turn, one.key, one.exit, one.closed_at) for one in newest) == sorted(
        [(first[2], "one", "answered", 300), (second[2], "two", "", None)]
    )
    assert [one.turn for one in newest] == sorted((first[2], second[2]), reverse=True)
    assert [one.turn for one in await store.overview.open_turns(10)] == [second[2]]
    assert [(one.key, one.count, one.since) for one in await store.overview.waiting(10)] == [("two", 1, 77)]
    assert {one.quarantined for one in newest} == {""}
    assert [
        (one.exit, one.count, one.input_tokens, one.output_tokens) for one in await store.overview.exits(300, 301)
    ] == [("answered", 1, 12, 3)]
    assert await store.overview.exits(301, 400) == []
    assert await store.overview.pots(0, 10) == []
