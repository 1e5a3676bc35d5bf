"""Failures and incidents in the store, on both engines."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest_asyncio

from agent_core.store.people.rows import LinkCode, LinkRow
from agent_core.store.store import Store
from agent_core.store.troubles.rows import FORESEEN, IncidentRow, IncidentState, RemedyCount, TroubleCount, TroubleRow
from tests.store.support import IDS, message, opened, row, session_of, turn_of


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


TROUBLE = TroubleRow(
    number=0, at=100, conversation="", fingerprint="f", code="provider_down", cause="server_error", endpoint="host",
    model="m1", tool="", size="-", chars=0, rung="next_route", outcome="helped", ended=False,
)  # fmt: skip
INCIDENT = IncidentRow(
    incident="i1", fingerprint="f", state=IncidentState.OPEN, code="provider_down", endpoint="host", model="m1",
    tool="", opened_at=100, last_at=100, conversations=2, turns=2,
)  # fmt: skip


async def closed(store: Store, key: str, *troubles: TroubleRow) -> tuple[str, str]:
    session, epoch, turn = await turn_of(store, key)
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300, troubles=troubles)
    return session, turn


async def test_what_went_wrong_is_stored_with_the_end_and_once(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    second = replace(TROUBLE, number=1, at=110, conversation="elsewhere", ended=True)
    for _ in range(2):
        await store.turns.close(session, epoch, turn, [row(1)], "answered", 300, troubles=[TROUBLE, second])
    assert await store.troubles.of(session, 0) == [(turn, replace(TROUBLE, conversation=session))]
    assert await store.troubles.of("elsewhere", 0) == [(turn, second)]
    assert await store.troubles.of("elsewhere", 111) == []


async def test_counts_leave_out_what_a_retry_cured(store: Store) -> None:
    await closed(store, "a", TROUBLE, replace(TROUBLE, number=1, at=120, outcome="not_helped", ended=True))
    await closed(store, "b", replace(TROUBLE, at=150))
    await closed(store, "c", replace(TROUBLE, rung="retry"), replace(TROUBLE, number=1, code="answered"))
    helped, not_helped = RemedyCount("next_route", "helped", 2), RemedyCount("next_route", "not_helped", 1)
    retried = RemedyCount("retry", "helped", 1)
    assert await store.troubles.counts(0, hiccups=["retry"]) == [
        TroubleCount("f", 2, 2, 1, 100, 150, (helped, not_helped, retried), 1)
    ]
    assert await store.troubles.counts(0, ["other"]) == []
    assert [count.conversations for count in await store.troubles.counts(130, hiccups=["retry"])] == [1]


async def test_what_was_tried_beforehand_counts_as_a_try_and_as_no_failure(store: Store) -> None:
    await closed(store, "a", replace(TROUBLE, cause=FORESEEN))
    assert await store.troubles.counts(0) == []
    assert await store.troubles.people_of("f", 0) == 0
    await closed(store, "b", replace(TROUBLE, outcome="not_helped"))
    (count,) = await store.troubles.counts(0)
    assert (count.turns, count.remedies) == (
        1,
        (RemedyCount("next_route", "helped", 1), RemedyCount("next_route", "not_helped", 1)),
    )
    assert await store.troubles.failures(0, ["answered"]) != []
    assert [one.turn for one in await store.troubles.failures(0, ["answered"])] == [
        turn for turn, _ in await store.troubles.by(fingerprint="f")
    ]


async def met(store: Store, key: str, *people: str) -> None:
    """A turn that these people asked met the failure."""
    _, epoch = await session_of(store, key)
    taken = [await store.inbox.accept(replace(message(IDS.new("m"), key), person=person)) for person in people]
    turn = IDS.new("t")
    await store.turns.start(taken[0].session, epoch, turn, [one.inbox_id for one in taken], row(0), 100, 200)
    await store.turns.close(
        taken[0].session, epoch, turn, [row(1)], "answered", 300, troubles=[replace(TROUBLE, rung="")]
    )


async def counted(store: Store) -> tuple[int, int, int]:
    (count,) = await store.troubles.counts(0)
    return count.conversations, count.people, await store.troubles.people_of("f", 0)


async def test_a_person_with_many_conversations_is_one_and_so_are_all_who_do_not_say_who_they_are(store: Store) -> None:
    for key in ("a", "b", "c"):
        await met(store, key, "ann")
    assert await counted(store) == (3, 1, 1)
    for key in ("d", "e"):
        await met(store, key, "")
    assert await counted(store) == (5, 2, 2)
    await met(store, "f", "bob")
    assert await counted(store) == (6, 3, 3)


async def test_accounts_that_are_joined_are_one_person(store: Store) -> None:
    await met(store, "a", "ann")
    await met(store, "b", "anna")
    assert (await counted(store))[2] == 2
    await store.people.put_code(LinkCode("c0de", "bot", "ann", "Ann", "ann", "bot/ann/", 10**15))
    await store.people.redeem("c0de", LinkRow("bot", "anna", "h_1", "Anna", "anna"), "m", 5)
    assert (await counted(store))[2] == 1


async def test_a_turn_that_two_people_asked_is_of_both(store: Store) -> None:
    await met(store, "a", "ann", "bob")
    await met(store, "b", "ann")
    assert (await counted(store))[2] == 2


async def test_an_incident_opens_once_and_closes_once(store: Store) -> None:
    assert await store.troubles.put_incident(INCIDENT)
    assert not await store.troubles.put_incident(replace(INCIDENT, conversations=5))
    assert not await store.troubles.put_incident(replace(INCIDENT, incident="i2"))
    assert [one.conversations for one in await store.troubles.incidents()] == [5]
    over = replace(INCIDENT, state=IncidentState.CLOSED, closed_at=900)
    assert await store.troubles.put_incident(over)
    assert not await store.troubles.put_incident(over)
    assert await store.troubles.incidents() == []
    assert await store.troubles.incidents(open_only=False) == [over]
    assert await store.troubles.put_incident(replace(INCIDENT, incident="i3"))
