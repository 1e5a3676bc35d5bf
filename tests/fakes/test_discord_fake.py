"""The stand-in for Discord, driven by the real library: messages, files, mentions, reactions, threads, DMs, permissions."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest

from tests.fakes.discord import (
    Channel,
    Code,
    DiscordFake,
    Guild,
    Intent,
    MessageKind,
    Op,
    Permission,
    Route,
    User,
)
from tests.fakes.discord.library import Watcher, discord, running
from tests.fakes.discord.objects import USUAL

FAST = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


@pytest.fixture
async def fake() -> AsyncGenerator[DiscordFake]:
    async with DiscordFake() as server:
        yield server


@dataclass
class Place:
    """A guild with two persons and a channel, and the bot in it."""

    fake: DiscordFake
    bot: Watcher
    ada: User
    bob: User
    guild: Guild
    channel: Channel

    @property
    def there(self) -> discord.TextChannel:
        """The channel as the library knows it."""
        found = self.bot.get_channel(self.channel.id)
        assert isinstance(found, discord.TextChannel)
        return found


@pytest.fixture
async def place(fake: DiscordFake) -> AsyncGenerator[Place]:
    ada, bob = fake.people.user("Ada"), fake.people.user("Bob")
    guild = fake.people.guild("Lovelace", ada, bob)
    channel = fake.people.channel(guild, "general")
    bot = Watcher()
    async with running(fake, bot):
        yield Place(fake, bot, ada, bob, guild, channel)
    # Everything that the library sent is known to the fake.
    assert {(call.route, name) for call in fake.log for name in call.ignored} == set()


# --- messages ---


async def test_a_message_comes_in_and_an_answer_goes_out(place: Place) -> None:
    question = place.fake.people.say(place.channel, place.ada, "hello")
    await place.fake.until(lambda: place.bot.heard == ["hello"])
    heard = place.bot.told[0]
    assert (heard.author.id, heard.channel.id, heard.guild) == (place.ada.id, place.channel.id, place.there.guild)
    await heard.reply("hello yourself")
    answer = await place.fake.answer_to(question)
    assert (answer.text, answer.reply_to, answer.kind) == ("hello yourself", question.id, MessageKind.REPLY)
    await place.fake.until(lambda: place.bot.heard == ["hello", "hello yourself"])
    assert place.bot.told[1].reference is not None
    assert isinstance(place.bot.told[1].reference.resolved, discord.Message)
    assert place.fake.log.routes()[:3] == [Route.GET_ME, Route.GET_APPLICATION, Route.HANDSHAKE]
    assert len(place.fake.gateway.of(Op.IDENTIFY)) == 1


async def test_a_message_is_edited_and_deleted(place: Place) -> None:
    sent = await place.there.send("one")
    await sent.edit(content="two")
    await sent.edit(content="three")
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.text, shown.earlier, shown.edits, shown.is_marked_edited) == ("three", ("one", "two"), 2, True)
    await sent.delete()
    screen = place.fake.shown(place.channel)
    assert (screen.texts, [one.text for one in screen.removed]) == ([], ["three"])
    with pytest.raises(discord.NotFound) as refused:
        await sent.edit(content="four")
    assert refused.value.code == Code.UNKNOWN_MESSAGE
    await place.fake.until(lambda: "MESSAGE_DELETE" in place.bot.events)
    assert place.bot.events.count("MESSAGE_UPDATE") == 2


async def test_what_persons_edit_and_delete_is_told(place: Place) -> None:
    message = place.fake.people.say(place.channel, place.ada, "teh")
    place.fake.people.edit(message, "the")
    place.fake.people.unfurl(message, "A page", "https://example.org")
    place.fake.people.remove(message)
    await place.fake.until(lambda: "MESSAGE_DELETE" in place.bot.events)
    assert place.bot.events.count("MESSAGE_UPDATE") == 2
    with pytest.raises(discord.NotFound):
        await place.there.fetch_message(message.id)


@pytest.mark.parametrize("text", ["", "   \n "])
async def test_an_empty_message_is_refused(place: Place, text: str) -> None:
    with pytest.raises(discord.HTTPException) as refused:
        await place.there.send(text)
    assert (refused.value.status, refused.value.code) == (400, Code.EMPTY_MESSAGE)


async def test_two_thousand_characters_and_not_one_more(place: Place) -> None:
    await place.there.send("🏟" * 2000)
    with pytest.raises(discord.HTTPException, match="2000 or fewer in length") as refused:
        await place.there.send("x" * 2001)
    assert (refused.value.status, refused.value.code) == (400, Code.INVALID_FORM)
    sent = await place.there.send("  blank space at the ends is not kept\n")
    assert sent.content == "blank space at the ends is not kept"
    with pytest.raises(discord.HTTPException, match="2000 or fewer"):
        await sent.edit(content="x" * 2001)
    with pytest.raises(discord.HTTPException, match="empty message"):
        await sent.edit(content="")


async def test_the_same_nonce_brings_the_same_message_back_for_a_while(place: Place) -> None:
    first = await place.there.send("once", nonce="turn-1")
    again = await place.there.send("once more", nonce="turn-1")
    assert (again.id, again.content) == (first.id, "once")
    assert place.fake.shown(place.channel).texts == ["once"]
    await first.delete()
    with pytest.raises(discord.NotFound) as refused:
        await place.there.send("once", nonce="turn-1")
    assert refused.value.code == Code.UNKNOWN_MESSAGE
    place.fake.advance(181)
    await place.there.send("much later", nonce="turn-1")
    assert place.fake.shown(place.channel).texts == ["much later"]
    with pytest.raises(discord.HTTPException, match="25 or fewer"):
        await place.there.send("x", nonce="n" * 26)


async def test_history_is_read_forwards_and_backwards(place: Place) -> None:
    said = [place.fake.people.say(place.channel, place.ada, f"m{n}") for n in range(5)]
    place.fake.people.remove(said[2])
    newest = [one.content async for one in place.there.history(limit=2)]
    assert newest == ["m4", "m3"]
    after = [one.content async for one in place.there.history(limit=None, after=discord.Object(said[0].id))]
    assert after == ["m1", "m3", "m4"]
    before = [one.content async for one in place.there.history(limit=1, before=discord.Object(said[3].id))]
    assert before == ["m1"]
    around = [one.content async for one in place.there.history(limit=3, around=discord.Object(said[3].id))]
    assert sorted(around) == ["m1", "m3", "m4"]
    assert (await place.there.fetch_message(said[1].id)).content == "m1"


async def test_typing_is_seen_until_a_message_comes_or_time_passes(place: Place) -> None:
    await place.there.typing()
    assert place.fake.shown(place.channel).typing
    await place.there.send("done")
    assert not place.fake.shown(place.channel).typing
    await place.there.typing()
    place.fake.advance(11)
    assert not place.fake.shown(place.channel).typing
    place.fake.people.types(place.channel, place.ada)
    await place.fake.until(lambda: "TYPING_START" in place.bot.events)


async def test_silent_messages_and_embeds(place: Place) -> None:
    embed = discord.Embed(title="Weather", description="sunny")
    sent = await place.there.send(f"<@{place.ada.id}>", embed=embed, silent=True)
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.embeds, shown.silent, shown.pinged) == (("Weather\nsunny",), True, frozenset())
    await sent.edit(suppress=True)
    assert place.fake.shown(place.channel).answers[0].embeds == ()
    with pytest.raises(discord.HTTPException, match="256 or fewer"):
        await place.there.send(embed=discord.Embed(title="x" * 257))


async def test_many_are_deleted_at_once_by_permission_only(place: Place) -> None:
    messages = [discord.Object(place.fake.people.say(place.channel, place.ada, f"m{n}").id) for n in range(3)]
    with pytest.raises(discord.Forbidden):
        await place.there.delete_messages(messages)
    place.guild.bot_role.permissions |= Permission.MANAGE_MESSAGES
    await place.there.delete_messages(messages)
    assert place.fake.shown(place.channel).texts == []
    await place.fake.until(lambda: "MESSAGE_DELETE_BULK" in place.bot.events)


# --- answers and mentions ---


async def test_an_answer_to_nothing(place: Place) -> None:
    asked = place.fake.people.say(place.channel, place.ada, "forget it")
    await place.fake.until(lambda: bool(place.bot.told))
    place.fake.people.remove(asked)
    with pytest.raises(discord.HTTPException, match="Unknown message") as refused:
        await place.bot.told[0].reply("what?")
    assert refused.value.code == Code.INVALID_FORM
    lenient = discord.MessageReference.from_message(place.bot.told[0], fail_if_not_exists=False)
    await place.there.send("what?", reference=lenient)
    assert place.fake.shown(place.channel).answers[0].reply_to is None


async def test_who_is_pinged_is_who_may_be(place: Place) -> None:
    fake, people = place.fake, place.fake.people
    role = people.role(place.guild, "crew", place.bob)
    asked = people.say(place.channel, place.ada, "hi")
    await fake.until(lambda: bool(place.bot.told))
    words = f"{place.ada.mention} {place.bob.mention} {role.mention} @everyone"

    async def pinged(allowed: discord.AllowedMentions | None) -> frozenset[str]:
        sent = await place.there.send(words, allowed_mentions=allowed or discord.utils.MISSING)
        return next(one.pinged for one in fake.shown(place.channel).answers if one.id == sent.id)

    assert await pinged(None) == {"Ada", "Bob"}
    assert await pinged(discord.AllowedMentions.none()) == set()
    assert await pinged(discord.AllowedMentions(users=[place.ada], roles=False, everyone=False)) == {"Ada"}
    assert await pinged(discord.AllowedMentions(users=False, roles=True, everyone=False)) == {"Bob"}
    await place.bot.told[0].reply("answered", mention_author=False)
    assert fake.shown(place.channel).answers[-1].pinged == set()
    await place.bot.told[0].reply("answered")
    assert fake.shown(place.channel).answers[-1].pinged == {"Ada"}
    assert asked.pinged == frozenset()


async def test_everyone_needs_the_permission(place: Place) -> None:
    await place.there.send("@everyone")
    assert place.fake.shown(place.channel).answers[-1].pinged == set()
    place.guild.bot_role.permissions |= Permission.MENTION_EVERYONE
    await place.there.send("@everyone")
    assert place.fake.shown(place.channel).answers[-1].pinged == {"Ada", "Bob"}


# --- what the bot may read ---


async def test_without_the_intent_content_is_withheld_except_in_mentions_answers_and_dms(fake: DiscordFake) -> None:
    ada = fake.people.user("Ada")
    channel = fake.people.channel(fake.people.guild("Lovelace", ada), "general")
    bot = Watcher(FAST)
    async with running(fake, bot):
        fake.people.say(channel, ada, "secret", files=[("a.txt", b"data")])
        fake.people.say(channel, ada, f"{fake.bot.mention} open")
        fake.people.say(fake.people.dm(ada), ada, "private")
        await fake.until(lambda: len(bot.told) == 3)
        assert bot.heard == ["", f"{fake.bot.mention} open", "private"]
        assert bot.told[0].attachments == []
        there = await bot.fetch_channel(channel.id)
        assert isinstance(there, discord.TextChannel)
        own = await there.send("mine")
        fake.people.say(channel, ada, "an answer that pings", reply_to=fake.message(channel, own.id))
        fake.people.say(channel, ada, "one that does not", reply_to=fake.message(channel, own.id), ping=False)
        await fake.until(lambda: len(bot.told) == 6)
        assert bot.heard[3:] == ["mine", "an answer that pings", ""]


async def test_without_the_grant_content_is_withheld_from_requests_too() -> None:
    async with DiscordFake(granted=Intent(0)) as fake:
        ada = fake.people.user("Ada")
        channel = fake.people.channel(fake.people.guild("Lovelace", ada), "general")
        secret = fake.people.say(channel, ada, "secret")
        bot = Watcher(FAST)
        async with running(fake, bot):
            there = bot.get_channel(channel.id)
            assert isinstance(there, discord.TextChannel)
            assert (await there.fetch_message(secret.id)).content == ""


async def test_events_need_their_intents(fake: DiscordFake) -> None:
    ada = fake.people.user("Ada")
    channel = fake.people.channel(fake.people.guild("Lovelace", ada), "general")
    bot = Watcher(discord.Intents(guilds=True, dm_messages=True))
    async with running(fake, bot):
        message = fake.people.say(channel, ada, "unheard")
        fake.people.react(message, ada, "👍")
        fake.people.types(channel, ada)
        fake.people.say(fake.people.dm(ada), ada, "heard")
        await fake.until(lambda: bot.heard == ["heard"])
        assert bot.events == ["READY", "GUILD_CREATE", "MESSAGE_CREATE"]


# --- files ---


async def test_files_go_out_and_come_in(place: Place) -> None:
    files = [discord.File(io.BytesIO(b"one"), "one two.txt", description="first"), discord.File(io.BytesIO(b"2"), "b")]
    sent = await place.there.send("see", files=files)
    shown = place.fake.shown(place.channel).answers[0]
    assert [(one.name, one.data, one.description) for one in shown.files] == [
        ("one_two.txt", b"one", "first"),
        ("b", b"2", None),
    ]
    assert await sent.attachments[0].read() == b"one"
    place.fake.people.say(place.channel, place.ada, files=[("notes.txt", b"noted")])
    await place.fake.until(lambda: len(place.bot.told) == 2)
    got = place.bot.told[1].attachments[0]
    assert (got.filename, got.size, got.content_type) == ("notes.txt", 5, "text/plain; charset=utf-8")
    assert await got.read() == b"noted"
    place.fake.advance(90_000)
    with pytest.raises(discord.NotFound):
        await got.read()


async def test_files_are_changed_by_edits(place: Place) -> None:
    sent = await place.there.send("see", file=discord.File(io.BytesIO(b"old"), "old.txt"))
    sent = await sent.add_files(discord.File(io.BytesIO(b"new"), "new.txt"))
    assert [one.filename for one in sent.attachments] == ["old.txt", "new.txt"]
    sent = await sent.remove_attachments(sent.attachments[0])
    assert [one.name for one in place.fake.shown(place.channel).answers[0].files] == ["new.txt"]
    await sent.edit(content="still there")
    assert [one.name for one in place.fake.shown(place.channel).answers[0].files] == ["new.txt"]


async def test_a_file_that_is_too_large_and_one_that_lies_about_its_size(place: Place) -> None:
    with pytest.raises(discord.HTTPException) as refused:
        await place.there.send(file=discord.File(io.BytesIO(bytes(10 * 1024 * 1024 + 1)), "big"))
    assert (refused.value.status, refused.value.code) == (413, Code.TOO_LARGE)
    place.fake.people.say(place.channel, place.ada, files=[("a", b"tiny")], claimed_bytes=1 << 40)
    await place.fake.until(lambda: bool(place.bot.told))
    assert place.bot.told[0].attachments[0].size == 1 << 40


# --- reactions ---


async def test_reactions_both_ways(place: Place) -> None:
    message = place.fake.people.say(place.channel, place.ada, "nice?")
    await place.fake.until(lambda: bool(place.bot.told))
    own = place.fake.people.emoji(place.guild, "party")
    await place.bot.told[0].add_reaction("👍")
    await place.bot.told[0].add_reaction(own)
    place.fake.people.react(message, place.bob, "👍")
    assert place.fake.shown(place.channel).messages[0].reactions == (("👍", 2), (own, 1))
    await place.fake.until(lambda: place.bot.events.count("MESSAGE_REACTION_ADD") == 3)
    fetched = await place.there.fetch_message(message.id)
    first = fetched.reactions[0]
    assert (str(first.emoji), first.count, first.me) == ("👍", 2, True)
    assert {user.id async for user in first.users()} == {place.bob.id, place.fake.bot.id}
    await fetched.remove_reaction("👍", discord.Object(place.fake.bot.id))
    place.fake.people.unreact(message, place.bob, "👍")
    assert place.fake.shown(place.channel).messages[0].reactions == ((own, 1),)
    with pytest.raises(discord.HTTPException) as refused:
        await place.bot.told[0].add_reaction("thumbs")
    assert refused.value.code == Code.UNKNOWN_EMOJI
    with pytest.raises(discord.Forbidden):
        await fetched.clear_reactions()
    place.guild.bot_role.permissions |= Permission.MANAGE_MESSAGES
    await fetched.clear_reaction(own)
    await fetched.clear_reactions()
    assert place.fake.shown(place.channel).messages[0].reactions == ()


# --- threads ---


async def test_a_thread_from_a_message_has_its_id(place: Place) -> None:
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


async def test_a_thread_alone_is_archived_opened_locked_and_removed(place: Place) -> None:
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


async def test_threads_of_persons(place: Place) -> None:
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


async def test_a_dm_both_ways_and_one_that_is_not_wanted(place: Place) -> None:
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


async def test_permissions_are_looked_at(place: Place) -> None:
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


async def test_the_bot_is_thrown_out_and_let_in_again(place: Place) -> None:
    there = place.there
    place.fake.people.kick_bot(place.guild)
    await place.fake.until(lambda: not place.bot.guilds)
    with pytest.raises(discord.Forbidden) as refused:
        await there.send("hello?")
    assert refused.value.code == Code.MISSING_ACCESS
    place.fake.people.add_bot(place.guild)
    await place.fake.until(lambda: [one.id for one in place.bot.guilds] == [place.guild.id])


async def test_a_guild_has_an_outage(place: Place) -> None:
    place.fake.people.outage(place.guild)
    await place.fake.until(lambda: place.bot.guilds[0].unavailable)
    place.fake.people.say(place.channel, place.ada, "unheard")
    place.fake.people.recover(place.guild)
    await place.fake.until(lambda: not place.bot.guilds[0].unavailable)
    place.fake.people.say(place.channel, place.ada, "heard")
    await place.fake.until(lambda: place.bot.heard == ["heard"])


async def test_guilds_channels_and_members_can_be_asked_for(place: Place) -> None:
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
    assert Permission.SEND_MESSAGES in USUAL


async def test_pointing_is_taken_back(fake: DiscordFake) -> None:
    before = (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
    with fake.pointed():
        assert fake.api_url == discord.http.Route.BASE
        assert str(discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY) == fake.gateway_url
    assert before == (discord.http.Route.BASE, discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY)
