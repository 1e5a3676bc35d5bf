"""The stand-in for Discord, driven by the real library: messages, files, threads, mentions."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from tests.fakes.discord import Code, DiscordFake, Op, Route
from tests.fakes.discord.library import Watcher, discord, running


@pytest.fixture
async def fake() -> AsyncGenerator[DiscordFake]:
    async with DiscordFake() as server:
        yield server


async def test_login_and_messages(fake: DiscordFake) -> None:
    ada = fake.people.user("Ada")
    channel = fake.people.channel(fake.people.guild("Lovelace", ada), "general")
    bot = Watcher()
    async with running(fake, bot):
        assert bot.user is not None
        question = fake.people.say(channel, ada, "hello")
        await fake.until(lambda: bot.heard == ["hello"])
        heard = bot.told[0]
        assert (heard.content, heard.author.id, heard.channel.id) == ("hello", ada.id, channel.id)
        sent = await heard.channel.send("hello yourself", nonce="n1")
        assert (await fake.answer_to(question)).text == "hello yourself"
        await sent.edit(content="hello you")
        again = await heard.channel.send("hello yourself", nonce="n1")
        assert again.id == sent.id
        assert fake.shown(channel).answers[0].earlier == ("hello yourself",)
        await sent.delete()
        assert fake.shown(channel).texts == ["hello"]
        with pytest.raises(discord.NotFound) as refused:
            await heard.channel.send("hello yourself", nonce="n1")
        assert refused.value.code == Code.UNKNOWN_MESSAGE
    assert fake.log.routes()[:3] == [Route.GET_ME, Route.GET_APPLICATION, Route.HANDSHAKE]
    assert len(fake.gateway.of(Op.IDENTIFY)) == 1
