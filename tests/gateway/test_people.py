"""The laws of people with several accounts: who reaches what, what a code is, how often one may be wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.ports import SystemIds
from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, PlaceRow
from agent_core.store.sessions.rows import ConversationRow
from gateway.commands.registry import COMMANDS, help_words, menu
from gateway.people.access import typed_code
from gateway.people.directory import PeopleDirectory
from gateway.people.linking import (
    CODE_CHARS,
    CODE_LIFE_MS,
    WRONG_MOST,
    Account,
    Conversation,
    Tries,
    accounts_words,
    age_words,
    goes_on,
    joined,
    list_words,
    new_code,
    reach,
    redeemed_words,
    shown_code,
)
from tests.store.support import FakeClock

ACCOUNTS = st.sampled_from([("telegram/1", "1"), ("telegram/1", "2"), ("discord/2", "1"), ("slack/T", "U")])
NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, PlaceRow], list[LinkRow], frozenset[Account]]:
    """Places, links, and the accounts that may not talk; also with references that lead nowhere."""
    owners = draw(st.dictionaries(st.sampled_from(NAMES), ACCOUNTS))
    places = {name: PlaceRow(name, *owner, draw(st.none() | st.sampled_from(NAMES))) for name, owner in owners.items()}
    people = draw(st.dictionaries(ACCOUNTS, st.sampled_from(["h1", "h2"])))
    links = [LinkRow(account, person, who) for (account, person), who in people.items()]
    return places, links, draw(st.frozensets(ACCOUNTS, max_size=2))


def may(shut_out: frozenset[Account], link: LinkRow) -> bool:
    return (link.account, link.person) not in shut_out


@given(worlds(), st.sampled_from(NAMES), ACCOUNTS)
def test_what_goes_on_is_ones_own_or_a_joined_accounts(
    world: tuple[Mapping[str, PlaceRow], list[LinkRow], frozenset[Account]], name: str, me: Account
) -> None:
    places, links, shut_out = world
    found = goes_on(name, me, places, links, lambda link: may(shut_out, link))
    if found == name:
        return
    here, there = places[name], places[found]
    assert (here.account, here.person) == me  # nothing of somebody else's goes on for who writes in their chat
    owner = (there.account, there.person)
    if owner != me:
        who = {(one.account, one.person): one.who for one in links}
        assert who[owner] == who[me]
        assert owner not in shut_out
        assert me not in shut_out


def test_what_somebody_goes_on_with_in_a_chat_goes_on_for_nobody_else_who_writes_there() -> None:
    me, also_me, stranger, at_home = ("telegram/1", "1"), ("telegram/1", "2"), ("telegram/1", "3"), ("discord/2", "1")
    places = {"a": PlaceRow("a", *me, continues="b"), "b": PlaceRow("b", *at_home), "c": PlaceRow("c", *me)}
    links = [LinkRow(*one, "h1") for one in (me, also_me, at_home)]
    found = {(place, who): goes_on(place, who, places, links, lambda _: True)
             for place in places for who in (me, also_me, stranger)}  # fmt: skip
    elsewhere = {named: goes for named, goes in found.items() if goes != named[0]}
    assert elsewhere == {("a", me): "b"}
    assert goes_on("a", me, places, links, lambda link: link.account != "discord/2") == "a", "who is shut out is left"


@given(worlds(), ACCOUNTS, ACCOUNTS)
def test_reach_is_mutual(
    world: tuple[Mapping[str, PlaceRow], list[LinkRow], frozenset[Account]], one: Account, two: Account
) -> None:
    _, links, shut_out = world

    def counts(link: LinkRow) -> bool:
        return may(shut_out, link)

    assert one in reach(links, one, counts)
    assert (two in reach(links, one, counts)) == (one in reach(links, two, counts))
    if two in reach(links, one, counts):
        assert reach(links, one, counts) == reach(links, two, counts)
    assert {(row.account, row.person) for row in joined(links, one, counts)} in (set(), set(reach(links, one, counts)))


@given(worlds(), ACCOUNTS)
def test_who_is_shut_out_reaches_nobody_and_is_reached_by_nobody(
    world: tuple[Mapping[str, PlaceRow], list[LinkRow], frozenset[Account]], out: Account
) -> None:
    _, links, _ = world
    shut = frozenset({out})
    assert reach(links, out, lambda link: may(shut, link)) == {out}
    for row in links:
        me = (row.account, row.person)
        assert me == out or out not in reach(links, me, lambda link: may(shut, link))


@given(st.integers(0, 2**63 - 1), st.sampled_from([str.lower, str.upper, str.title]), st.booleans())
def test_a_code_is_read_as_it_was_shown(seed: int, case: object, spaced: bool) -> None:
    code = new_code(seed)
    assert len(code) == CODE_CHARS
    assert callable(case)
    shown = str(case(shown_code(code)))
    assert typed_code(f"  {shown.replace('-', ' ') if spaced else shown} ") == code


@given(st.sets(st.integers(0, 2**50 - 1), min_size=2, max_size=50))
def test_different_bits_give_different_codes(seeds: set[int]) -> None:
    assert len({new_code(seed) for seed in seeds}) == len(seeds)


@given(st.lists(st.integers(0, CODE_LIFE_MS), max_size=60))
def test_nobody_is_wrong_more_often_than_that_in_a_codes_life(steps: list[int]) -> None:
    now, tries, tried = 0, Tries(), list[int]()
    for step in steps:
        now += step
        if not tries.wait_ms(now):
            tries = tries.wrong(now)
            tried.append(now)
        else:
            assert now + tries.wait_ms(now) == tried[-WRONG_MOST] + CODE_LIFE_MS, (
                "until the first of them counts no more"
            )
            assert not tries.wait_ms(now + tries.wait_ms(now))
    for begin in tried:
        assert sum(begin <= at < begin + CODE_LIFE_MS for at in tried) <= WRONG_MOST


KEYS = st.builds(SessionKey, *[st.text("ab/%", max_size=4)] * 5)


@given(KEYS)
def test_a_key_can_be_read_back(key: SessionKey) -> None:
    assert SessionKey.of(key.text()) == key


def test_what_is_said() -> None:
    own, other = (
        SessionKey("discord", "2", "9").text(),
        SessionKey("telegram", "1", "7", "3").text(),
    )
    found = [Conversation(other, 0, "Plan the trip"), Conversation(own, 0, "Hello")]
    lines = list_words(found, own, other, 2 * 3_600_000).splitlines()
    assert lines[0] == "1. Telegram, a thread, 2 hours ago: “Plan the trip”  ◂ goes on here"
    assert lines[1] == "2. this chat, 2 hours ago: “Hello”"
    assert [age_words(ms) for ms in (-5, 59_999, 60_000, 3_599_999, 86_400_000)] == [
        "just now", "just now", "1 minute ago", "59 minutes ago", "1 day ago",
    ]  # fmt: skip
    me = ("telegram/1", "7")
    rows = [LinkRow("telegram/1", "7", "h", "Ada"), LinkRow("discord/2", "9", "h")]
    assert accounts_words(rows, me).splitlines()[1:3] == ["1. Telegram, Ada (this one)", "2. Discord, 9"]
    code = LinkCode("A", "telegram/1", "7", "Ada", "ada", "c", 5)
    assert len({redeemed_words(outcome, code) for outcome in LinkOutcome}) == len(LinkOutcome)


def test_the_commands_are_shown_only_where_people_may_join_accounts() -> None:
    people = {command.name for command in COMMANDS if command.people}
    assert people == {"link", "unlink", "resume"}
    assert not people & {command.name for command in menu()}
    assert people <= {command.name for command in menu(people=True)}
    for name in people:
        assert f"/{name}" not in help_words(admin=True, rehearsal="")
        assert f"/{name}" in help_words(admin=False, rehearsal="", people=True)


def test_who_is_left_alone_or_beside_somebody_who_may_not_talk_is_joined_with_nobody() -> None:
    me, other = LinkRow("telegram/1", "1", "h"), LinkRow("discord/2", "1", "h")
    stranger = LinkRow("slack/T", "U", "h2")
    assert joined([me, other, stranger], ("telegram/1", "1"), lambda _: True) == (me, other)
    assert joined([me, stranger], ("telegram/1", "1"), lambda _: True) == ()
    assert joined([me, other], ("telegram/1", "1"), lambda one: one is me) == ()
    assert joined([me, other], ("telegram/1", "1"), lambda one: one is other) == ()


class Talks:
    """What somebody can go on with, the latest first."""

    def __init__(self) -> None:
        self.keys: Sequence[str] = ()
        self.sessions = self.people = self

    async def places(self) -> Sequence[PlaceRow]:
        return [PlaceRow(key, "telegram/1", "1") for key in ("a", "b", "c", "d")]

    async def links(self) -> Sequence[LinkRow]:
        return []

    async def conversations(self, places: Sequence[str], limit: int) -> Sequence[ConversationRow]:
        assert set(places) == {"a", "b", "c", "d"}
        return [ConversationRow(key, f"s_{key}", 1, "", b"") for key in self.keys[:limit]]

    def left_out(self, _: str) -> bool:
        return False


ORDERS = st.lists(st.sampled_from("abcd"), max_size=4, unique=True)


@given(ORDERS, ORDERS, st.integers(0, 5))
async def test_a_number_means_what_stood_there_when_the_list_was_shown_in_this_place(
    before: list[str], after: list[str], number: int
) -> None:
    talks, clock = Talks(), FakeClock()
    directory = PeopleDirectory(cast("Any", talks), clock, SystemIds(clock), lambda _: True, lambda: None, allowed=True)
    await directory.open()
    here, elsewhere = SessionKey("telegram", "1", "1"), SessionKey("telegram", "1", "1", "9")
    origin = ChatOrigin(ChatAddress("telegram", "1", "1"), ChatKind.PRIVATE, ChatPerson("1", "Ada"))
    talks.keys = before
    shown = [one.place for one in await directory.conversations(here, origin)]
    talks.keys = after
    await directory.conversations(elsewhere, origin)
    for _ in range(2):  # it was not shown anew
        chosen = await directory.chosen(number, here, origin)
        meant = shown[number - 1] if 1 <= number <= len(shown) else None
        assert (chosen.place if chosen is not None else None) == (meant if meant in after else None)


async def test_who_writes_behind_commands_that_say_what_goes_on_waits_for_the_latest_of_them() -> None:
    clock = FakeClock()
    directory = PeopleDirectory(
        cast("Any", Talks()), clock, SystemIds(clock), lambda _: True, lambda: None, allowed=True
    )
    here, may_end = SessionKey("telegram", "1", "1"), [asyncio.Event(), asyncio.Event()]

    async def command(number: int) -> None:
        await may_end[number].wait()

    first, second = (asyncio.create_task(command(number)) for number in range(2))
    directory.changing(here, first)
    directory.changing(here, second)
    may_end[0].set()
    await first
    behind = asyncio.create_task(directory.settle(here))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not behind.done()
    may_end[1].set()
    await behind
    await directory.settle(here)


async def test_a_command_that_takes_long_is_waited_for_once_and_not_by_each_message_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Platforms wait some seconds until what they bring is taken, and bring one after the other."""
    clock = FakeClock()
    directory = PeopleDirectory(
        cast("Any", Talks()), clock, SystemIds(clock), lambda _: True, lambda: None, allowed=True
    )
    here, patience = SessionKey("telegram", "1", "1"), 0.05
    monkeypatch.setattr("gateway.people.directory.SETTLE_SECONDS", patience)
    stuck = asyncio.create_task(asyncio.Event().wait())
    directory.changing(here, cast("Any", stuck))
    began = asyncio.get_running_loop().time()
    await directory.settle(here)
    assert asyncio.get_running_loop().time() - began >= patience * 0.9
    behind = asyncio.create_task(directory.settle(here))
    await asyncio.sleep(0)
    assert behind.done()
    stuck.cancel()
