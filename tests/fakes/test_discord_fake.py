"""The stand-in for Discord, driven by the real library: messages, mentions, files, reactions."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.discord import (
    Code,
    DiscordFake,
    Intent,
    MessageKind,
    Op,
    Permission,
    Route,
)
from tests.fakes.discord.library import Place, Watcher, discord, placed, running, serving

FAST = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)


@pytest.fixture
async def fake() -> AsyncGenerator[DiscordFake]:
    async with serving(DiscordFake()) as server:
        yield server


@pytest.fixture
async def place(fake: DiscordFake) -> AsyncGenerator[Place[Watcher]]:
    async with placed(fake, Watcher()) as there:
        yield there


# --- messages ---


async def test_a_message_comes_in_and_an_answer_goes_out(place: Place[Watcher]) -> None:
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


async def test_a_message_is_edited_and_deleted(place: Place[Watcher]) -> None:
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


async def test_what_persons_edit_and_delete_is_told(place: Place[Watcher]) -> None:
    message = place.fake.people.say(place.channel, place.ada, "teh")
    place.fake.people.edit(message, "the")
    place.fake.people.unfurl(message, "A page", "https://example.org")
    place.fake.people.remove(message)
    await place.fake.until(lambda: "MESSAGE_DELETE" in place.bot.events)
    assert place.bot.events.count("MESSAGE_UPDATE") == 2
    with pytest.raises(discord.NotFound):
        await place.there.fetch_message(message.id)


async def test_another_bot_is_known_as_one_and_strangers_cannot_speak(place: Place[Watcher]) -> None:
    robot = place.fake.people.other_bot("robot")
    with pytest.raises(AssertionError, match="not in the guild"):
        place.fake.people.say(place.channel, robot, "beep")
    place.fake.people.join(place.guild, robot)
    place.fake.people.say(place.channel, robot, "beep")
    await place.fake.until(lambda: place.bot.heard == ["beep"])
    assert place.bot.told[0].author.bot


@pytest.mark.parametrize("text", ["", "   \n "])
async def test_an_empty_message_is_refused(place: Place[Watcher], text: str) -> None:
    with pytest.raises(discord.HTTPException) as refused:
        await place.there.send(text)
    assert (refused.value.status, refused.value.code) == (400, Code.EMPTY_MESSAGE)


async def test_two_thousand_characters_and_not_one_more(place: Place[Watcher]) -> None:
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


async def test_the_same_nonce_brings_the_same_message_back_for_a_while(place: Place[Watcher]) -> None:
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


async def test_history_is_read_forwards_and_backwards(place: Place[Watcher]) -> None:
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


async def test_typing_is_seen_until_a_message_comes_or_time_passes(place: Place[Watcher]) -> None:
    await place.there.typing()
    assert place.fake.shown(place.channel).typing
    await place.there.send("done")
    assert not place.fake.shown(place.channel).typing
    await place.there.typing()
    place.fake.advance(11)
    assert not place.fake.shown(place.channel).typing
    place.fake.people.types(place.channel, place.ada)
    await place.fake.until(lambda: "TYPING_START" in place.bot.events)


async def test_silent_messages_and_embeds(place: Place[Watcher]) -> None:
    embed = discord.Embed(title="Weather", description="sunny")
    sent = await place.there.send(f"<@{place.ada.id}>", embed=embed, silent=True)
    shown = place.fake.shown(place.channel).answers[0]
    assert (shown.embeds, shown.silent, shown.pinged) == (("Weather\nsunny",), True, frozenset())
    await sent.edit(suppress=True)
    assert place.fake.shown(place.channel).answers[0].embeds == ()
    with pytest.raises(discord.HTTPException, match="256 or fewer"):
        await place.there.send(embed=discord.Embed(title="x" * 257))


async def test_many_are_deleted_at_once_by_permission_only(place: Place[Watcher]) -> None:
    messages = [discord.Object(place.fake.people.say(place.channel, place.ada, f"m{n}").id) for n in range(3)]
    with pytest.raises(discord.Forbidden):
        await place.there.delete_messages(messages)
    place.guild.bot_role.permissions |= Permission.MANAGE_MESSAGES
    await place.there.delete_messages(messages)
    assert place.fake.shown(place.channel).texts == []
    await place.fake.until(lambda: "MESSAGE_DELETE_BULK" in place.bot.events)


# --- answers and mentions ---


async def test_an_answer_to_nothing(place: Place[Watcher]) -> None:
    asked = place.fake.people.say(place.channel, place.ada, "forget it")
    await place.fake.until(lambda: bool(place.bot.told))
    place.fake.people.remove(asked)
    with pytest.raises(discord.HTTPException, match="Unknown message") as refused:
        await place.bot.told[0].reply("what?")
    assert refused.value.code == Code.INVALID_FORM
    lenient = discord.MessageReference.from_message(place.bot.told[0], fail_if_not_exists=False)
    await place.there.send("what?", reference=lenient)
    assert place.fake.shown(place.channel).answers[0].reply_to is None


async def test_who_is_pinged_is_who_may_be(place: Place[Watcher]) -> None:
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
    assert await pinged(discord.AllowedMentions(users=[discord.Object(place.ada.id)], roles=False, everyone=False)) == {
        "Ada"
    }
    assert await pinged(discord.AllowedMentions(users=False, roles=True, everyone=False)) == {"Bob"}
    await place.bot.told[0].reply("answered", mention_author=False)
    assert fake.shown(place.channel).answers[-1].pinged == set()
    await place.bot.told[0].reply("answered")
    assert fake.shown(place.channel).answers[-1].pinged == {"Ada"}
    assert asked.pinged == frozenset()


async def test_everyone_needs_the_permission(place: Place[Watcher]) -> None:
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


async def test_files_go_out_and_come_in(place: Place[Watcher]) -> None:
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
    picture = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4)
    place.fake.people.say(place.channel, place.ada, files=[("a.png", picture), ("b.whatever", b"?")])
    await place.fake.until(lambda: len(place.bot.told) == 3)
    seen, unknown = place.bot.told[2].attachments
    assert (seen.content_type, seen.width, seen.height, unknown.content_type) == ("image/png", 640, 480, None)
    place.fake.advance(90_000)
    with pytest.raises(discord.NotFound):
        await got.read()


async def test_files_are_changed_by_edits(place: Place[Watcher]) -> None:
    sent = await place.there.send("see", file=discord.File(io.BytesIO(b"old"), "old.txt"))
    sent = await sent.add_files(discord.File(io.BytesIO(b"new"), "new.txt"))
    assert [one.filename for one in sent.attachments] == ["old.txt", "new.txt"]
    sent = await sent.remove_attachments(sent.attachments[0])
    assert [one.name for one in place.fake.shown(place.channel).answers[0].files] == ["new.txt"]
    await sent.edit(content="still there")
    assert [one.name for one in place.fake.shown(place.channel).answers[0].files] == ["new.txt"]


async def test_a_file_that_is_too_large_and_one_that_lies_about_its_size(place: Place[Watcher]) -> None:
    with pytest.raises(discord.HTTPException) as refused:
        await place.there.send(file=discord.File(io.BytesIO(bytes(10 * 1024 * 1024 + 1)), "big"))
    assert (refused.value.status, refused.value.code) == (413, Code.TOO_LARGE)
    place.fake.people.say(place.channel, place.ada, files=[("a", b"tiny")], claimed_bytes=1 << 40)
    await place.fake.until(lambda: bool(place.bot.told))
    assert place.bot.told[0].attachments[0].size == 1 << 40


# --- reactions ---


async def test_reactions_both_ways(place: Place[Watcher]) -> None:
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
