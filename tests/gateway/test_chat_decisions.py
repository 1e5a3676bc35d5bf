"""The laws of routing, access and merging."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.chat import ChatAddress, ChatKind, ChatMessage, ChatOrigin, ChatPerson
from agent_core.store.people.rows import PersonRow, PersonState
from gateway.commands.registry import TYPED
from gateway.people.access import (
    CODE_LIFE_MS,
    MOST_PENDING,
    AccessRules,
    LetInElsewhere,
    PersonStanding,
    Recent,
    account_and_person,
    approved,
    by_code,
    code_of,
    everybody,
    listed,
    refuse,
    revoked,
    rules,
    standing,
    to_approve,
    to_revoke,
)
from gateway.people.routing import Command, GroupRules, Ignore, RespondWhen, WordsForAgent, meaning, session_of, spoken
from gateway.queues.merging import HOLD_MS, Merged, MessagePiece, merged

ADA = ChatPerson("1", "Ada", "ada")
KINDS = st.sampled_from(ChatKind)
MESSAGES = st.builds(
    ChatMessage,
    origin=st.builds(
        ChatOrigin,
        address=st.builds(
            ChatAddress, st.just("p"), st.just("b"), st.text("ab/%", max_size=3), st.sampled_from(["", "7"])
        ),
        kind=KINDS,
        person=st.builds(ChatPerson, st.sampled_from(["1", "2"]), st.just("Ada")),
        group=st.sampled_from(["", "g"]),
        unfinished=st.booleans(),
    ),
    key=st.just("k"),
    text=st.text(max_size=10),
    command=st.sampled_from(["", "stop", "poem"]),
    for_us=st.booleans(),
    for_others=st.booleans(),
    reply_to_us=st.booleans(),
)
RULES = st.builds(GroupRules, st.sampled_from(RespondWhen), st.booleans())


@given(MESSAGES, RULES, st.booleans())
def test_what_is_for_another_bot_never_concerns_us(message: ChatMessage, group: GroupRules, part: bool) -> None:
    said = meaning(replace(message, for_others=True), group, TYPED, takes_part=part)
    assert isinstance(said, Ignore)


@given(MESSAGES, RULES, st.booleans())
def test_a_private_chat_always_concerns_us(message: ChatMessage, group: GroupRules, part: bool) -> None:
    private = replace(message, for_others=False, origin=replace(message.origin, kind=ChatKind.PRIVATE))
    said = meaning(private, group, TYPED, takes_part=part)
    assert isinstance(said, Command if message.command == "stop" else WordsForAgent)


@given(MESSAGES, st.booleans())
def test_a_silent_group_is_silent(message: ChatMessage, part: bool) -> None:
    group = replace(message, origin=replace(message.origin, kind=ChatKind.GROUP), for_us=False)
    assert isinstance(meaning(group, GroupRules(RespondWhen.NEVER), TYPED, takes_part=part), Ignore)


@given(MESSAGES, MESSAGES, RULES)
def test_one_place_is_one_session_and_two_are_two(one: ChatMessage, two: ChatMessage, group: GroupRules) -> None:
    same = one.origin.address == two.origin.address
    whole = not group.by_person or one.origin.kind is two.origin.kind is ChatKind.PRIVATE
    keys = session_of(one.origin, group).text(), session_of(two.origin, group).text()
    if same and whole:
        assert keys[0] == keys[1]
    if not same:
        assert keys[0] != keys[1]


@given(MESSAGES)
def test_an_address_can_be_read_back(message: ChatMessage) -> None:
    assert ChatAddress.of(message.origin.address.text()) == message.origin.address


def test_in_a_shared_conversation_the_speaker_is_named() -> None:
    origin = ChatOrigin(ChatAddress("p", "b", "c"), ChatKind.GROUP, ADA)
    assert spoken(origin, "hi", GroupRules()) == "Ada: hi"
    assert spoken(origin, "hi", GroupRules(by_person=True)) == "hi"
    assert spoken(replace(origin, kind=ChatKind.PRIVATE), "hi", GroupRules()) == "hi"


# ---------------------------------------------------------------------- access

STATES = st.none() | st.builds(PersonRow, st.just("a"), st.just("1"), st.sampled_from(PersonState))
ACCESS = st.builds(
    AccessRules,
    allow=st.sampled_from([frozenset[str](), frozenset({"1"}), frozenset({"@ada"})]),
    open=st.booleans(),
    pairing=st.booleans(),
)


@given(ACCESS, STATES)
def test_who_may_talk(given_rules: AccessRules, known: PersonRow | None) -> None:
    found = standing(ADA, given_rules, known)
    if (known is not None and known.state is PersonState.REVOKED) or (
        known is None and not given_rules.open and not given_rules.allow
    ):
        assert found is PersonStanding.STRANGER
    elif (
        given_rules.open
        or given_rules.allow
        or (known is not None and known.state in (PersonState.APPROVED, PersonState.ADMIN))
    ):
        assert found is not PersonStanding.STRANGER


def test_names_of_the_list_are_ids_and_user_names_in_any_case() -> None:
    made = rules(["@Ada ", ""], ["9"], open_to_all=False, pairing=True)
    assert standing(ADA, made, None) is PersonStanding.ALLOWED
    assert standing(ChatPerson("9", "Nine"), made, None) is PersonStanding.ADMIN
    assert standing(ChatPerson("8", "Eve", "eve"), made, None) is PersonStanding.STRANGER
    assert (
        standing(ChatPerson("U0AB", "Cy"), rules(["U0AB"], [], open_to_all=False, pairing=True), None)
        is PersonStanding.ALLOWED
    )


@given(ACCESS, KINDS, st.integers(0, 2**63), st.integers(0, 60))
def test_a_stranger_is_told_once_in_a_codes_life(
    given_rules: AccessRules, kind: ChatKind, seed: int, pending: int
) -> None:
    first = refuse(ADA, "a", kind, given_rules, None, pending, 1_000, seed)
    assert first.words
    assert first.row is not None
    again = refuse(ADA, "a", kind, given_rules, first.row, pending, 2_000, seed)
    assert again.words == ""
    if kind is ChatKind.GROUP and first.row.code:
        raise AssertionError("a code was shown in a group")


def test_a_code_lets_in_while_it_lives() -> None:
    code = code_of(12345678901234567)
    assert len(code) == 8
    row = PersonRow("a", "1", PersonState.PENDING, "Ada", code, 5_000)
    assert by_code([row], f" {code.lower()} ", 4_000) == row
    assert by_code([row], f"\u2068{code[:4]}-{code[4:]}\u2069", 4_000) == row, (
        "copied from text that is written from right to left"
    )
    assert by_code([row], code, 5_000) is None
    assert by_code([row], "", 4_000) is None


def test_who_asked_two_bots_is_let_in_at_the_one_that_is_named() -> None:
    here = PersonRow("telegram/1", "7", PersonState.REFUSED, "Ada")
    there = PersonRow("telegram/2", "7", PersonState.REFUSED, "Ada")
    assert to_approve([here, there], " telegram/2/7 ", 0) == there
    assert to_approve([here, there], "7", 0) == here
    assert to_approve([here, there], "telegram/3/7", 0) is None


@given(st.lists(st.integers(0, 30_000), max_size=60), st.integers(1, 10))
def test_no_minute_has_more_than_the_limit(steps: list[int], limit: int) -> None:
    now, recent, taken = 0, Recent(), list[int]()
    for step in steps:
        now += step
        recent, early = recent.with_one(now, limit)
        if not early:
            taken.append(now)
    for begin in range(len(taken)):
        assert sum(taken[begin] <= at < taken[begin] + 60_000 for at in taken) <= limit


def known(state: PersonState, account: str = "b", person: str = "1", until: int = 0) -> PersonRow:
    return PersonRow(account, person, state, "Ada", code="CODE" if until else "", code_until=until, at=1)


NOBODY, EVERYBODY = rules((), (), open_to_all=False, pairing=True), rules((), (), open_to_all=True, pairing=True)
LISTED, ADMINS = (
    rules(("1",), (), open_to_all=False, pairing=True),
    rules((), ("@ADA ",), open_to_all=False, pairing=True),
)


@pytest.mark.parametrize(
    ("state", "closed", "listed_too", "open_too", "admin_too"),
    [
        (None, "stranger", "allowed", "allowed", "admin"),
        (PersonState.PENDING, "stranger", "allowed", "allowed", "admin"),
        (PersonState.REFUSED, "stranger", "allowed", "allowed", "admin"),
        (PersonState.APPROVED, "allowed", "allowed", "allowed", "admin"),
        (PersonState.ADMIN, "admin", "admin", "admin", "admin"),
        (PersonState.REVOKED, "stranger", "stranger", "stranger", "admin"),
    ],
)
def test_who_may_talk_is_told_by_lists_and_by_what_was_decided_and_what_was_taken_away_counts_more(
    state: PersonState | None, closed: str, listed_too: str, open_too: str, admin_too: str
) -> None:
    row = known(state) if state is not None else None
    found = [standing(ADA, one, row).name.lower() for one in (NOBODY, LISTED, EVERYBODY, ADMINS)]
    assert found == [closed, listed_too, open_too, admin_too]


def test_only_those_are_listed_who_may_talk_in_this_account() -> None:
    people = [known(state, person=state.value) for state in PersonState]
    people += [known(PersonState.APPROVED, "other", "elsewhere"), known(PersonState.REVOKED, person="boss")]
    ruled = rules(("7", "@ada", PersonState.REVOKED.value), ("boss",), open_to_all=False, pairing=True)
    found = listed(people, ruled, "b")
    assert found == [*(one.value for one in PersonState if one.value in ("approved", "admin")), "7", "boss"]


def refused(row: PersonRow | None, kind: ChatKind = ChatKind.PRIVATE, *, pairing: bool = True, pending: int = 0) -> str:
    """What a stranger is told at the time 100, and what is noted of them: code, refused, or nothing."""
    ruled = rules((), (), open_to_all=False, pairing=pairing)
    found = refuse(ADA, "b", kind, ruled, row, pending, 100, 12345)
    assert bool(found.words) is (found.row is not None)
    if found.row is None:
        return ""
    assert (found.row.account, found.row.person, found.row.at) == ("b", "1", 100)
    coded = found.row.code != ""
    assert coded is (found.row.state is PersonState.PENDING)
    assert found.row.code in found.words
    assert found.row.code_until == (100 + CODE_LIFE_MS if coded else 0)
    return "code" if coded else "refused"


def test_a_stranger_is_told_once_and_has_one_code_at_a_time() -> None:
    assert refused(None) == "code"
    assert refused(known(PersonState.REVOKED)) == ""
    assert refused(known(PersonState.PENDING, until=101)) == "", "it is valid still"
    assert refused(known(PersonState.PENDING, until=100)) == "code"
    assert refused(known(PersonState.REFUSED)) == "code", "there is room for a code now"
    for pairing, pending in ((False, 0), (True, MOST_PENDING)):
        assert refused(None, pairing=pairing, pending=pending) == "refused"
        assert refused(known(PersonState.REFUSED), pairing=pairing, pending=pending) == ""
        assert refused(known(PersonState.PENDING, until=101), pairing=pairing, pending=pending) == ""
        assert refused(known(PersonState.PENDING, until=100), pairing=pairing, pending=pending) == "refused"
    assert refused(None, pending=MOST_PENDING - 1) == "code"
    assert refused(None, ChatKind.GROUP) == "refused", "a code would be everybody's"
    assert refused(known(PersonState.REFUSED), ChatKind.GROUP) == ""


def test_a_code_counts_until_its_time_and_once() -> None:
    pending = known(PersonState.PENDING, until=100)
    assert by_code([pending], " code ", 99) == pending
    assert by_code([pending], "CODE", 100) is None
    assert by_code([replace(pending, code="")], "", 99) is None
    for done, state in (
        (approved(pending, "ann", 50), PersonState.APPROVED),
        (approved(pending, "ann", 50, admin=True), PersonState.ADMIN),
        (revoked(pending, "ann", 50), PersonState.REVOKED),
    ):
        assert (done.state, done.by, done.at) == (state, "ann", 50)
        assert by_code([done], "CODE", 51) is None


def test_who_is_too_fast_waits_for_a_time_of_their_own_and_only_so_many_do() -> None:
    recent = Recent()
    for at in (0, 10):
        recent, early = recent.with_one(at, 2)
        assert early == 0
    recent, early = recent.with_one_later(20, 2, 2)
    assert early == 60_000 - 20
    recent, early = recent.with_one_later(20, 2, 2)
    assert early == 60_010 - 20
    assert recent.with_one_later(20, 2, 2) == (recent, 0), "so many wait already"
    assert recent.with_one(60_000, 2)[1] == 60_000, "those that wait have their time"
    many = Recent(((1, ""), (2, ""), (3, "")))
    assert many.with_one(4, 0) == (Recent((*many.counted, (4, ""))), 0)


def test_a_message_that_is_brought_again_counts_once() -> None:
    recent = Recent()
    for at in range(10):  # which could not be stored
        recent, early = recent.with_one(at, 2, "a")
        assert early == 0
    recent, early = recent.with_one(20, 2, "b")
    assert early == 0
    for at in (30, 40):
        recent, early = recent.with_one_later(at, 2, 1, "c")
        assert early == 60_000 - at, "its time stays"
    assert recent.with_one_later(50, 2, 1, "d")[1] == 0
    assert recent.with_one(60_000, 2, "c")[1] == 0


# ---------------------------------------------------------------------- merging

PIECES = st.lists(
    st.builds(
        MessagePiece,
        origin=st.none() | MESSAGES.map(lambda m: m.origin),
        received_at=st.integers(0, 5_000),
        waited_ms=st.integers(-10, 10_000),
    ),
    min_size=1,
    max_size=6,
)


@given(PIECES)
def test_merging_keeps_its_laws(pieces: list[MessagePiece]) -> None:
    """In any order of the times received: the wall clock may have been put back between two pieces."""
    found = merged(pieces)
    assert 1 <= found.count <= len(pieces)
    people = {piece.origin.person.id if piece.origin else None for piece in pieces[: found.count]}
    assert len(people) == 1
    last = pieces[found.count - 1]
    if last.origin is None or (not last.origin.group and not last.origin.unfinished):
        assert found.wait_ms == 0
    assert 0 <= found.wait_ms <= HOLD_MS - max(0, last.waited_ms) or found.wait_ms == 0


HERE = ChatOrigin(ChatAddress("p", "b", "c"), ChatKind.PRIVATE, ADA)
PASTE, ALBUM = replace(HERE, unfinished=True), replace(HERE, group="g")


@pytest.mark.parametrize(
    ("first", "second", "apart_ms", "one"),
    [
        (PASTE, HERE, 2 * HOLD_MS, True),
        (PASTE, HERE, 2 * HOLD_MS + 1, False),
        (HERE, HERE, 0, False),
        (HERE, PASTE, 0, False),
        (ALBUM, ALBUM, 60_000, True),
        (ALBUM, replace(ALBUM, group="h"), 0, False),
        (ALBUM, HERE, 0, False),
        (PASTE, ALBUM, 0, False),
        (PASTE, replace(HERE, person=ChatPerson("2", "Bob", "bob")), 0, False),
        (ALBUM, replace(ALBUM, person=ChatPerson("2", "Bob", "bob")), 0, False),
        (PASTE, replace(HERE, address=ChatAddress("p", "b", "d")), 0, False),
        (PASTE, None, 0, False),
        (None, HERE, 0, False),
    ],
)
def test_only_what_one_person_has_said_in_one_go_is_one(
    first: ChatOrigin | None, second: ChatOrigin | None, apart_ms: int, *, one: bool
) -> None:
    pieces = [MessagePiece(first, 100, 0), MessagePiece(second, 100 + apart_ms, 0), MessagePiece(HERE, 900_000, 0)]
    found = merged(pieces)
    assert found.count == (2 if one else 1)
    # Behind an album that has ended, or a message that is whole, nothing more is waited for.
    assert found.wait_ms == 0, "what came since shows that it is complete"


def test_the_rest_of_a_paste_or_an_album_is_waited_for_and_no_longer_than_it_may_take() -> None:
    for origin in (PASTE, ALBUM):
        for waited, left in ((0, HOLD_MS), (HOLD_MS - 1, 1), (HOLD_MS, 0), (10 * HOLD_MS, 0), (-5, HOLD_MS)):
            assert merged([MessagePiece(origin, 100, waited)]) == Merged(1, left)


def test_an_ordinary_message_never_waits() -> None:
    origin = ChatOrigin(ChatAddress("p", "b", "c"), ChatKind.PRIVATE, ADA)
    assert merged([MessagePiece(origin, 100, 0)]).wait_ms == 0


def test_whoever_spoke_stands_in_the_list_once_and_a_browser_does_not() -> None:
    decided = [PersonRow("telegram/4", "1", PersonState.APPROVED, "Ada", at=1)]
    named = [
        ("telegram/4", "1"),
        ("telegram/4", "2"),
        ("web", "cyd"),
        ("api", "cyd"),
        ("web", "proxy/eve"),
        ("web", "browser-secret"),
    ]
    spoke = [PersonRow(*who, PersonState.SPOKE, at=9 - n) for n, who in enumerate(named)]
    listed = everybody(decided, spoke, {"cyd", ""})
    assert [(one.account, one.person, one.state.value) for one in listed] == [
        ("telegram/4", "1", "approved"), ("telegram/4", "2", "spoke"), ("api", "cyd", "spoke"), ("api", "proxy/eve", "spoke"),
    ]  # fmt: skip
    assert to_revoke(listed, "2") == to_revoke(listed, "telegram/4/2") == listed[1]
    assert to_revoke(listed, "3") is None
    with pytest.raises(LetInElsewhere, match="keys revoke"):
        to_revoke(listed, "proxy/eve")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("telegram/4711/12345678", ("telegram/4711", "12345678")), ("api/ada", ("api", "ada")), ("api/proxy/ada", ("api", "proxy/ada")),
        ("api/family/ben", ("api", "family/ben")), ("ada", None), ("api/", None), ("telegram/4711/", None), ("/x", None),
    ],
)  # fmt: skip
def test_people_of_the_api_may_have_a_slash_in_their_names(words: str, meant: tuple[str, str] | None) -> None:
    assert account_and_person(words) == meant
