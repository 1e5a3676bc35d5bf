"""How Discord's bot is seen, and what it looks at: a connection that is gone is no bot that is up, a server that is back is looked into alone, and people who are
known are not opened again."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.supervision import DOWN, NEEDS_A_PERSON, SETTLED_SECONDS, UP, OtherGateway
from adapters.discord.client import Bucket
from adapters.discord.inbound import read_message
from adapters.discord.library import discord
from adapters.discord.missed import HEARD, MOST_OPENED, OPEN_EVERY_SECONDS, PERSON, DiscordGaps
from tests.adapters.test_discord_together import adapter
from tests.adapters.test_missed import BOT, MARK, Discord, Stored
from tests.agent_core.turns import gives

# ---------------------------------------------------------------------- how it is seen


@pytest.mark.parametrize(
    ("open_ones", "state", "words"),
    [([True, True], UP, ""), ([True, False], DOWN, "1 of 2"), ([False, None], DOWN, "2 of 2")],
)
def test_a_bot_is_up_with_all_of_its_connections_alone(open_ones: list[bool | None], state: str, words: str) -> None:
    made = adapter()
    for number, one in enumerate(open_ones):
        sockets = [] if one is None else [SimpleNamespace(open=one)]
        made._clients[number] = cast("Any", SimpleNamespace(sockets=gives(sockets)))
    seen = made.sight(UP, "", 7.0)
    assert (seen.state, words in seen.words) == (state, True)
    assert made.any_works is any(open_ones)
    assert made.sight("starting", "It begins.", None).words == "It begins."
    made._sessions.waiting = 1
    assert made.any_works, "one that waits for its turn is well"
    assert "1 of 2 connections wait" in made.sight("starting", "It begins.", None).words


def test_a_bot_by_which_another_gateway_speaks_needs_a_person() -> None:
    made = adapter()
    made._twin = OtherGateway("Discord", made._clock.monotonic() - SETTLED_SECONDS - 1)
    assert made.sight(UP, "", None).state == UP
    assert made._twin.heard("A" * 25, made._clock.monotonic())
    seen = made.sight(UP, "", None)
    assert (seen.state, "Another gateway" in seen.words) == (NEEDS_A_PERSON, True)


# ---------------------------------------------------------------------- how fast it may be


async def test_no_more_calls_go_out_in_a_window_than_discord_says() -> None:
    bucket = Bucket(0.001)
    bucket.limit = bucket.remaining = 3
    bucket.expires = asyncio.get_running_loop().time() + 60
    for _ in range(3):
        await bucket.acquire()
    assert (bucket.remaining, bucket.outgoing) == (0, 3)
    with pytest.raises(discord.RateLimited) as limited:
        await bucket.acquire()
    assert 50 < limited.value.retry_after <= 60, "and it is not waited for here"


@pytest.mark.parametrize(("told", "left"), [(True, 0), (False, 1)])
async def test_a_window_that_is_used_up_has_room_again_when_it_is_over_and_one_of_which_nothing_was_said_at_once(
    told: bool, left: int
) -> None:
    bucket = Bucket(0.001)
    async with bucket:
        assert bucket.remaining == 0
        bucket.expires = asyncio.get_running_loop().time() + 60 if told else None
    assert (bucket.remaining, bucket.outgoing) == (left, 0)


# ---------------------------------------------------------------------- what is looked at


async def test_people_who_are_known_are_not_opened_again_and_the_others_not_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, unknown = ["1", "2"], [str(n) for n in range(10, 10 + MOST_OPENED + 2)]
    stored = Stored({f"{HEARD}0": str(MARK), **{f"{PERSON}{one}": "5" for one in known}})

    async def allowed(_: str) -> list[str]:
        return [*known, *unknown, "@somebody"]

    stored.allowed = cast("Any", allowed)
    world = Discord(stored, [])
    added: list[tuple[str, float]] = []

    def add(marks: Any, since: int = 0, *, pause_seconds: float = 0.0, leisure: float = 0.0) -> None:
        del since, leisure
        added.extend((place, pause_seconds) for place, _ in marks)

    await world.gaps.began(None)
    monkeypatch.setattr(world.gaps._backlog, "add", add)
    await world.gaps.complete(cast("Any", SimpleNamespace(guilds=[])), None)
    assert [place for place, _ in added] == [f"{PERSON}{one}" for one in unknown]
    pauses = [pause for _, pause in added]
    assert pauses == [0.0] * MOST_OPENED + [OPEN_EVERY_SECONDS, 2 * OPEN_EVERY_SECONDS]


def server(number: int, shard: int, *channels: tuple[int, int]) -> Any:
    places = [SimpleNamespace(id=one, last_message_id=last) for one, last in channels]
    return SimpleNamespace(
        id=number, shard_id=shard, text_channels=places, voice_channels=[], stage_channels=[], threads=[]
    )


def fresh(gaps: DiscordGaps, shard: int | None, one: int | None) -> list[tuple[str, int]]:
    servers = [server(1, 0, (11, 100), (12, 5), (13, 70)), server(2, 0, (21, 90)), server(3, 1, (31, 80))]
    return gaps._fresh(cast("Any", SimpleNamespace(guilds=servers)), shard, one, 50)


def test_of_channels_those_are_looked_into_in_which_something_was_said_since_the_latest_first() -> None:
    gaps = Discord(Stored(), []).gaps
    assert fresh(gaps, None, None) == [("11", 50), ("21", 50), ("31", 50), ("13", 50)]
    assert fresh(gaps, 0, None) == [("11", 50), ("21", 50), ("13", 50)]
    assert fresh(gaps, 0, 2) == [("21", 50)], "it was out of reach, and the others were not"
    gaps._backlog.saw("11", 60)
    gaps._backlog.saw("21", 95)
    assert fresh(gaps, 0, None) == [("13", 50)], "those that were read once have their cursors"
    assert fresh(gaps, 0, 1) == [("11", 60), ("13", 50)], "of one that was out of reach, all"
    assert fresh(gaps, 0, 2) == []


@pytest.mark.parametrize(("bound", "shard", "read"), [(None, 0, True), (0, 0, True), (1, 0, False), (1, None, True)])
async def test_a_connection_that_begins_looks_into_its_channels_and_into_those_of_which_nobody_knows_whose_they_are(
    bound: int | None, shard: int | None, *, read: bool
) -> None:
    world = Discord(Stored({"77": str(MARK), f"{HEARD}0": str(MARK)}), [])
    if bound is not None:
        world.gaps._shards["77"] = bound
    await world.gaps.began(shard)
    assert (world.gaps._backlog.mark("77") is not None) is read
    assert BOT


# ---------------------------------------------------------------------- what is read


def message(**more: Any) -> Any:
    author = SimpleNamespace(id=3, bot=False, display_name="Ada", name="ada")
    base: dict[str, Any] = {
        "author": author, "type": discord.MessageType.default, "reference": None, "content": "hello", "mentions": [],
        "guild": None, "channel": SimpleNamespace(id=2), "id": 9, "attachments": [], "message_snapshots": [], "poll": None,
        "stickers": [], "created_at": datetime(2026, 11, 27, tzinfo=UTC),
    }  # fmt: skip
    return SimpleNamespace(**{**base, **more})


def test_a_message_has_its_time_its_key_and_its_person() -> None:
    read = read_message(message(), 7, "1", late="[late] ")
    assert read is not None
    assert read.said_at == 1_795_737_600_000
    assert (read.key, read.text, read.origin.message, read.origin.person.id) == ("2:9", "[late] hello", "9", "3")


@pytest.mark.parametrize("type_", [discord.MessageType.pins_add, discord.MessageType.new_member])
def test_what_no_person_wrote_is_no_message(type_: discord.MessageType) -> None:
    assert read_message(message(type=type_), 7, "1") is None
    bot = SimpleNamespace(id=4, bot=True, display_name="Bot", name="bot")
    assert read_message(message(author=bot), 7, "1") is None
    assert read_message(message(content=""), 7, "1") is None


def test_a_command_in_words_keeps_what_stands_behind_it() -> None:
    for typed in ("/stop  all of it", "/stop\nall of it", "/Stop all of it"):
        read = read_message(message(content=typed), 7, "1")
        assert read is not None
        assert (read.command, read.text, read.typed) == ("stop", "all of it", typed)


@pytest.mark.parametrize(("typed", "command", "words"), [("/new", "new", ""), ("/stop all", "stop", "all")])
def test_a_command_that_was_missed_means_the_same_when_it_is_read_late(typed: str, command: str, words: str) -> None:
    """The mark before what is late is for the model: as words behind a command it would begin a conversation, or stop the wrong thing."""
    read = read_message(message(content=typed), 7, "1", late="[late] ")
    assert read is not None
    assert (read.command, read.text, read.typed) == (command, words, f"[late] {typed}")


@pytest.mark.parametrize(
    ("kept", "title", "name"),
    [
        ("plan.pdf", None, "plan.pdf"),
        ("_.pdf", "отчёт", "отчёт.pdf"),
        ("_.pdf", "отчёт.PDF", "отчёт.PDF"),
        ("unknown", "画像", "画像"),
    ],
)
def test_a_file_is_called_as_its_person_called_it(kept: str, title: str | None, name: str) -> None:
    sent = SimpleNamespace(
        filename=kept, title=title, url="https://cdn", content_type="a/b", size=1, is_voice_message=gives(False)
    )
    read = read_message(message(attachments=[sent]), 7, "1")
    assert read is not None
    assert [one.name for one in read.origin.attachments] == [name]
