"""The gateway of the stand-in for Discord, driven by the real library: sessions, what cuts them, and what the library makes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.fakes.discord import (
    Answer,
    Channel,
    Close,
    Cut,
    Delay,
    DiscordFake,
    Ignore,
    Intent,
    Invalid,
    Op,
    Reset,
    Route,
    User,
)
from tests.fakes.discord.ids import shard_of
from tests.fakes.discord.library import Watcher, discord, running, serving, wide_intents


@pytest.fixture
async def fake() -> AsyncGenerator[DiscordFake]:
    async with serving(DiscordFake()) as server:
        yield server


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library waits for up to some seconds before it connects again; not here."""

    def delay(_: object) -> float:
        return 0.01

    monkeypatch.setattr("discord.backoff.ExponentialBackoff.delay", delay)


def furnished(fake: DiscordFake) -> tuple[User, Channel]:
    """A person and a channel."""
    ada = fake.people.user("Ada")
    return ada, fake.people.channel(fake.people.guild("Lovelace", ada), "general")


async def back(fake: DiscordFake, resumes: int) -> None:
    """Wait until the client has resumed so often."""
    await fake.until(lambda: fake.connected and fake.gateway.sessions[-1].resumes == resumes)


# --- beginning ---


async def test_ready_tells_the_address_for_coming_back(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        session = fake.gateway.live[0]
        assert session.sent[0].body["resume_gateway_url"] == fake.resume_url
        assert session.intents == Intent(wide_intents().value)
        assert bot.events[:2] == ["READY", "GUILD_CREATE"]
        assert [one.id for one in bot.guilds[0].text_channels] == [channel.id]
        assert fake.log.of(Route.GET_GATEWAY_BOT) == []
        assert bot.guilds[0].owner_id == ada.id


async def test_a_wrong_token_is_refused_by_the_gateway_too(fake: DiscordFake) -> None:
    fake.gateway.react(Op.IDENTIFY, Close(4004, "Authentication failed."))
    bot = Watcher()
    with pytest.raises(discord.ConnectionClosed) as closed:
        async with running(fake, bot):
            pass
    assert closed.value.code == 4004


async def test_intents_that_were_not_granted() -> None:
    async with serving(DiscordFake(granted=Intent(0))) as fake:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with running(fake, Watcher()):
                pass
        assert fake.gateway.connections[0].close_code == 4014


async def test_intents_that_are_none(fake: DiscordFake) -> None:
    with pytest.raises(discord.ConnectionClosed) as closed:
        async with running(fake, Watcher(discord.Intents._from_value(1 << 40))):
            pass
    assert closed.value.code == 4013


async def test_shards_hear_their_guilds_only() -> None:
    async with serving(DiscordFake(shards=2)) as fake:
        ada = fake.people.user("Ada")
        guilds = [fake.people.guild("0", ada)]
        while len({shard_of(one.id, 2) for one in guilds}) < 2:
            guilds.append(fake.people.guild(str(len(guilds)), ada))
        channels = [fake.people.channel(guild, "general") for guild in guilds]
        told: list[tuple[str, int]] = []

        class Sharded(discord.AutoShardedClient):
            async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None: ...

            async def on_message(self, message: discord.Message) -> None:
                told.append((message.content, message.guild.shard_id if message.guild else 0))

        bot = Sharded(intents=wide_intents(), guild_ready_timeout=0.05)
        async with running(fake, bot):
            assert sorted(session.shard for session in fake.gateway.live) == [0, 1]
            for guild, channel in zip(guilds, channels, strict=True):
                fake.people.say(channel, ada, guild.name)
            fake.people.say(fake.people.dm(ada), ada, "private")
            await fake.until(lambda: len(told) == len(guilds) + 1)
            expected = [(guild.name, shard_of(guild.id, 2)) for guild in guilds]
            assert sorted(told) == sorted([*expected, ("private", 0)])
            fake.gateway.cut(shard=1)
            await fake.until(lambda: [s.resumes for s in sorted(fake.gateway.live, key=lambda s: s.shard)] == [0, 1])
        assert len(fake.log.of(Route.GET_GATEWAY_BOT)) == 1


async def test_members_are_told_when_asked_for(fake: DiscordFake) -> None:
    ada, _ = furnished(fake)
    intents = wide_intents()
    intents.members = True
    bot = Watcher(intents)
    async with running(fake, bot):
        assert sorted(one.id for one in bot.guilds[0].members) == sorted([ada.id, fake.bot.id])


# --- ending and coming back ---


@pytest.mark.parametrize("code", [1000, 4000, 4001, 4008])
async def test_after_a_close_what_was_missed_is_told(fake: DiscordFake, code: int) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.people.say(channel, ada, "before")
        fake.gateway.react(Op.RESUME, None)
        fake.gateway.close(code)
        await fake.until(lambda: not fake.connected)
        fake.people.say(channel, ada, "meanwhile")
        await back(fake, 1)
        fake.people.say(channel, ada, "after")
        await fake.until(lambda: bot.heard == ["before", "meanwhile", "after"])
        assert bot.events.count("RESUMED") == 1
        assert fake.log.routes(Route.GET_ME, Route.GET_APPLICATION) == [Route.HANDSHAKE, Route.RESUME_HANDSHAKE]


@pytest.mark.parametrize("clean", [False, True])
async def test_a_cut_without_a_word(fake: DiscordFake, clean: bool) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.cut(clean=clean)
        await fake.until(lambda: not fake.connected)
        fake.people.say(channel, ada, "meanwhile")
        await back(fake, 1)
        await fake.until(lambda: bot.heard == ["meanwhile"])
        assert fake.gateway.connections[0].close_code == 1006


async def test_a_timed_out_session_begins_anew(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.close(4009)
        await fake.until(lambda: not fake.connected)
        fake.people.say(channel, ada, "lost")
        await fake.until(lambda: len(fake.gateway.of(Op.IDENTIFY)) == 2)
        await fake.until(lambda: fake.connected)
        fake.people.say(channel, ada, "heard")
        await fake.until(lambda: bot.heard == ["heard"])
        assert len(fake.gateway.of(Op.RESUME)) == 1
        assert len(fake.gateway.ended) == 1


async def test_asked_to_reconnect(fake: DiscordFake) -> None:
    furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.reconnect()
        await back(fake, 1)
        assert [one.path for one in fake.gateway.connections] == ["/gateway", "/resume-gateway"]
        # The library closes with 4000, so that the session lives on.
        assert fake.gateway.connections[0].close_code == 4000


async def test_an_invalid_session_that_can_be_resumed(fake: DiscordFake) -> None:
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.invalidate(resumable=True)
        await back(fake, 1)
        assert len(fake.gateway.of(Op.IDENTIFY)) == 1


async def test_an_invalid_session_that_cannot(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.invalidate(resumable=False)
        await fake.until(lambda: bot.events.count("READY") == 2)
        assert fake.gateway.of(Op.RESUME) == []
        fake.people.say(channel, ada, "anew")
        await fake.until(lambda: bot.heard == ["anew"])


async def test_a_resume_is_refused(fake: DiscordFake) -> None:
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.react(Op.RESUME, Invalid())
        fake.gateway.cut()
        await fake.until(lambda: bot.events.count("READY") == 2)
        fake.gateway.forget()
        fake.gateway.cut()
        await fake.until(lambda: bot.events.count("READY") == 3)


async def test_the_handshake_for_coming_back_is_refused_once(fake: DiscordFake) -> None:
    bot = Watcher()
    async with running(fake, bot):
        fake.script(Route.RESUME_HANDSHAKE, Answer(503))
        fake.gateway.cut()
        await back(fake, 1)
        assert [call.status for call in fake.log.of(Route.RESUME_HANDSHAKE)] == [503, 101]


async def test_an_event_is_told_twice_after_resuming(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.people.say(channel, ada, "twice")
        await fake.until(lambda: bot.heard == ["twice"])
        fake.gateway.repeat_on_resume(1)
        fake.gateway.cut()
        await back(fake, 1)
        await fake.until(lambda: bot.heard == ["twice", "twice"])
        assert bot.told[0].id == bot.told[1].id
        fake.gateway.redeliver(fake.gateway.told("MESSAGE_CREATE")[0])
        await fake.until(lambda: bot.heard == ["twice", "twice", "twice"])


async def test_events_come_in_another_order_and_some_never(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        fake.gateway.hold()
        for text in ("one", "two", "three"):
            fake.people.say(channel, ada, text)
        await asyncio.sleep(0.02)
        assert bot.heard == []
        fake.gateway.release([2, 0])
        await fake.until(lambda: bot.heard == ["three", "one"])


async def test_the_echo_comes_before_the_answer_or_after_it(fake: DiscordFake) -> None:
    _, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        there = bot.get_channel(channel.id)
        assert isinstance(there, discord.TextChannel)
        fake.script(Route.CREATE_MESSAGE, Delay(1.0, after=True))
        sending = asyncio.create_task(there.send("first"))
        await fake.until(lambda: bot.heard == ["first"])
        assert not sending.done()
        await sending
        fake.gateway.hold()
        await there.send("second")
        assert bot.heard == ["first"]
        fake.gateway.release()
        await fake.until(lambda: bot.heard == ["first", "second"])


# --- silence ---


async def test_a_deaf_connection_is_left_and_nothing_is_lost() -> None:
    async with serving(DiscordFake(heartbeat_seconds=0.1)) as fake:
        ada, channel = furnished(fake)
        bot = Watcher(heartbeat_timeout=0.3)
        async with running(fake, bot):
            fake.gateway.deafen()
            fake.people.say(channel, ada, "into the void")
            await fake.until(lambda: len(fake.gateway.connections[0].beats) >= 2)
            await back(fake, 1)
            await fake.until(lambda: bot.heard == ["into the void"])


async def test_missing_acknowledgements_go_unnoticed_while_events_come() -> None:
    """A hazard of the library: any frame counts as a sign of life, so missing acknowledgements alone are never found."""
    async with serving(DiscordFake(heartbeat_seconds=0.2)) as fake:
        ada, channel = furnished(fake)
        bot = Watcher(heartbeat_timeout=1.0)
        async with running(fake, bot):
            fake.gateway.stop_acks()
            for number in range(40):
                fake.people.say(channel, ada, str(number))
                await asyncio.sleep(0.05)
            assert len(fake.gateway.connections) == 1
            assert bot.latency < 1.0
            # Without events the library does find it.
            await back(fake, 1)


async def test_who_sends_no_heartbeat_is_thrown_out() -> None:
    async with serving(DiscordFake(heartbeat_seconds=0.1)) as fake:
        bot = Watcher()
        async with running(fake, bot):
            ws = bot.ws
            assert ws._keep_alive is not None
            ws._keep_alive.stop()
            await fake.until(lambda: fake.gateway.connections[0].close_code == 4009)


async def test_an_identify_that_is_not_heard(fake: DiscordFake) -> None:
    fake.gateway.react(Op.IDENTIFY, Ignore())
    bot = Watcher(heartbeat_timeout=0.2)
    with fake.pointed():
        task = asyncio.create_task(bot.start(fake.token))
        # The library comes back with a RESUME that names no session.
        await fake.until(lambda: len(fake.gateway.of(Op.IDENTIFY)) == 2)
        assert [one.data for one in fake.gateway.of(Op.RESUME)] == [
            {"seq": None, "session_id": None, "token": fake.token}
        ]
        await fake.until_connected()
        await bot.close()
        await task


# --- what ends the library ---


async def test_a_first_handshake_that_fails_ends_the_client_by_an_attribute_error(fake: DiscordFake) -> None:
    """A hazard of the library: it wants to resume a connection that never was."""
    fake.script(Route.HANDSHAKE, Answer(503))
    with pytest.raises(AttributeError):
        async with running(fake, Watcher()):
            pass
    # Two of them: aiohttp itself repeats a GET whose kept connection turns out to be dead.
    fake.script(Route.HANDSHAKE, Reset(), Reset())
    with pytest.raises(AttributeError):
        async with running(fake, Watcher()):
            pass


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # of the library
async def test_a_cut_in_place_of_ready(fake: DiscordFake) -> None:
    fake.gateway.react(Op.IDENTIFY, Cut())
    bot = Watcher()
    async with running(fake, bot):
        assert len(fake.gateway.of(Op.IDENTIFY)) == 2


async def test_the_server_goes_down_and_comes_up(fake: DiscordFake) -> None:
    ada, channel = furnished(fake)
    bot = Watcher()
    async with running(fake, bot):
        await fake.down()
        await asyncio.sleep(0.05)
        fake.people.say(channel, ada, "meanwhile")
        await fake.up()
        await back(fake, 1)
        await fake.until(lambda: bot.heard == ["meanwhile"])
