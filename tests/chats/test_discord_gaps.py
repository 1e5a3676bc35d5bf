"""Gaps in what Discord tells, and connections that divide the servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from adapters.discord import adapter, missed
from adapters.discord.library import discord as discord_library
from tests.chats.discord_harness import DiscordHarness, discord_harness
from tests.chats.harness import answer, quiet, running, status, texts
from tests.chats.model import scripted_model
from tests.chats.refused_oddly import PAGE
from tests.fakes.common import Answer, LoseAnswer
from tests.fakes.discord import (
    LIKE_THE_SERVER,
    Channel,
    ChannelKind,
    Close,
    DiscordFake,
    Op,
    Route,
    User,
    flood,
    server_error,
)
from tests.fakes.discord.ids import shard_of

library: Any = discord_library
MARK = "[Sent while I was offline]"


@pytest.fixture
async def discord(tmp_path: Path) -> AsyncGenerator[DiscordHarness]:
    async with discord_harness(tmp_path) as harness:
        yield harness


def lose_session(discord: DiscordHarness) -> None:
    """The connection breaks, and what was told by it cannot be told again."""
    discord.fake.gateway.react(Op.RESUME, Close(4009))
    discord.fake.gateway.forget()
    discord.fake.gateway.cut()


async def say_in_a_gap(discord: DiscordHarness, chat: Any, ada: Any) -> None:
    """Two is said while nobody listens, and three when it is answered again."""
    lose_session(discord)
    discord.say(chat, ada, "say two")
    await discord.until(lambda: not discord.fake.connected)
    await discord.fake.until_connected(30)
    discord.say(chat, ada, "say three")
    await answer(discord, chat, "three", 20)


def last_words(discord: DiscordHarness, words: str) -> str:
    """What the model was asked, of the message with these words."""
    return next(one for one in reversed(discord.model.asked) if words in one)


async def test_what_comes_at_once_after_a_gap_does_not_hide_the_gap(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        await say_in_a_gap(discord, chat, ada)
        await quiet(discord, chat, 3)
        assert texts(discord, chat) == ["one", "two", "three"]
        assert MARK in last_words(discord, "say two")
        discord.say(chat, ada, "say four")
        await answer(discord, chat, "four")
        assert MARK not in last_words(discord, "say four")


@pytest.mark.parametrize("trouble", ["too fast", "server error", "lost", "portal"])
async def test_a_history_that_cannot_be_read_is_read_later(discord: DiscordHarness, trouble: str) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    page = Answer(200, PAGE, "text/html")
    fault = {"too fast": flood(1), "server error": server_error(501), "lost": LoseAnswer(), "portal": page}[trouble]
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        discord.fake.script(Route.LIST_MESSAGES, fault)
        lose_session(discord)
        discord.say(chat, ada, "say two")
        await answer(discord, chat, "two", 30)
        assert discord.fake.faults.left(Route.LIST_MESSAGES) == 0


async def test_a_long_gap_is_read_to_its_end(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    group = discord.group(ada)
    async with running(discord):
        discord.say(group, ada, "say one", mention=True)
        await answer(discord, group, "one")
        lose_session(discord)
        for number in range(250):
            discord.say(group, ada, f"not for you {number}")
        discord.say(group, ada, "say two", mention=True)
        await answer(discord, group, "two", 40)


async def test_a_gap_that_is_too_long_or_too_wide_to_be_read_at_once_is_read_all_the_same(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed, "MOST_MESSAGES", 100)
    monkeypatch.setattr(missed, "MOST_PLACES", 1)
    monkeypatch.setattr("adapters.contract.backlog.LEISURE_SECONDS", 0.5)
    ada = discord.person("Ada")
    known, *fresh = [discord.group(ada) for _ in range(3)]
    async with running(discord):
        discord.say(known, ada, "say one", mention=True)
        await answer(discord, known, "one")
    for number in range(250):
        discord.say(known, ada, f"not for you {number}")
    for place in (known, *fresh):
        discord.say(place, ada, "say two", mention=True)
    async with running(discord):
        for place in (known, *fresh):
            await answer(discord, place, "two", 40)


async def test_a_channel_that_was_never_read_is_found_by_its_last_message(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    group = discord.group(ada)
    discord.say(group, ada, "say older than all", mention=True)
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
    discord.say(group, ada, "say new here", mention=True)
    async with running(discord):
        await answer(discord, group, "new here", 20)
        await quiet(discord, group, 3)
        assert texts(discord, group) == ["new here"]


async def test_what_was_said_in_a_voice_channel_that_was_never_read_is_found(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    group = discord.group(ada)
    assert group.guild is not None
    voice = discord.fake.people.channel(group.guild, "lounge", kind=ChannelKind.VOICE)
    async with running(discord):
        discord.say(group, ada, "say one", mention=True)
        await answer(discord, group, "one")
    discord.say(voice, ada, "say by voice", mention=True)
    async with running(discord):
        await answer(discord, voice, "by voice", 20)


async def test_what_was_missed_in_a_server_that_comes_late_is_read_when_it_comes(discord: DiscordHarness) -> None:
    """A session begins without it; meanwhile the others go on."""
    ada = discord.person("Ada")
    group, new, elsewhere = (discord.group(ada) for _ in range(3))
    async with running(discord):
        discord.say(group, ada, "say one", mention=True)
        await answer(discord, group, "one")
        outage(discord, group, new)
    for one in (group, new):
        discord.say(one, ada, "say two", mention=True)
    async with running(discord):
        discord.say(elsewhere, ada, "say here", mention=True)
        await answer(discord, elsewhere, "here", 20)
        await recovered(discord, group, new)
        await quiet(discord, group)
        assert texts(discord, group) == ["one", "two"]


async def test_what_was_said_while_a_server_was_out_of_reach_is_read(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    group, new = discord.group(ada), discord.group(ada)
    async with running(discord):
        discord.say(group, ada, "say one", mention=True)
        await answer(discord, group, "one")
        outage(discord, group, new)
        for one in (group, new):
            discord.say(one, ada, "say two", mention=True)
        await recovered(discord, group, new)


def outage(discord: DiscordHarness, *groups: Channel) -> None:
    for one in groups:
        assert one.guild is not None
        discord.fake.people.outage(one.guild)


async def recovered(discord: DiscordHarness, *groups: Channel) -> None:
    """The servers are back, and what was said there is answered."""
    for one in groups:
        assert one.guild is not None
        discord.fake.people.recover(one.guild)
        await answer(discord, one, "two", 20)


async def test_a_first_private_message_of_somebody_listed_is_found(discord: DiscordHarness) -> None:
    ada, ben, eve = discord.person("Ada"), discord.person("Ben"), discord.person("Eve")
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_DISCORD__ALLOW": f'["{ada.id}", "{ben.id}"]'}
    chat = discord.private(ada)
    async with running(discord, **closed):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        await discord.until(lambda: len(discord.fake.log.of(Route.OPEN_DM)) == 2)
    first, strange = discord.private(ben), discord.private(eve)
    discord.say(first, ben, "say I am new")
    discord.say(strange, eve, "say nobody knows me")
    async with running(discord, **closed):
        await answer(discord, first, "I am new", 20)
        await quiet(discord, strange, 3)
        assert texts(discord, strange) == []
        opened = [str(call.params["recipient_id"]) for call in discord.fake.log.of(Route.OPEN_DM)]
        assert sorted(opened) == sorted([str(ada.id), str(ben.id)])  # once ever


async def test_a_first_private_message_is_found_if_it_could_not_be_read_before_a_stop(discord: DiscordHarness) -> None:
    """Its chat was opened, and the process ended before its history was read."""
    ben = discord.person("Ben")
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_DISCORD__ALLOW": f'["{ben.id}"]'}
    first = discord.private(ben)
    discord.fake.gateway.hold()
    discord.fake.script(Route.OPEN_DM, server_error(500))  # it is opened after the message was written
    discord.fake.script(Route.LIST_MESSAGES, *[server_error(500)] * 40)
    async with running(discord, **closed):
        discord.say(first, ben, "say I am new")
        await discord.until(lambda: bool(discord.fake.log.of(Route.LIST_MESSAGES)))
    discord.fake.gateway.release([])
    discord.fake.faults.clear()
    async with running(discord, **closed):
        await answer(discord, first, "I am new", 20)


async def test_a_first_private_message_of_somebody_who_is_not_listed_is_found_when_they_write_again(
    discord: DiscordHarness,
) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    chat, first = discord.private(ada), discord.private(ben)
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
    discord.say(first, ben, "say I am new")
    async with running(discord):
        discord.say(chat, ada, "say two")
        await answer(discord, chat, "two")
        discord.say(first, ben, "say is somebody there")
        await answer(discord, first, "is somebody there", 20)
        await quiet(discord, first, 4)
        assert texts(discord, first) == ["I am new", "is somebody there"]
        assert MARK in last_words(discord, "say I am new")
        assert MARK not in last_words(discord, "say is somebody there")


async def test_what_is_said_before_a_chat_was_opened_does_not_hide_what_was_missed_there(
    discord: DiscordHarness,
) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_DISCORD__ALLOW": f'["{ada.id}", "{ben.id}"]'}
    chat, first = discord.private(ada), discord.private(ben)
    discord.fake.script(Route.OPEN_DM, *[server_error(500)] * 40)
    async with running(discord, **closed):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
    discord.say(first, ben, "say I am new")
    async with running(discord, **closed):
        discord.say(first, ben, "say is somebody there")
        await answer(discord, first, "is somebody there", 20)
        await quiet(discord, first, 4)
        assert texts(discord, first) == ["I am new", "is somebody there"]


async def test_people_beyond_the_first_are_looked_for_one_after_the_other(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missed, "MOST_OPENED", 1)
    monkeypatch.setattr(missed, "OPEN_EVERY_SECONDS", 1.0)
    people = [discord.person(f"P{number}") for number in range(3)]
    listed = ", ".join(f'"{one.id}"' for one in people)
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_DISCORD__ALLOW": f"[{listed}]"}
    async with running(discord, **closed):
        await discord.until(lambda: len(discord.fake.log.of(Route.OPEN_DM)) == 3)
        first, _, last = (call.at for call in discord.fake.log.of(Route.OPEN_DM))
        assert last - first > 1.5


async def test_first_messages_that_were_overtaken_before_a_stop_are_found(discord: DiscordHarness) -> None:
    """A newer message of another chat is stored, theirs are not: that says nothing about chats that were never read."""
    ada, ben = discord.person("Ada"), discord.person("Ben")
    closed = {"OUTSPOKEN_DISCORD__OPEN": "false", "OUTSPOKEN_DISCORD__ALLOW": f'["{ada.id}", "{ben.id}"]'}
    chat, first, group = discord.private(ada), discord.private(ben), discord.group(ben)
    discord.fake.script(Route.OPEN_DM, *[server_error(500)] * 20)  # so that a restart has to look for the private one
    async with running(discord, **closed):
        discord.fake.gateway.hold()
        discord.say(first, ben, "say I am new")
        discord.say(group, ben, "say new here", mention=True)
        discord.say(chat, ada, "say one")
        discord.fake.gateway.release([2])
        await answer(discord, chat, "one")
    discord.fake.faults.clear()
    async with running(discord, **closed):
        await answer(discord, first, "I am new", 20)
        await answer(discord, group, "new here", 20)


# ---------------------------------------------------------------------- a connection that is cut


@pytest.mark.parametrize("clean", [False, True])
async def test_after_a_cut_it_answers_within_30_seconds(discord: DiscordHarness, *, clean: bool) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        discord.fake.gateway.cut(clean=clean)
        discord.say(chat, ada, "say two")
        await answer(discord, chat, "two", 30)
        await quiet(discord, chat, 3)
        assert texts(discord, chat) == ["one", "two"]


async def test_the_same_delivery_is_the_same_message(discord: DiscordHarness) -> None:
    """Sent, its answer lost, and taken away by somebody: sending it again brings nothing back."""
    ada = discord.person("Ada")
    chat = discord.private(ada)

    def sent() -> list[str]:
        return [str(one.id) for one in chat.messages.values() if one.author.is_bot]

    async with running(discord):
        discord.fake.script(Route.CREATE_MESSAGE, LoseAnswer())
        discord.say(chat, ada, "say just one")
        await discord.until(lambda: len(sent()) == 1)
        discord.remove(chat, sent()[0])
        await discord.until(lambda: len(discord.fake.log.of(Route.CREATE_MESSAGE)) == 2, 20)
        await quiet(discord, chat, 2)
        nonces = {str(call.params.get("nonce")) for call in discord.fake.log.of(Route.CREATE_MESSAGE)}
        assert len(nonces) == 1
        assert len(sent()) == 1
        assert texts(discord, chat) == []
        discord.say(chat, ada, "say it goes on")
        await answer(discord, chat, "it goes on")


# ---------------------------------------------------------------------- the pace that Discord allows


async def test_a_window_with_room_is_used(tmp_path: Path) -> None:
    """Five edits in five seconds are allowed: so many states are shown, and nothing is refused."""
    async with DiscordFake(rates=LIKE_THE_SERVER) as fake, scripted_model() as model:
        discord = DiscordHarness(fake, model, tmp_path)
        ada = discord.person("Ada")
        chat = discord.private(ada)
        async with running(discord):
            discord.say(chat, ada, "slow " + " ".join(f"word{n}" for n in range(70)))
            await answer(discord, chat, "word")
            await discord.until(lambda: texts(discord, chat)[0].count("word") == 70, 30)
            assert discord.fake.shown(chat).messages[-1].edits >= 6
            assert not [call for call in fake.log if call.status == 429]


# ---------------------------------------------------------------------- several connections

SHARDS = {"OUTSPOKEN_DISCORD__SHARDS": "2"}


def of_shard(discord: DiscordHarness, shard: int, *people: User) -> Channel:
    """A channel of a server that belongs to this connection."""
    while True:
        group = discord.group(*people)
        assert group.guild is not None
        if shard_of(group.guild.id, 2) == shard:
            return group


async def both(discord: DiscordHarness) -> None:
    await discord.until(lambda: {one.shard for one in discord.fake.gateway.live} == {0, 1}, 30)
    await asyncio.sleep(0.7)


async def test_servers_are_divided_over_connections(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    groups = [of_shard(discord, number, ada) for number in (0, 1)]
    chat = discord.private(ada)
    async with running(discord, **SHARDS):
        await both(discord)
        asked = [frame.data for frame in discord.fake.gateway.of(Op.IDENTIFY)]
        assert sorted(str(one["shard"]) for one in asked if isinstance(one, dict)) == ["[0, 2]", "[1, 2]"]
        for number, place in enumerate([*groups, chat]):
            discord.say(place, ada, f"say here {number}", mention=place is not chat)
            await answer(discord, place, f"here {number}")


async def test_one_connection_comes_back_without_the_other(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    near, far = (of_shard(discord, number, ada) for number in (0, 1))
    async with running(discord, **SHARDS):
        await both(discord)
        for place in (near, far):
            discord.say(place, ada, "say one", mention=True)
            await answer(discord, place, "one")
        before = [one.number for one in discord.fake.gateway.open if one.session is not None and one.session.shard == 0]
        discord.fake.gateway.cut(shard=1)
        discord.say(far, ada, "say resumed", mention=True)
        await answer(discord, far, "resumed", 30)
        discord.fake.gateway.invalidate(resumable=False, shard=1)
        discord.say(far, ada, "say missed", mention=True)
        discord.say(near, ada, "say unharmed", mention=True)
        await answer(discord, near, "unharmed")
        await answer(discord, far, "missed", 30)
        assert MARK in last_words(discord, "say missed")
        assert texts(discord, far) == ["one", "resumed", "missed"]
        after = [one.number for one in discord.fake.gateway.open if one.session is not None and one.session.shard == 0]
        assert before == after


async def test_a_connection_that_is_silent_while_others_are_not_is_made_anew(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    near, far = (of_shard(discord, number, ada) for number in (0, 1))
    async with running(discord, **SHARDS):
        await both(discord)
        discord.say(far, ada, "say one", mention=True)
        await answer(discord, far, "one")
        discord.fake.gateway.deafen(shard=1)
        discord.say(far, ada, "say two", mention=True)
        for number in range(12):
            discord.say(near, ada, f"say {number} here", mention=True)
            await answer(discord, near, f"{number} here")
            await asyncio.sleep(2)
        await answer(discord, far, "two", 20)
        assert len(discord.fake.gateway.connections) == 3  # the lively one was left alone, and so was the one made anew


async def test_a_quiet_connection_is_not_taken_for_a_slow_one(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is asked for a sign of life, and the library does not measure its answer from an older heartbeat."""
    monkeypatch.setattr(adapter, "PROBE_SECONDS", 10.5)  # the library warns of an answer that takes ten
    async with running(discord):
        await discord.until(lambda: discord.fake.connected)
        (connection,) = discord.fake.gateway.open
        await discord.until(lambda: len(connection.beats) > 1, 30)
        await asyncio.sleep(0.3)
    assert not [one for one in caplog.messages if "keep up" in one]


async def test_what_the_library_raises_while_a_gap_is_read_loses_nothing(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    plain, left = library.http.HTTPClient.logs_from, [1, 1]

    async def odd(self: Any, *args: Any, **kwargs: Any) -> Any:
        if left:
            left.pop()
            raise KeyError("what the library did not expect")
        return await plain(self, *args, **kwargs)

    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        monkeypatch.setattr(library.http.HTTPClient, "logs_from", odd)
        await say_in_a_gap(discord, chat, ada)
        await answer(discord, chat, "two", 20)
        await quiet(discord, chat, 4)  # both may come at once, and one is told for a while that it waits
        assert sorted(texts(discord, chat)) == ["one", "three", "two"]


async def test_a_message_of_the_history_that_nobody_can_read_hides_no_other(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    plain: Any = library.http.HTTPClient.logs_from

    async def spoilt(self: Any, *args: Any, **kwargs: Any) -> Any:
        page: list[dict[str, Any]] = await plain(self, *args, **kwargs)
        return [{**one, "author": "nobody"} if one["content"] == "say two" else one for one in page]

    async with running(discord) as up:
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        monkeypatch.setattr(library.http.HTTPClient, "logs_from", spoilt)
        lose_session(discord)
        discord.say(chat, ada, "say two")
        discord.say(chat, ada, "say three")
        await discord.until(lambda: not discord.fake.connected)
        await discord.fake.until_connected(30)
        await answer(discord, chat, "three", 20)
        assert (await status(up.url))["adapters"][0]["unread"] == 1


async def test_an_event_that_the_library_cannot_read_ends_no_connection(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord) as up:
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        begun = len(discord.fake.gateway.of(Op.IDENTIFY))
        discord.odd_event(chat)
        discord.fake.gateway.dispatch("CHANNEL_UPDATE", {"id": "no number", "type": "x", "guild_id": "y"})
        discord.say(chat, ada, "say two")
        await answer(discord, chat, "two")
        assert len(discord.fake.gateway.of(Op.IDENTIFY)) == begun
        assert (await status(up.url))["adapters"][0]["unread"] == 1
