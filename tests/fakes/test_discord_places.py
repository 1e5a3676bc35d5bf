"""The stand-in for Discord, driven by the real library: threads, DMs, permissions, guilds."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.discord import (
    Code,
    DiscordFake,
    MessageKind,
    Permission,
    Route,
)
from tests.fakes.discord.library import Place, Watcher, discord, placed, serving


@pytest.fixture
async def fake() -> AsyncGenerator[DiscordFake]:
    async with serving(DiscordFake()) as server:
        yield server


@pytest.fixture
async def place(fake: DiscordFake) -> AsyncGenerator[Place[Watcher]]:
    async with placed(fake, Watcher()) as there:
        yield there


# --- threads ---


async def test_a_thread_from_a_message_has_its_id(place: Place[Watcher]) -> None:
    asked = place.fake.people.say(place.channel, place.ada, "long story")
    await place.fake.until(lambda: bool(place.bot.told))
    thread = await place.bot.told[0].create_thread(name="Story")
    assert thread.id == asked.id
    await thread.send("begin")
    inside = place.fake.world.channels[thread.id]
    assert place.fake.shown(inside).answers[0].text == "begin"
    assert place.fake.shown(place.channel).messages[0].thread == thread.id
    place.fake.people.say(inside, place.bob, "go on")
    await place.fake.until(lambda: "go on" in place.bot.heard)
    assert isinstance(place.bot.told[-1].channel, discord.Thread)
    with pytest.raises(discord.HTTPException) as refused:
        await place.bot.told[0].create_thread(name="Again")
    assert refused.value.code == Code.THREAD_EXISTS
    fetched = await place.there.fetch_message(asked.id)
    assert fetched.thread is not None
    assert MessageKind.THREAD_STARTER in {one.kind for one in place.fake.shown(inside).messages}


async def test_a_thread_alone_is_archived_opened_locked_and_removed(place: Place[Watcher]) -> None:
    thread = await place.there.create_thread(name="Ideas", type=discord.ChannelType.public_thread)
    inside = place.fake.world.channels[thread.id]
    assert place.fake.shown(place.channel).messages[0].kind is MessageKind.THREAD_CREATED
    sent = await thread.send("first")
    await thread.edit(archived=True)
    assert inside.archived
    with pytest.raises(discord.HTTPException) as refused:
        await sent.edit(content="second")
    assert refused.value.code == Code.THREAD_ARCHIVED
    await thread.send("awake")
    assert not inside.archived
    with pytest.raises(discord.Forbidden):
        await thread.edit(locked=True)
    place.fake.people.archive(inside, locked=True)
    with pytest.raises(discord.HTTPException) as refused:
        await thread.send("hello?")
    assert refused.value.code == Code.THREAD_ARCHIVED
    place.fake.people.unarchive(inside)
    await thread.send("back")
    place.fake.people.remove_thread(inside)
    with pytest.raises(discord.NotFound):
        await thread.send("gone")
    await place.fake.until(lambda: "THREAD_DELETE" in place.bot.events)


async def test_threads_of_persons(place: Place[Watcher]) -> None:
    open_one = place.fake.people.thread(place.channel, place.ada, "Talk")
    secret = place.fake.people.thread(place.channel, place.ada, "Secret", private=True)
    place.fake.people.say(open_one, place.ada, "in here")
    place.fake.people.say(secret, place.ada, "not for you")
    await place.fake.until(lambda: "in here" in place.bot.heard)
    assert "not for you" not in place.bot.heard
    assert [one.id for one in await place.there.guild.active_threads()] == [open_one.id]
    found = place.bot.get_channel(open_one.id)
    assert isinstance(found, discord.Thread)
    await found.join()
    await found.leave()
    with pytest.raises(discord.Forbidden) as refused:
        await place.bot.fetch_channel(secret.id)
    assert refused.value.code == Code.MISSING_ACCESS


# --- DMs and guilds ---


async def test_a_dm_both_ways_and_one_that_is_not_wanted(place: Place[Watcher]) -> None:
    dm = place.fake.people.dm(place.ada)
    place.fake.people.say(dm, place.ada, "psst")
    await place.fake.until(lambda: place.bot.heard == ["psst"])
    assert isinstance(place.bot.told[0].channel, discord.DMChannel)
    await place.bot.told[0].channel.send("yes?")
    assert place.fake.shown(dm).texts == ["psst", "yes?"]
    bob = await place.bot.fetch_user(place.bob.id)
    await bob.send("hello Bob")
    assert place.fake.shown(place.fake.people.dm(place.bob)).texts == ["hello Bob"]
    place.fake.people.refuse_dms(place.bob)
    with pytest.raises(discord.Forbidden) as refused:
        await bob.send("again")
    assert refused.value.code == Code.CANNOT_DM


async def test_permissions_are_looked_at(place: Place[Watcher]) -> None:
    mute = place.fake.people.channel(place.guild, "mute", denied=Permission.SEND_MESSAGES)
    dark = place.fake.people.channel(place.guild, "dark", denied=Permission.VIEW_CHANNEL)
    await place.fake.until(lambda: place.bot.get_channel(dark.id) is not None)
    for channel, code in ((mute, Code.MISSING_PERMISSIONS), (dark, Code.MISSING_ACCESS)):
        found = place.bot.get_channel(channel.id)
        assert isinstance(found, discord.TextChannel)
        assert not (found.permissions_for(found.guild.me).send_messages and channel is mute)
        with pytest.raises(discord.Forbidden) as refused:
            await found.send("x")
        assert refused.value.code == code
    place.fake.people.say(dark, place.ada, "unseen")
    place.fake.people.permit(place.channel, denied=Permission.ATTACH_FILES | Permission.READ_MESSAGE_HISTORY)
    with pytest.raises(discord.Forbidden):
        await place.there.send(file=discord.File(io.BytesIO(b"x"), "x"))
    assert [one async for one in place.there.history()] == []
    foreign = place.fake.people.say(place.channel, place.ada, "mine")
    with pytest.raises(discord.Forbidden) as refused:
        await place.there.get_partial_message(foreign.id).edit(content="yours")
    assert refused.value.code == Code.NOT_THE_AUTHOR
    with pytest.raises(discord.Forbidden):
        await place.there.get_partial_message(foreign.id).delete()
    assert place.bot.heard == ["mine"]


async def test_the_bot_is_thrown_out_and_let_in_again(place: Place[Watcher]) -> None:
    there = place.there
    place.fake.people.kick_bot(place.guild)
    await place.fake.until(lambda: not place.bot.guilds)
    with pytest.raises(discord.Forbidden) as refused:
        await there.send("hello?")
    assert refused.value.code == Code.MISSING_ACCESS
    place.fake.people.add_bot(place.guild)
    await place.fake.until(lambda: [one.id for one in place.bot.guilds] == [place.guild.id])


async def test_a_guild_has_an_outage(place: Place[Watcher]) -> None:
    place.fake.people.outage(place.guild)
    await place.fake.until(lambda: place.bot.guilds[0].unavailable)
    place.fake.people.say(place.channel, place.ada, "unheard")
    place.fake.people.recover(place.guild)
    await place.fake.until(lambda: not place.bot.guilds[0].unavailable)
    place.fake.people.say(place.channel, place.ada, "heard")
    await place.fake.until(lambda: place.bot.heard == ["heard"])


async def test_guilds_channels_and_members_can_be_asked_for(place: Place[Watcher]) -> None:
    fetched = await place.bot.fetch_guild(place.guild.id)
    assert (fetched.name, fetched.approximate_member_count) == ("Lovelace", 3)
    assert [one.id async for one in place.bot.fetch_guilds()] == [place.guild.id]
    assert [one.id for one in await fetched.fetch_channels()] == [place.channel.id]
    assert (await fetched.fetch_member(place.bob.id)).name == "bob"
    with pytest.raises(discord.NotFound):
        await fetched.fetch_member(1)
    with pytest.raises(discord.NotFound):
        await place.bot.fetch_guild(1)
    with pytest.raises(discord.NotFound):
        await place.bot.fetch_channel(1)
    newcomer = place.fake.people.user("Cleo")
    place.fake.people.join(place.guild, newcomer)
    place.fake.people.leave(place.guild, newcomer)
    place.fake.people.remove_channel(place.channel)
    await place.fake.until(lambda: place.bot.get_channel(place.channel.id) is None)
    await place.bot.guilds[0].leave()
    assert not place.guild.has_bot


async def test_a_wrong_token(fake: DiscordFake) -> None:
    bot = Watcher()
    with fake.pointed(), pytest.raises(discord.LoginFailure):
        async with bot:
            await bot.start("wrong")
    assert fake.log.of(Route.GET_ME)[0].status == 401


async def test_pointing_is_taken_back(fake: DiscordFake) -> None:
    from discord.gateway import DiscordWebSocket
    from discord.http import Route as Address

    before = (Address.BASE, DiscordWebSocket.DEFAULT_GATEWAY)
    with fake.pointed():
        assert fake.api_url == Address.BASE
        assert str(DiscordWebSocket.DEFAULT_GATEWAY) == fake.gateway_url
    assert before == (Address.BASE, DiscordWebSocket.DEFAULT_GATEWAY)
