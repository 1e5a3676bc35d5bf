"""Schedules and their occurrences: stored whole, claimed once, together with the message that comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
import pytest_asyncio

from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.schedules.rows import Claimed, OccurrenceOutcome, OccurrenceRow, ScheduleRow, ScheduleState
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Conflict, Store
from tests.store.support import FakeClock, message, opened, session_of

DAY_MS = 86_400_000


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


def hourly(name: str = "a", key: str = "chat", next_at: int = 1_000) -> ScheduleRow:
    return ScheduleRow(name, "reminder", key, "telegram/1/7/", 1, "every 3600 0", b'{"x":"\\u0000"}', next_at, at=5)


def claim(row: ScheduleRow, next_at: int | None = 2_000) -> Claimed:
    assert row.next_at is not None
    state = ScheduleState.ACTIVE if next_at is not None else ScheduleState.DONE
    moved = replace(row, next_at=next_at, done_to=row.next_at, state=state, rev=row.rev + 1, at=9)
    occurrence = OccurrenceRow(row.schedule, row.next_at, row.next_at, 1, OccurrenceOutcome.RUN, 9)
    return Claimed(moved, occurrence)


def occurring(found: Claimed) -> NewMessage:
    """The message of an occurrence."""
    return replace(message(f"schedule:{found.schedule.schedule}:{found.occurrence.due_at}"), claim=found)


async def test_an_occurrence_is_claimed_with_its_message_and_only_once(store: Store) -> None:
    row = hourly()
    await store.schedules.put(row)
    found = claim(row)
    accepted = await store.inbox.accept(occurring(found))
    assert await store.schedules.one("a") == found.schedule
    assert await store.schedules.occurrences("a") == [replace(found.occurrence, inbox=accepted.inbox_id)]
    assert [one.id for one in await store.inbox.pending(accepted.session)] == [accepted.inbox_id]
    assert (await store.inbox.accept(occurring(found))).duplicate  # the very same offer, repeated
    with pytest.raises(Conflict):  # somebody who saw the same state, and is later
        await store.inbox.accept(replace(occurring(found), platform_key="another"))
    assert await store.inbox.by_key("bot", "another") is None
    assert len(await store.schedules.occurrences("a")) == 1


async def test_of_many_who_claim_at_once_one_succeeds(store: Store) -> None:
    row = hourly()
    await store.schedules.put(row)
    offers = [store.inbox.accept(replace(occurring(claim(row)), platform_key=f"k{n}")) for n in range(20)]
    outcomes = await asyncio.gather(*offers, return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in outcomes) == 19
    assert len(await store.schedules.occurrences("a")) == 1


async def test_two_nodes_claim_an_occurrence_once(postgres: str) -> None:
    async with opened(postgres) as one, opened(postgres) as two:
        row = hourly()
        await one.schedules.put(row)
        for _ in range(10):
            assert row.next_at is not None
            found = claim(row, row.next_at + 1_000)
            offers = (node.inbox.accept(occurring(found)) for node in (one, two))
            outcomes = await asyncio.gather(*offers, return_exceptions=True)
            # The other node finds the message, or that the schedule has moved on.
            fresh = [o for o in outcomes if not isinstance(o, BaseException) and not o.duplicate]
            assert len(fresh) == 1, outcomes
            row = found.schedule
        rows = await two.schedules.occurrences("a")
        assert [occurrence.due_at for occurrence in rows] == list(range(1_000, 11_000, 1_000))
        assert await two.schedules.one("a") == row


async def test_a_claim_that_does_not_fit_stores_nothing(store: Store) -> None:
    row = hourly()
    await store.schedules.put(row)
    good = claim(row)
    for schedule in (
        replace(good.schedule, rev=good.schedule.rev + 1),
        replace(good.schedule, schedule="unknown"),
        replace(good.schedule, done_to=0),
    ):
        with pytest.raises(Conflict):
            await store.inbox.accept(replace(message("m"), claim=replace(good, schedule=schedule)))
    assert await store.schedules.one("a") == row
    assert await store.inbox.by_key("bot", "m") is None


@pytest.mark.parametrize("next_at", [500, 1_000])
async def test_what_was_claimed_before_is_never_claimed_again(store: Store, next_at: int) -> None:
    row = hourly()
    await store.schedules.put(row)
    moved = claim(row).schedule
    await store.inbox.accept(occurring(claim(row)))
    back = replace(moved, next_at=next_at, rev=moved.rev + 1)  # as after a clock that was put back
    await store.schedules.put(back)
    with pytest.raises(Conflict):
        await store.inbox.accept(replace(occurring(claim(back)), platform_key="again"))


async def test_a_schedule_changes_only_from_the_state_that_was_seen(store: Store) -> None:
    row = hourly()
    await store.schedules.put(row)
    await store.schedules.put(row)  # repeated: the answer was lost
    later = replace(row, next_at=7_000, rev=2)
    await store.schedules.put(later)
    with pytest.raises(Conflict):
        await store.schedules.put(replace(row, next_at=9_000, rev=2))
    assert await store.schedules.one("a") == later


async def test_a_command_makes_and_takes_back_schedules_with_its_answer(store: Store) -> None:
    session, epoch = await session_of(store)
    first = await store.inbox.accept(message("c1"))
    await store.sessions.respond(
        session, epoch, first.inbox_id, SessionChange(), [], [hourly("a"), hourly("b", next_at=400)]
    )
    assert [row.schedule for row in await store.schedules.of("chat", "reminder")] == ["b", "a"]
    assert [row.schedule for row in await store.schedules.due(999)] == ["b"]
    assert await store.schedules.next_occurrence() == 400
    second = await store.inbox.accept(message("c2"))
    gone = replace(hourly("b"), state=ScheduleState.CANCELLED, next_at=None, rev=2)
    with pytest.raises(Conflict):  # one of them has changed: neither is taken back, and the command is not done
        await store.sessions.respond(
            session, epoch, second.inbox_id, SessionChange(), [], [gone, replace(hourly("a"), rev=3)]
        )
    assert [row.schedule for row in await store.schedules.of("chat", "reminder")] == ["b", "a"]
    assert [row.id for row in await store.inbox.pending(session)] == [second.inbox_id]
    await store.sessions.respond(session, epoch, second.inbox_id, SessionChange(), [], [gone])
    assert [row.schedule for row in await store.schedules.of("chat", "reminder")] == ["a"]
    assert await store.schedules.next_occurrence() == 1_000


async def test_schedules_follow_a_chat_that_gets_another_id(store: Store) -> None:
    await store.schedules.put(hourly(key="telegram/1/7//"))
    for name, key in (("begins alike", "telegram/1/77//"), ("another account", "telegram/11/7//")):
        await store.schedules.put(hourly(name, key=key))
    await store.sessions.move_chat("telegram/1/", "7", "-1007")
    kept = [await store.schedules.one(name) for name in ("begins alike", "another account")]
    assert [row.session_key for row in kept if row is not None] == ["telegram/1/77//", "telegram/11/7//"]
    moved = await store.schedules.one("a")
    assert moved is not None
    assert (moved.surface, moved.session_key) == ("telegram/1/-1007/", "telegram/1/-1007//")
    with pytest.raises(Conflict):  # who saw it under its old name must look again
        await store.schedules.put(replace(hourly(key="telegram/1/7//"), rev=2))


async def test_what_is_over_is_forgotten_after_a_week(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        await store.schedules.put(hourly("done"))
        await store.inbox.accept(occurring(claim(hourly("done"), None)))
        await store.schedules.put(hourly("active"))
        await store.keeping.prune(clock.now)
        assert await store.schedules.one("done") is None
        assert await store.schedules.occurrences("done") == []
        assert await store.schedules.one("active") is not None


async def test_a_conversation_goes_on_in_the_moved_chat_unless_one_goes_on_there_already(store: Store) -> None:
    there, _ = await session_of(store, "telegram/1/-1007//")
    moved: dict[str, str] = {}
    for old, new in (("7", "-1007"), ("8", "-1008"), ("88", "-1088")):
        session, epoch = await session_of(store, f"telegram/1/{old}//")
        surface = f"telegram/1/{old}/"
        await store.deliveries.put(session, epoch, [DeliveryRow(surface, f"inbox:{old}", "b", 0, 1, b"{}", "h", old)])
        moved[new] = session
    for old, new in (("7", "-1007"), ("8", "-1008")):
        await store.sessions.move_chat("telegram/1/", old, new)
    found = [await store.sessions.by_key(f"telegram/1/{chat}//") for chat in ("-1007", "-1008", "88", "8")]
    assert [one.session if one is not None else "" for one in found] == [there, moved["-1008"], moved["-1088"], ""]
    shown = {one.row.surface for one in await store.deliveries.open()}
    assert shown == {"telegram/1/-1007/", "telegram/1/-1008/", "telegram/1/88/"}
