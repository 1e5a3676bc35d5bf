"""The laws of what people send: whoever is told to send it again in some seconds gets it through then, and only codes that count take a place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.messages import InputMessage
from agent_core.ports import SystemIds
from agent_core.store.people.rows import LinkCode, LinkRow, PersonRow, PersonState, PlaceRow
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from gateway.people.access import MOST_PENDING, rules
from gateway.people.members import HELD_MOST, AccountRules, Members
from tests.store.support import FakeClock, opened, session_of

ACCOUNT = "telegram/1"


def said(key: str, person: str = "7") -> FromChat:
    origin = ChatOrigin(ChatAddress("telegram", "1", person), ChatKind.PRIVATE, ChatPerson(person, "Ada"))
    return FromChat(
        account=ACCOUNT, platform_key=key, session=SessionKey("telegram", "1", person), input=(InputMessage("hi"),),
        surface="telegram", memory_scope="s", chat=origin,
    )  # fmt: skip


async def nobody_cut(_: object) -> None: ...


def members_of(clock: FakeClock, people: list[PersonRow], *, open_to_all: bool, per_minute: int = 0) -> Members:
    members = Members(cast("Any", SimpleNamespace()), clock, SystemIds(clock), nobody_cut)
    members.add_account(
        ACCOUNT, AccountRules(rules((), (), open_to_all=open_to_all, pairing=True), per_minute=per_minute)
    )
    known: Any = members
    for one in people:
        known._know(one)
    return members


@given(st.lists(st.integers(0, 30_000), min_size=1, max_size=8), st.integers(1, 3))
@example([0, 0], 1)
@example([0, 1], 1)
@example([0, 59_001], 1)
def test_what_was_too_fast_is_taken_after_as_many_seconds_as_were_told(steps: list[int], limit: int) -> None:
    clock = FakeClock()
    members = members_of(clock, [], open_to_all=True, per_minute=limit)
    for number in range(limit + HELD_MOST):  # those that are held have their time as well
        members.refusal(said(f"first {number}"), free=False)
    for number, step in enumerate(steps):
        clock.now += step
        refused = members.refusal(said(f"k{number}"), free=False)
        if refused is None or refused.later_ms:
            continue
        (seconds,) = re.findall(r"in (\d+) s", refused.words)
        assert int(seconds) >= 1, "at once is when it was refused"
        again = clock.now
        clock.now += int(seconds) * 1000
        assert members.refusal(said(f"again {number}"), free=False) is None
        clock.now = max(clock.now, again)


def test_a_message_counts_when_it_was_said_and_not_when_it_was_brought() -> None:
    clock = FakeClock()
    clock.now += 7_200_000
    members = members_of(clock, [], open_to_all=True, per_minute=2)
    for minutes in range(10, 0, -1):  # all of them come now, after an outage
        for _ in range(2):  # a message that is taken for new, and then looked up
            clock.now += 1
            at = clock.now_ms() - minutes * 60_000
            assert members.refusal(said(f"k{minutes}"), free=False, said_at=at) is None
    burst = [members.refusal(said(f"burst {n}"), free=False, said_at=clock.now_ms() - 3_600_000) for n in range(3)]
    assert [one is None for one in burst] == [True, True, False], "who was too fast then was too fast"
    assert members.refusal(said("now"), free=False, said_at=clock.now_ms() + 5_000) is None, "by a clock that is ahead"


def test_what_other_gateways_have_let_through_counts_here() -> None:
    members = members_of(FakeClock(), [], open_to_all=True, per_minute=3)
    for number in range(2):
        members.met(ACCOUNT, "7", f"there {number}")
        members.met(ACCOUNT, "7", f"there {number}")  # brought again
    members.met("telegram/2", "7", "another account")
    assert members.refusal(said("here"), free=False) is None
    assert members.refusal(said("too fast"), free=False) is not None
    assert members.refusal(said("another's", person="8"), free=False) is None


@given(st.integers(0, MOST_PENDING), st.integers(-2, 2))
@example(MOST_PENDING, 0)
@example(MOST_PENDING, 1)
def test_only_codes_that_still_count_take_a_place(waiting: int, left_ms: int) -> None:
    clock = FakeClock()
    row = PersonRow(ACCOUNT, "", PersonState.PENDING, code="AAAA", code_until=clock.now + left_ms)
    people = [replace(row, person=f"p{number}") for number in range(waiting)]
    refused = members_of(clock, people, open_to_all=False).refusal(said("k"), free=False)
    assert refused is not None
    assert refused.person is not None
    full = waiting >= MOST_PENDING and left_ms > 0
    assert refused.person.state is (PersonState.REFUSED if full else PersonState.PENDING)


def test_strangers_of_one_account_take_no_place_of_another_one() -> None:
    clock = FakeClock()
    row = PersonRow("discord/2", "", PersonState.PENDING, code="AAAA", code_until=clock.now + 1)
    people = [replace(row, person=f"p{number}") for number in range(MOST_PENDING)]
    refused = members_of(clock, people, open_to_all=False).refusal(said("k"), free=False)
    assert refused is not None
    assert refused.person is not None
    assert refused.person.state is PersonState.PENDING


def test_what_proved_to_be_a_redelivery_leaves_its_place_to_the_next_message() -> None:
    members = members_of(FakeClock(), [], open_to_all=True, per_minute=1)
    first = said("a")
    assert not members.has_counted(first.chat, "a")
    assert members.refusal(first, free=False) is None
    assert members.has_counted(first.chat, "a")
    members.not_counted(first.chat, "a")
    assert members.refusal(said("b"), free=False) is None
    refused = members.refusal(said("c"), free=False)
    assert refused is not None
    assert refused.later_ms


class Tables:
    """What is stored of people, by other gateways too."""

    def __init__(self) -> None:
        self.accounts, self.chats, self.joined = [*PEOPLE], [*PLACES], [*LINKS]

    async def all(self) -> list[PersonRow]:
        return self.accounts

    async def places(self) -> list[PlaceRow]:
        return self.chats

    async def links(self) -> list[LinkRow]:
        return self.joined


HERE = SessionKey("telegram", "1", "7")
THERE = SessionKey("discord", "2", "8")
PEOPLE = [PersonRow(ACCOUNT, "7", PersonState.APPROVED, at=1), PersonRow("discord/2", "8", PersonState.APPROVED, at=1)]
PLACES = [PlaceRow(HERE.text(), ACCOUNT, "7", THERE.text()), PlaceRow(THERE.text(), "discord/2", "8")]
LINKS = [LinkRow(ACCOUNT, "7", "h1"), LinkRow("discord/2", "8", "h1")]


@pytest.mark.parametrize("how", ["nothing", "shut out", "shut out there", "taken out"])
async def test_whoever_another_gateway_shut_out_or_parted_goes_on_with_nothing_of_the_others_here(how: str) -> None:
    cut: list[PlaceRow] = []
    tables = Tables()

    async def noted(rows: Sequence[PlaceRow]) -> None:
        cut.extend(rows)

    clock = FakeClock()
    members = Members(cast("Any", SimpleNamespace(people=tables)), clock, SystemIds(clock), noted, link=True)
    for account in (ACCOUNT, "discord/2"):
        members.add_account(account, AccountRules(rules((), (), open_to_all=False, pairing=True)))
    await members.open()
    origin = said("k").chat
    assert members.directory.session_of(HERE, origin) == THERE
    match how:
        case "shut out":
            tables.accounts[0] = replace(PEOPLE[0], state=PersonState.REVOKED, at=2)
        case "shut out there":
            tables.accounts[1] = replace(PEOPLE[1], state=PersonState.REVOKED, at=2)
        case "taken out":
            tables.joined = LINKS[1:]
        case _:
            pass
    await members.learn()
    over = how != "nothing"
    assert [row.place for row in cut] == ([HERE.text()] if over else [])
    assert members.directory.session_of(HERE, origin) == (HERE if over else THERE)


def test_what_is_taken_or_held_counts_at_the_other_gateways_and_what_is_refused_does_not() -> None:
    members, told = members_of(FakeClock(), [], open_to_all=True, per_minute=2), list[str]()
    members.told = lambda _account, _person, key: told.append(key)
    taken: list[str] = []
    for number in range(2 + 2 * HELD_MOST):
        refused = members.refusal(said(f"k{number}"), free=False)
        if refused is None or refused.later_ms:
            taken.append(f"k{number}")
    assert members.refusal(said("free"), free=True) is None
    assert len(taken) == 2 + HELD_MOST
    assert told == taken


@pytest.mark.parametrize("how", ["nothing", "shut out", "taken out", "let go"])
async def test_what_another_gateway_has_stored_of_who_is_parted_is_cut_off_here_too(tmp_path: Path, how: str) -> None:
    """In the store nothing goes on any more for them by then. Who let go of a conversation by themselves is not parted from it."""
    clock, cut = FakeClock(), list[PlaceRow]()

    async def noted(rows: Sequence[PlaceRow]) -> None:
        cut.extend(rows)

    async with opened(str(tmp_path / "db"), clock) as store:
        for person in PEOPLE:
            await store.people.put(person)
        for place in PLACES:
            await store.people.put_place(place)
        origin = said("k").chat
        there = LinkCode("ABCDEFGHJK", "discord/2", "8", "Ada", "", "discord/2/8/", clock.now + 60_000)
        await store.people.put_code(there)
        await store.people.redeem(there.code, LinkRow(ACCOUNT, "7", "h1"), "m1", 8)
        members = Members(store, clock, SystemIds(clock), noted, link=True)
        for account in (ACCOUNT, "discord/2"):
            members.add_account(account, AccountRules(rules((), (), open_to_all=False, pairing=True)))
        await members.open()
        assert members.directory.session_of(HERE, origin) == THERE
        match how:
            case "shut out":
                await store.people.put(replace(PEOPLE[0], state=PersonState.REVOKED, at=2))
            case "taken out":
                await store.people.unlink(ACCOUNT, "7")
            case "let go":
                session, epoch = await session_of(store)
                await store.sessions.change(session, epoch, SessionChange(place=PlaceChange(HERE.text(), None)))
            case _:
                pass
        await members.learn()
        assert [row.place for row in cut] == ([HERE.text()] if how in ("shut out", "taken out") else [])
        assert [row.continues for row in cut] == [THERE.text()] * len(cut), "what they were in"
        assert members.directory.session_of(HERE, origin) == (THERE if how == "nothing" else HERE)


@pytest.mark.parametrize("decided", [PersonState.APPROVED, PersonState.REVOKED])
async def test_whoever_is_decided_about_while_a_message_of_theirs_is_refused_stays_so(decided: PersonState) -> None:
    clock, stored = FakeClock(), list[PersonState]()
    members = members_of(clock, [], open_to_all=False)

    async def put(row: PersonRow) -> None:
        stored.append(row.state)

    cast("Any", members)._store = SimpleNamespace(people=SimpleNamespace(put=put))
    message = said("k")
    refused = members.refusal(message, free=False)
    assert refused is not None
    assert refused.person is not None
    await members.put(replace(refused.person, state=decided))  # while it is stored that the message was refused
    told = await members.noted(message.chat, refused)
    assert stored == [decided], "it was taken back by what was noted of the message"
    assert ("let in" in told) == (decided is PersonState.APPROVED)
    assert (members.refusal(said("k2"), free=False) is None) == (decided is PersonState.APPROVED)
