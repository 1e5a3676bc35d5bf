"""What comes by a connection of Discord: what is of one channel, or of one person, is taken in its order, the rest at once; and how far everything was heard
is not said before it is so."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import AdapterDown
from adapters.discord.adapter import DiscordAdapter
from adapters.discord.client import BotClient, Session, session_of
from adapters.discord.inbound import Began, Brought, Happened, SaidIn, parties
from adapters.discord.platform import Discord
from adapters.discord.sessions import ShardSessions, Upto
from agent_core.ports import SystemClock
from tests.adapters.scripted import StillClock


class Intake(SimpleNamespace):
    several = False


def adapter() -> DiscordAdapter:
    one = DiscordAdapter(Discord(token=SecretStr("N3.x.y")), cast("Any", Intake()), SystemClock())
    one.port.client = cast("Any", SimpleNamespace(user=SimpleNamespace(id=1)))
    return one


def message(number: int, channel: int, person: int) -> Brought:
    return Brought(
        "MESSAGE_CREATE", {"id": str(number), "channel_id": str(channel), "author": {"id": str(person)}}, None, number
    )


def tell_nobody(_: object) -> None:
    pass


async def worked(events: list[Happened], chance: random.Random, refused: set[int]) -> tuple[list[int], int, list[int]]:
    """What is stored, in its order; how many were under way at once; and up to where everything was said to be heard, with what was stored then."""
    one, stored, busy, most, heard = adapter(), list[int](), set[int](), 0, list[int]()
    left = set(refused)

    async def handle(_: object, event: Happened) -> SaidIn | None:
        nonlocal most
        number = event.seq or 0 if isinstance(event, Brought) else -1
        busy.add(number)
        most = max(most, len(busy))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        busy.discard(number)
        if number in left:
            left.discard(number)
            raise NotAccepted("not now", NotAcceptedCode.STORAGE_AWAY)
        stored.append(number)
        return SaidIn("1", number, 0, private=True) if number >= 0 else None

    async def note(place: SaidIn) -> None:
        heard.append(place.number)
        assert {
            other.seq for other in events if isinstance(other, Brought) and (other.seq or 0) <= place.number
        } <= set(stored)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(one, "_handle", handle)
        patched.setattr(one._missed, "handled", note)
        patched.setattr("adapters.contract.intake.AGAIN_SECONDS", 0.0)
        patched.setattr(one, "_waiting", tell_nobody)
        for event in events:
            one.happened(event)
        working = asyncio.create_task(one._work())
        async with asyncio.timeout(20):
            while one._came and not working.done():
                await asyncio.sleep(0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    return stored, most, heard


spoken = st.lists(st.tuples(st.integers(1, 4), st.integers(11, 14)), max_size=30)


@given(spoken, st.integers(0, 99), st.sets(st.integers(0, 29), max_size=4), st.none() | st.integers(0, 29))
def test_order_is_kept_in_a_channel_and_of_a_person_and_nothing_is_heard_before_it_is(
    told: list[tuple[int, int]], seed: int, refused: set[int], began: int | None
) -> None:
    events: list[Happened] = [message(number, *whose) for number, whose in enumerate(told)]
    if began is not None:
        events.insert(began, Began(None))
    stored, _, heard = asyncio.run(worked(events, random.Random(seed), refused))
    assert sorted(stored) == sorted([*range(len(told)), *([-1] if began is not None else [])])
    by_party: dict[str, list[int]] = defaultdict(list)
    for number in stored:
        for one in parties_of(told, number):
            by_party[one].append(number)
    assert all(numbers == sorted(numbers) for numbers in by_party.values())
    assert heard == sorted(heard)
    assert not told or heard[-1] == len(told) - 1
    if began is not None:
        at = stored.index(-1)
        assert set(stored[:at]) == set(range(min(began, len(told)))), "a session begins behind all before it"


def parties_of(told: list[tuple[int, int]], number: int) -> frozenset[str]:
    return parties(message(number, *told[number]).data) if number >= 0 else frozenset()


def test_what_strangers_say_in_their_own_channels_is_taken_together() -> None:
    events: list[Happened] = [message(number, number, 100 + number) for number in range(24)]
    _, most, _ = asyncio.run(worked(events, random.Random(1), set()))
    assert most > 10


@pytest.mark.parametrize("data", [None, 5, "x", [], {}, {"author": 5}, {"member": "x", "channel_id": None}])
def test_what_is_odd_is_of_nobody(data: Any) -> None:
    assert parties(data) == frozenset()


async def test_a_connection_that_waits_for_its_turn_for_longer_than_one_may_be_silent_is_not_taken_for_deaf() -> None:
    clock, silent = StillClock(), list[float]()

    async def reserve(_account: str, _channel: str, every_ms: int) -> int:
        clock.at += every_ms / 1000  # the place is somebody else's each time
        silent.append(one.silent_seconds)
        return int(len(silent) < 20)

    async def get_bot_gateway() -> tuple[int, str, dict[str, int]]:
        return 64, "wss://nowhere", {"remaining": 1, "max_concurrency": 1}

    intake = Intake(reserve=reserve)
    one = DiscordAdapter(Discord(token=SecretStr("N3.x.y")), cast("Any", intake), clock)
    client: Any = SimpleNamespace(shard_id=3, http=SimpleNamespace(get_bot_gateway=get_bot_gateway))
    began = clock.at
    await one._sessions.turn(client)
    assert clock.at - began > 2 * one.deaf_after_seconds
    assert max(silent) < one.deaf_after_seconds


@pytest.mark.parametrize(
    ("what", "upto"),
    [
        ("nothing waits", Upto.ALL),
        ("something of another connection waits", Upto.ALL),
        ("messages wait", 5),
        ("messages wait, and none was handled", Upto.AS_BEFORE),
        ("the begin of a session waits", Upto.NOTHING),
        ("something was left out", Upto.NOTHING),
        ("it is to be seen what was missed", Upto.NOTHING),
        ("a history is to be read", Upto.NOTHING),
    ],
)
def test_a_session_is_gone_on_with_from_where_all_is_stored_and_not_where_something_may_have_been_missed(
    what: str, upto: Upto | int
) -> None:
    one = adapter()
    match what:
        case "something of another connection waits":
            one._came.append(Began(2))
        case "messages wait" | "messages wait, and none was handled":
            one.happened(message(6, 11, 1))
            one._handled[None] = 5 if what == "messages wait" else None
        case "the begin of a session waits":
            one.happened(message(6, 11, 1))
            one.happened(Began(None))
        case "something was left out":
            one._overflowed = True
        case "it is to be seen what was missed":
            one._missed._incomplete.add(2)
        case "a history is to be read":
            one._missed._backlog.add([("11", 5)])
        case _:
            pass
    assert one._up_to(None) == upto


@pytest.mark.parametrize(("handled", "upto"), [(5, 5), (None, 9)])
def test_of_a_session_no_more_is_said_to_be_told_than_was_handled(handled: int | None, upto: int) -> None:
    socket = SimpleNamespace(session_id="s", sequence=9, gateway="wss://e.org")
    client: Any = SimpleNamespace(sockets=lambda: [socket])
    assert session_of(client, handled) == Session("s", upto, "wss://e.org")


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("resumes", [True, False])
async def test_a_connection_waits_for_a_place_in_the_line_only_where_it_begins_a_session(
    *, resumes: bool, begun: bool
) -> None:
    """There are few a day."""
    asked: list[str] = []

    async def turn() -> None:
        asked.append("a place")

    async def may_open() -> None:
        asked.append("whose it is")

    client: Any = SimpleNamespace(_may_open=may_open, turn=turn, _may_begin=begun, shard_id=0)
    await BotClient.waited_again(client, resumes=resumes)
    assert asked == ["whose it is", *([] if resumes or begun else ["a place"])]
    assert client._may_begin is (begun or not resumes)


@pytest.mark.parametrize("ends", ["its turn", "it is another's", "it is given up"])
async def test_who_waits_for_its_turn_waits_no_more_however_that_ends(ends: str) -> None:
    """Else such a connection would count as one that lives."""

    async def reserve(*_: object) -> int:
        assert sessions.waiting == 1
        if ends == "it is another's":
            raise NotAccepted("another gateway has it", NotAcceptedCode.STORAGE_AWAY)
        return 60_000 if ends == "it is given up" else 0

    async def get_bot_gateway() -> tuple[int, str, dict[str, int]]:
        return 64, "wss://nowhere", {"remaining": 1, "max_concurrency": 1}

    sessions = ShardSessions("discord/1", cast("Any", Intake(reserve=reserve)), lambda _: Upto.ALL)
    client: Any = SimpleNamespace(shard_id=3, http=SimpleNamespace(get_bot_gateway=get_bot_gateway))
    with suppress(AdapterDown, TimeoutError):
        async with asyncio.timeout(0.02):
            await sessions.turn(client)
    assert sessions.waiting == 0
