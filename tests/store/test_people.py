"""Joined accounts, private chats and what goes on in them: what the store promises of them, on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
import pytest_asyncio

from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, PersonRow, PersonState, PlaceRow
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Fenced, Store
from tests.store.support import FakeClock, message, opened, row, session_of

MOST = 3


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_000)


@pytest_asyncio.fixture
async def store(where: str, clock: FakeClock) -> AsyncGenerator[Store]:
    async with opened(where, clock) as opened_store:
        yield opened_store


def code(text: str, person: str = "ada", until: int = 9_000) -> LinkCode:
    return LinkCode(text, "telegram/1", person, person.title(), person, f"telegram/1/{person}/", until)


def taker(person: str, who: str = "h_new") -> LinkRow:
    return LinkRow("discord/2", person, who, person.title(), person)


async def outcome(store: Store, text: str, person: str, said: str = "m1") -> LinkOutcome:
    return (await store.people.redeem(text, taker(person, f"h_{person}"), said, MOST)).outcome


async def who_of(store: Store) -> dict[tuple[str, str], str]:
    return {(one.account, one.person): one.who for one in await store.people.links()}


async def test_a_code_joins_two_accounts_once(store: Store) -> None:
    await store.people.put_code(code("AAAA"))
    found = await store.people.redeem("AAAA", taker("ada_l"), "m1", MOST)
    assert (found.outcome, found.code) == (LinkOutcome.JOINED, code("AAAA"))
    assert await who_of(store) == {("telegram/1", "ada"): "h_new", ("discord/2", "ada_l"): "h_new"}
    assert [(one.name, one.at) for one in await store.people.links()] == [("Ada_L", 1_000), ("Ada", 1_000)]
    assert await outcome(store, "AAAA", "eve", "m2") is LinkOutcome.UNKNOWN
    assert await outcome(store, "AAAA", "ada_l", "m3") is LinkOutcome.UNKNOWN
    assert await outcome(store, "AAAA", "ada_l") is LinkOutcome.JOINED  # the same message, after a kill in between
    assert len(await store.people.links()) == 2


async def test_a_code_is_over_with_its_time_and_with_the_next_one(store: Store, clock: FakeClock) -> None:
    await store.people.put_code(code("AAAA"))
    await store.people.put_code(code("BBBB"))
    await store.people.put_code(code("CCCC", "bob"))  # another's code is not touched
    assert await outcome(store, "AAAA", "eve") is LinkOutcome.UNKNOWN
    clock.now = 9_000
    assert await outcome(store, "BBBB", "eve") is LinkOutcome.UNKNOWN
    clock.now = 8_999
    assert await outcome(store, "BBBB", "eve") is LinkOutcome.JOINED
    assert await outcome(store, "CCCC", "cyd") is LinkOutcome.JOINED


async def test_an_account_is_one_persons(store: Store) -> None:
    await store.people.put_code(code("AAAA"))
    own = LinkRow("telegram/1", "ada", "h_x")
    assert (await store.people.redeem("AAAA", own, "m0", MOST)).outcome is LinkOutcome.OWN
    assert await outcome(store, "AAAA", "ada_l") is LinkOutcome.JOINED
    await store.people.put_code(code("BBBB"))
    assert await outcome(store, "BBBB", "ada_l", "m2") is LinkOutcome.SAME
    await store.people.put_code(code("CCCC", "bob"))
    assert await outcome(store, "CCCC", "bob_b", "m3") is LinkOutcome.JOINED
    assert await outcome(store, "BBBB", "bob_b", "m4") is LinkOutcome.ELSEWHERE
    assert await outcome(store, "BBBB", "third", "m5") is LinkOutcome.JOINED  # the code was not used up by that
    await store.people.put_code(code("DDDD"))
    assert await outcome(store, "DDDD", "fourth", "m6") is LinkOutcome.FULL
    assert set((await who_of(store)).values()) == {"h_ada_l", "h_bob_b"}


async def test_of_many_who_type_a_code_at_once_one_is_joined(store: Store) -> None:
    await store.people.put_code(code("AAAA"))
    found = await asyncio.gather(*(outcome(store, "AAAA", f"p{n}", f"m{n}") for n in range(8)))
    assert sorted(found) == [LinkOutcome.JOINED] + [LinkOutcome.UNKNOWN] * 7
    assert len(await store.people.links()) == 2


async def test_two_nodes_join_with_one_code_once(postgres: str) -> None:
    async with opened(postgres, FakeClock(1_000)) as one, opened(postgres, FakeClock(1_000)) as two:
        for n in range(10):
            await one.people.put_code(code(f"CODE{n}", f"giver{n}"))
            found = await asyncio.gather(
                outcome(one, f"CODE{n}", f"left{n}", f"l{n}"), outcome(two, f"CODE{n}", f"right{n}", f"r{n}")
            )
            assert sorted(found) == [LinkOutcome.JOINED, LinkOutcome.UNKNOWN]
            # And one account that types two codes at once is one person's.
            await one.people.put_code(code(f"X{n}", f"x{n}"))
            await one.people.put_code(code(f"Y{n}", f"y{n}"))
            await asyncio.gather(outcome(one, f"X{n}", f"z{n}", f"x{n}"), outcome(two, f"Y{n}", f"z{n}", f"y{n}"))
            members = await who_of(one)
            assert (
                len({members["discord/2", f"z{n}"], members["telegram/1", f"x{n}"], members["telegram/1", f"y{n}"]})
                == 1
            )


def place(name: str, account: str, person: str, continues: str | None = None) -> PlaceRow:
    return PlaceRow(name, account, person, continues, 5)


async def point(store: Store, name: str, continues: str | None) -> None:
    session, epoch = await session_of(store, f"s-{name}")
    await store.sessions.change(session, epoch, SessionChange(place=PlaceChange(name, continues)))


async def continued(store: Store) -> dict[str, str | None]:
    return {one.place: one.continues for one in await store.people.places()}


async def three_joined(store: Store) -> None:
    """Ada with her Telegram, Discord and a third account; each continues what the next one has."""
    await store.people.put_code(code("AAAA"))
    assert await outcome(store, "AAAA", "ada_l") is LinkOutcome.JOINED
    await store.people.put_code(code("BBBB"))
    assert await outcome(store, "BBBB", "third", "m2") is LinkOutcome.JOINED
    for name, account, person in (
        ("t", "telegram/1", "ada"), ("t2", "telegram/1", "ada"), ("d", "discord/2", "ada_l"), ("3", "discord/2", "third"),
    ):  # fmt: skip
        await store.people.put_place(place(name, account, person))


async def test_who_is_taken_out_reaches_nothing_and_is_not_reached(store: Store) -> None:
    await three_joined(store)
    await point(store, "t", "t2")
    await point(store, "t2", "d")
    await point(store, "d", "3")
    await point(store, "3", "d")
    await store.people.put_code(code("CCCC"))
    await store.people.unlink("telegram/1", "ada")
    assert await continued(store) == {"t": "t2", "t2": None, "d": "3", "3": "d"}
    assert set(await who_of(store)) == {("discord/2", "ada_l"), ("discord/2", "third")}
    assert await outcome(store, "CCCC", "eve", "m9") is LinkOutcome.UNKNOWN
    await store.people.unlink("discord/2", "third")
    assert await continued(store) == {"t": "t2", "t2": None, "d": None, "3": None}
    # Who is left alone may be joined with anybody.
    await store.people.put_code(code("DDDD", "bob"))
    assert await outcome(store, "DDDD", "ada_l", "m10") is LinkOutcome.JOINED


async def test_who_is_revoked_is_taken_out_in_the_same_commit(store: Store) -> None:
    await three_joined(store)
    await point(store, "t", "d")
    row_ = PersonRow("telegram/1", "ada", PersonState.APPROVED, "Ada")
    await store.people.put(row_)
    assert len(await store.people.links()) == 3
    await store.people.put(replace(row_, state=PersonState.REVOKED))
    assert set(await who_of(store)) == {("discord/2", "ada_l"), ("discord/2", "third")}
    assert (await continued(store))["t"] is None
    await store.people.put(row_)
    assert len(await store.people.links()) == 2


async def test_a_place_stays_whose_it_was_first(store: Store) -> None:
    await store.people.put_place(place("p", "a", "ada"))
    await store.people.put_place(place("p", "a", "eve"))
    assert await store.people.places() == [place("p", "a", "ada")]


async def test_what_goes_on_in_a_place_is_stored_with_the_answer_or_not_at_all(store: Store) -> None:
    await store.people.put_place(place("p", "a", "ada"))
    session, epoch = await session_of(store)
    command = await store.inbox.accept(message("cmd"))
    change = SessionChange(place=PlaceChange("p", "q"))
    with pytest.raises(Fenced):
        await store.sessions.respond(session, epoch + 1, command.inbox_id, change, [])
    assert await continued(store) == {"p": None}
    await store.sessions.respond(session, epoch, command.inbox_id, change, [])
    assert await continued(store) == {"p": "q"}
    await store.sessions.change(session, epoch, SessionChange(place=PlaceChange("p", None)))
    await store.sessions.respond(session, epoch, command.inbox_id, change, [])  # brought again: it was done long ago
    assert await continued(store) == {"p": None}


async def turn(store: Store, key: str, name: str, at: int) -> tuple[str, int]:
    accepted = await store.inbox.accept(message(f"m-{name}", key))
    epoch = await store.sessions.claim(accepted.session)
    await store.turns.start(accepted.session, epoch, name, [accepted.inbox_id], row(0, name.encode()), at, at + 100)
    await store.turns.close(accepted.session, epoch, name, [row(1)], "answered", at + 10)
    return accepted.session, epoch


async def test_conversations_are_those_that_hold_something(store: Store) -> None:
    session, epoch = await turn(store, "one", "t1", 100)
    await turn(store, "one", "t2", 500)
    await turn(store, "two", "t3", 300)
    await turn(store, "else", "t4", 900)
    await session_of(store, "empty")
    found = await store.sessions.conversations(["one", "two", "empty", "none"], 9)
    assert [(one.key, one.at, one.body) for one in found] == [("one", 510, b"t1"), ("two", 310, b"t3")]
    assert [one.key for one in await store.sessions.conversations(["one", "two"], 1)] == ["one"]
    await store.sessions.change(session, epoch, SessionChange(undo="t2"))
    assert [(one.key, one.at) for one in await store.sessions.conversations(["one", "two"], 9)] == [
        ("two", 310),
        ("one", 110),
    ]
    await store.sessions.change(session, epoch, SessionChange(forget=True))
    assert [one.key for one in await store.sessions.conversations(["one", "two"], 9)] == ["two"]
    await turn(store, "one", "t5", 700)
    assert [(one.key, one.body) for one in await store.sessions.conversations(["one"], 9)] == [("one", b"t5")]


async def test_codes_that_are_long_over_are_pruned(store: Store, clock: FakeClock) -> None:
    await store.people.put_code(code("AAAA"))
    assert await outcome(store, "AAAA", "ada_l") is LinkOutcome.JOINED
    clock.now = 8 * 24 * 3_600_000
    await store.keeping.prune(clock.now)
    assert await outcome(store, "AAAA", "ada_l") is LinkOutcome.UNKNOWN
    assert len(await store.people.links()) == 2


async def test_who_spoke_is_known_by_the_last_time(store: Store) -> None:
    for at, account, person in ((100, "api", "ada"), (300, "web", "ben"), (400, "api", "ada"), (500, "web", "")):
        chat = f"chat-{at}"
        _, epoch = await session_of(store, chat)
        said = await store.inbox.accept(replace(message(f"m{at}", chat), account=account, person=person))
        await store.turns.start(said.session, epoch, f"t{at}", [said.inbox_id], row(0), at, at + 100)
    spoke = [(one.account, one.person, one.state, one.at) for one in await store.people.spoke()]
    assert spoke == [("api", "ada", PersonState.SPOKE, 400), ("web", "ben", PersonState.SPOKE, 300)]


async def test_a_person_has_so_many_accounts_and_no_more(store: Store) -> None:
    for number in range(1, MOST + 1):
        await store.people.put_code(code(f"C{number}"))
        expected = LinkOutcome.JOINED if number < MOST else LinkOutcome.FULL
        assert await outcome(store, f"C{number}", f"other{number}", f"m{number}") is expected
    assert len(await store.people.links()) == MOST
