"""What is asked by time is found in one question, however much is stored, and is what a plain look at all of it would find."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator

import pytest_asyncio

from agent_core.store.store import Store
from tests.asked import asked_here
from tests.store.support import IDS, message, opened, row, session_of

STEP = 1000


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


async def turn(store: Store, session: str, epoch: int, begins: int, ends: int, exit_: str = "answered") -> str:
    """One that was closed at a time."""
    accepted = await store.inbox.accept(message(IDS.new("m"), "chat", at=begins))
    name = IDS.new("t")
    await store.turns.start(session, epoch, name, [accepted.inbox_id], row(0), begins, ends)
    await store.turns.close(session, epoch, name, [row(1)], exit_, ends)
    return name


async def test_the_first_message_of_a_time_is_found_in_one_question(store: Store) -> None:
    assert await store.inbox.near(5) == 1
    dice = random.Random(3)
    at, known = 100, list[tuple[int, int]]()
    for number in range(40):
        at += dice.choice((0, 0, 3, 50))
        accepted = await store.inbox.accept(message(f"m{number}", f"chat{number % 3}", at=at))
        known.append((accepted.inbox_id, at))
    with asked_here() as asked:
        times = sorted({0, at + 1, *(when + more for _, when in known for more in (-1, 0, 1))})
        for when in times:
            after = [one for one, received in known if received >= when]
            assert await store.inbox.near(when) == (after[0] if after else known[-1][0] + 1)
    assert len(asked) == len(times)


async def test_the_turns_of_a_time_are_found_in_one_question(store: Store) -> None:
    session, epoch = await session_of(store)
    spans: list[tuple[int, int]] = []
    for number in range(1, 23):
        begins, ends = number * STEP, number * STEP + STEP // 2
        await turn(store, session, epoch, begins, ends)
        spans.append((begins, ends))
    with asked_here() as asked:
        times = range(0, 24 * STEP, STEP // 4)
        for since in times:
            found = await store.turns.between(session, since, since + STEP)
            assert [(one.opened_at, one.closed_at) for one in found] == [
                (begins, ends) for begins, ends in spans if begins <= since + STEP and ends >= since
            ]
    assert len(asked) == len(times)
    assert [one.opened_at for one in await store.turns.between(session, 0, 99 * STEP, 2)] == [21 * STEP, 22 * STEP]
    assert await store.turns.between("s_none", 0, 99 * STEP) == []


async def test_a_triage_asks_no_more_of_many_turns_than_of_few(store: Store) -> None:
    session, epoch = await session_of(store)
    exits = ("answered", "handed_to_client", "stopped", "internal_error", "answered")
    names = [
        (await turn(store, session, epoch, number * STEP, number * STEP + 1, exit_), number * STEP + 1, exit_)
        for number, exit_ in enumerate(exits * 4, 1)
    ]
    last = await store.inbox.accept(message("refused", "chat", at=30 * STEP))
    await store.inbox.drop(last.inbox_id, "too_old")
    for since in (0, 5 * STEP, 18 * STEP + 1, 18 * STEP + 2, 99 * STEP):
        with asked_here() as asked:
            failed = await store.troubles.failures(since, ["answered", "handed_to_client", "stopped"])
            dropped = await store.inbox.dropped(since)
            count = await store.turns.count_closed(since)
        assert len(asked) == 4
        ours = [name for name, closed, exit_ in names if exit_ == "internal_error" and closed >= since]
        assert sorted(one.turn for one in failed) == sorted(ours)
        assert [one.reason for one in dropped][-1:] == (["too_old"] if since <= 30 * STEP else [])
        assert count == sum(closed >= since for _, closed, _ in names)
