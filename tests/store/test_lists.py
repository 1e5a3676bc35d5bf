"""A list leaves out what cannot be read of it, and says so; everything else is in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent_core.store.audit import AuditRow
from agent_core.store.database.asks import around
from agent_core.store.database.lines import PAGE_BYTES
from agent_core.store.errors import Damaged
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import SessionChange
from tests.storage.harm import JUNK, leaves
from tests.store.support import message, opened, row, turn_of

MANY = 40


def harmed(database: Path, *places: tuple[str, list[str]]) -> None:
    """The first page of a table that holds one of these words is overwritten."""
    pages = [next(page for word in holding for page in leaves(database, table, word)) for table, holding in places]
    with database.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * PAGE_BYTES)
            file.write(JUNK[:PAGE_BYTES])


def planned(number: int) -> ScheduleRow:
    name = f"remind:{number:03}"
    return ScheduleRow(
        name, "reminder", "k/a/b//", "k/a/b/", number, "once", f"{name} words".encode() * 20, 1_000 + number
    )


async def test_one_reminder_that_cannot_be_read_hides_no_other_and_the_due_ones_are_claimed(sqlite: str) -> None:
    async with opened(sqlite) as store:
        for number in range(MANY):
            await store.schedules.put(planned(number))
    harmed(Path(sqlite), ("schedules", [f"remind:{number:03}" for number in range(12, 30)]))
    async with opened(sqlite) as store:
        for found in (await store.schedules.of("k/a/b//", "reminder"), await store.schedules.due(10_000)):
            names = [one.schedule for one in found]
            assert names == sorted(names)
            assert MANY - 12 <= len(names) < MANY  # a page holds so many
            assert store.left_out("schedules")
        assert "remind:003" in names
        assert "remind:039" in names


async def test_turns_what_was_done_by_hand_and_people_are_listed_around_a_damaged_page(sqlite: str) -> None:
    async with opened(sqlite) as store:
        for number in range(MANY):
            await turn_of(store, f"chat{number}")
            await store.deliveries.act(AuditRow(f"a_{number:03}", number, "me", "forget", "x", "words " * 40))
        turns = [one.turn for one in await store.overview.turns(100)]
    harmed(Path(sqlite), ("turns", turns[15:25]), ("audit", [f"a_{number:03}" for number in range(12, 30)]))
    async with opened(sqlite) as store:
        for what, found in (
            ("turns", await store.overview.turns(100)),
            ("audit", await store.overview.audit(100)),
        ):
            assert store.left_out(what), what
            assert MANY / 2 < len(found) < MANY, what
            assert len(set(found)) == len(found)
        assert [one.turn for one in await store.overview.turns(3)] == turns[:3]
        assert [one.audit for one in await store.overview.audit(3)] == ["a_039", "a_038", "a_037"]


async def test_what_is_left_of_one_conversation_is_its_own(where: str) -> None:
    async with opened(where) as store:
        turns = {name: await turn_of(store, name) for name in ("one", "other")}
        waits = {name: await store.inbox.accept(message(f"waits in {name}", name)) for name in turns}
        for name, (session, _, turn) in turns.items():
            assert [one.turn for one in await store.left.turns(session)] == [turn]
            assert [one.inbox_id for one in await store.left.messages(session)] == [waits[name].inbox_id]


async def test_a_key_ends_as_it_is_written(where: str) -> None:
    async with opened(where) as store:
        first = await store.inbox.accept(message("a:1_2", "one"))
        await store.inbox.accept(message("a:1x2", "other"))
        last = await store.inbox.accept(message("b:1_2", "other"))
        found = await store.inbox.between(first.inbox_id, last.inbox_id, ends=":1_2")
        assert [one.id for one in found] == [first.inbox_id, last.inbox_id]
        found = await store.inbox.between(first.inbox_id, last.inbox_id, [last.session], ends=":1_2")
        assert [one.id for one in found] == [last.inbox_id]
        assert await store.inbox.between(first.inbox_id, first.inbox_id, ends="%2") == []


async def test_of_all_that_wait_those_are_told_that_wait_longest(where: str) -> None:
    clock = {"late": (90,), "first": (10, 70), "second": (50, 20, 60)}
    async with opened(where) as store:
        for key, times in clock.items():
            for at in times:
                await store.inbox.accept(message(f"{key} {at}", key, at=at))
        await turn_of(store, "over")  # what a turn has taken, or nobody will run, does not wait
        told = [(one.key, one.count, one.since) for one in await store.overview.waiting(9)]
        assert told == [("first", 2, 10), ("second", 3, 20), ("late", 1, 90)]
        assert [one.key for one in await store.overview.waiting(2)] == ["first", "second"]


async def test_each_channel_is_read_up_to_its_own_place(where: str) -> None:
    async with opened(where) as store:
        for account, channel, place in (("bot", "b", "2"), ("bot", "a", "1"), ("other", "a", "9")):
            await store.inbox.move_cursor(account, channel, place)
        assert [await store.inbox.cursor("bot", one) for one in ("a", "b", "c")] == ["1", "2", None]
        assert await store.inbox.cursor("other", "a") == "9"
        assert await store.inbox.cursors("bot") == [("a", "1"), ("b", "2")]


async def test_beside_turns_are_commands_that_are_done_and_messages_that_never_ran(where: str) -> None:
    async with opened(where) as store:
        numbers: dict[str, int] = {}
        for name, lane in (("done", "commands"), ("waits", "commands"), ("dropped", "normal"), ("new", "normal")):
            accepted = await store.inbox.accept(replace(message(name), lane=lane))
            numbers[name] = accepted.inbox_id
            session = accepted.session
        epoch = await store.sessions.claim(session)
        await store.sessions.respond(session, epoch, numbers["done"], SessionChange(), ())
        await store.inbox.drop(numbers["dropped"], "stop")
        found = await store.inbox.beside_turns(session, "commands", 10)
        assert [one.id for one in found] == [numbers["dropped"], numbers["done"]]


async def test_turns_of_a_time_are_those_that_were_open_in_it(where: str) -> None:
    async with opened(where) as store:
        session, epoch, first = await turn_of(store)
        await store.turns.close(session, epoch, first, [], "answered", 1_000)
        accepted = await store.inbox.accept(message("next"))
        await store.turns.start(session, epoch, "t_next", [accepted.inbox_id], row(0), 2_000, 9_000)
        for since, until, names in (
            (0, 50, []), (0, 100, [first]), (500, 600, [first]), (1_000, 1_999, [first]), (1_001, 1_999, []),
            (1_001, 2_000, ["t_next"]), (0, 5_000, [first, "t_next"]), (8_000, 9_000, ["t_next"]),
        ):  # fmt: skip
            found = [one.turn for one in await store.turns.between(session, since, until)]
            assert found == names, (since, until)


@given(st.lists(st.integers(0, 99), unique=True, max_size=20), st.sets(st.integers(0, 99)))
def test_around_what_cannot_be_read_all_else_is_found_and_each_key_that_was_lost_is_named(
    keys: list[int], odd: set[int]
) -> None:
    async def ask(some: Sequence[int]) -> Sequence[int]:
        if odd.intersection(some):
            raise Damaged("a page of it")
        return some

    found, lost = asyncio.run(around(keys, ask))
    assert (found, lost) == ([one for one in keys if one not in odd], [one for one in keys if one in odd])


async def test_the_messages_next_to_a_number_are_told_with_their_times(sqlite: str) -> None:
    async with opened(sqlite) as store:
        (first, second, third) = [
            (await store.inbox.accept(message(f"m{at}", at=at))).inbox_id for at in (100, 200, 300)
        ]
        assert await store.inbox.beside(second) == ((first, 100), (third, 300))
        assert await store.inbox.beside(first) == (None, (second, 200))
        assert await store.inbox.beside(third) == ((second, 200), None)
