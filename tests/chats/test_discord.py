"""What only Discord has: gaps, handshakes, intents, nonces, threads, slash commands."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import pytest

from adapters.discord.port import nonce_of
from adapters.discord.section import account_of
from tests.chats.discord_harness import DiscordHarness, discord_harness
from tests.chats.harness import answer, quiet, running, starting, status, status_until, taken_in, texts
from tests.fakes.common import Answer, LoseAnswer
from tests.fakes.discord import Close, Op, Route, flood, shield_ban
from tests.fakes.discord.faults import VIA
from tests.fakes.discord.objects import NO_PERMISSION


@pytest.fixture
async def discord(tmp_path: Path) -> AsyncGenerator[DiscordHarness]:
    async with discord_harness(tmp_path) as harness:
        yield harness


def test_a_nonce_follows_from_the_part_and_fits() -> None:
    assert nonce_of("a") == nonce_of("a") != nonce_of("b")
    assert len(nonce_of("x" * 300)) == 25


def test_the_bots_id_is_in_its_token() -> None:
    assert account_of("MTAwMDAwMDAwMDAwMDAwMDAwMA.x.y") == "1000000000000000000"
    assert account_of("nonsense") == ""


async def test_what_was_said_in_a_gap_is_answered_and_marked(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        discord.fake.gateway.react(Op.RESUME, Close(4009))
        discord.fake.gateway.forget()
        discord.fake.gateway.cut()
        discord.say(chat, ada, "say two")
        await answer(discord, chat, "two", 40)
        assert "[Sent while I was offline]" in str(discord.model.requests[-1][-1]["content"])
        await quiet(discord, chat)
        assert texts(discord, chat) == ["one", "two"]


async def test_a_refused_first_handshake_is_survived(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    discord.fake.script(Route.HANDSHAKE, Answer(503), Answer(503))
    async with running(discord):
        discord.say(chat, ada, "say here")
        await answer(discord, chat, "here", 30)


async def test_a_429_of_the_shield_is_a_pause_and_no_end(discord: DiscordHarness) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    chat = discord.private(ada)
    other = discord.private(ben)
    async with running(discord) as up:
        discord.fake.script(Route.TYPING, shield_ban())
        discord.say(chat, ada, "hold on")
        await asyncio.wait_for(discord.model.holding.wait(), 60)
        await discord.until(lambda: bool(discord.fake.log.of(Route.TYPING)))
        discord.say(other, ben, "say unharmed")
        await answer(discord, other, "unharmed")
        assert (await status(up.url))["adapters"][0]["state"] == "up"
        discord.model.release()


async def test_a_missing_intent_is_said_in_words(discord: DiscordHarness) -> None:
    discord.fake.gateway.react(Op.IDENTIFY, Close(4014), Close(4014))
    async with starting(discord) as up:
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert "intent" in str(told["adapters"][0]).lower()


async def test_a_message_taken_back_while_it_waits_is_not_answered(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.say(chat, ada, "hold on")
        await asyncio.wait_for(discord.model.holding.wait(), 60)
        waiting = discord.say(chat, ada, "say never")
        await answer(discord, chat, "Queued")
        discord.remove(chat, waiting)
        await discord.until(lambda: not [t for t in texts(discord, chat) if "Queued" in t])
        discord.model.release()
        await answer(discord, chat, "on end")
        await quiet(discord, chat)
        assert "never" not in texts(discord, chat)


async def test_messages_that_were_deleted_together_while_they_wait_are_not_answered(discord: DiscordHarness) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    group = discord.group(ada, ben)
    async with running(discord):
        discord.say(group, ada, "hold on", mention=True)
        await asyncio.wait_for(discord.model.holding.wait(), 60)
        waiting = [discord.say(group, who, f"say never{who.name}", mention=True) for who in (ada, ben)]
        await answer(discord, group, "Queued")
        await discord.until(lambda: taken_in(discord.folder, f"say never{ben.name}"))
        discord.fake.world.purge(group, [group.messages[int(one)] for one in waiting])
        await discord.until(lambda: not [t for t in texts(discord, group) if "Queued" in t])
        discord.model.release()
        discord.say(group, ada, "say last", mention=True)
        await answer(discord, group, "last")
        assert "never" not in "".join(texts(discord, group))


async def test_where_rights_were_missing_for_a_part_of_an_answer_it_is_missed_when_they_are_there(
    discord: DiscordHarness,
) -> None:
    """Who asked was told so in private; whoever reads the channel sees no hole either."""
    ada = discord.person("Ada")
    group = discord.group(ada)
    async with running(discord) as up:
        discord.say(group, ada, "hold on", mention=True)
        await asyncio.wait_for(discord.model.holding.wait(), 60)
        discord.silence(group)
        discord.model.release()
        await status_until(up.url, lambda told: bool(told["troubled_chats"]))
        discord.fake.people.permit(group, denied=NO_PERMISSION)
        discord.say(group, ada, "say again", mention=True)
        await answer(discord, group, "A part of the answer could not be sent: Missing Permissions")


async def test_an_edit_that_adds_the_name_is_a_message_once_and_of_a_day_at_most(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = discord.person("Ada")
    group = discord.group(ada)
    name = f"<@{discord.fake.world.bot.id}>"
    async with running(discord):
        said = discord.say(group, ada, "say forgotten name")
        for words in ("say still without", f"{name} say with it"):
            discord.edit(group, said, words)
        await answer(discord, group, "with it")
        discord.edit(group, said, f"{name} say it again")
        monkeypatch.setattr("gateway.chats.arrival.EDITED_MS", 0)
        discord.edit(group, discord.say(group, ada, "say old"), f"{name} say too old")
        await quiet(discord, group)
        assert texts(discord, group) == ["with it"]


async def test_commands_are_registered_only_when_they_change(discord: DiscordHarness) -> None:
    for _ in range(2):
        async with running(discord):
            pass
    assert len(discord.fake.world.commands.syncs) == 1


async def test_a_lost_answer_is_settled_by_the_nonce(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    discord.fake.script(Route.CREATE_MESSAGE, LoseAnswer(), LoseAnswer())
    async with running(discord):
        discord.say(chat, ada, "say just one")
        await answer(discord, chat, "just one")
        await asyncio.sleep(4)
        calls = discord.fake.log.of(Route.CREATE_MESSAGE)
        assert len(calls) >= 2
        assert len({str(call.params.get("nonce")) for call in calls}) == 1
        assert texts(discord, chat) == ["just one"]


async def test_a_mention_can_open_a_thread(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    channel = discord.group(ada)
    async with running(discord, OUTSPOKEN_DISCORD__AUTO_THREADS="true"):
        number = discord.say(channel, ada, "say in the thread", mention=True)
        await discord.until(lambda: channel.messages[int(number)].thread is not None)
        thread = channel.messages[int(number)].thread
        assert thread is not None
        await answer(discord, thread, "in the thread")
        assert texts(discord, channel) == []
        discord.say(thread, ada, "recall")
        await answer(discord, thread, "in the thread", 15)


async def test_nobody_is_pinged_by_the_model(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    group = discord.group(ada)
    async with running(discord):
        discord.say(group, ada, f"say <@{ada.id}> and @everyone look", mention=True)
        await answer(discord, group, "look")
        shown = [one for one in discord.fake.shown(group).messages if one.by_bot]
        assert all(not one.pinged - {"Ada"} for one in shown)
        assert shown[0].text.count("@everyone") == 1


async def test_a_configured_gateway_is_kept_when_a_session_goes_on(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.fake.gateway.cut()
        await discord.until(lambda: discord.fake.gateway.sessions[0].resumes > 0, 30)
        discord.say(chat, ada, "say here")
        await answer(discord, chat, "here", 30)
        assert [one.path for one in discord.fake.gateway.connections] == ["/gateway", "/gateway"]


async def test_while_the_connection_is_gone_status_does_not_say_up(discord: DiscordHarness) -> None:
    async with running(discord) as up:
        discord.fake.script(Route.HANDSHAKE, *[Answer(503)] * 3)
        discord.fake.gateway.cut()
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] != "up")
        assert "connections to Discord are gone" in told["adapters"][0]["words"]
        await status_until(up.url, lambda told: told["adapters"][0]["state"] == "up")


@pytest.mark.parametrize("via", [True, False])
async def test_a_429_is_waited_for_as_long_as_it_says(discord: DiscordHarness, via: bool) -> None:
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord):
        discord.fake.script(Route.CREATE_MESSAGE, flood(2, via=via))
        began = time.monotonic()
        discord.say(chat, ada, "say patience")
        await answer(discord, chat, "patience", 15)
        assert 2 <= time.monotonic() - began < 60  # on a busy machine, too


async def test_the_limits_of_several_channels_are_not_the_bots(discord: DiscordHarness) -> None:
    people = [discord.person(name) for name in ("Ada", "Ben", "Cy", "Dee")]
    chats = [discord.private(one) for one in people]
    async with running(discord):
        discord.fake.script(Route.CREATE_MESSAGE, *[flood(20)] * 3)
        for one, chat in zip(people[:3], chats, strict=False):
            discord.say(chat, one, "say later")
        await discord.until(lambda: sum(call.status == 429 for call in discord.fake.log) == 3, 20)
        discord.say(chats[3], people[3], "say unharmed")
        await answer(discord, chats[3], "unharmed", 8)


async def test_a_limit_of_the_whole_bot_is_kept_by_all_chats(discord: DiscordHarness) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    chat, other = discord.private(ada), discord.private(ben)
    async with running(discord):
        discord.fake.script(Route.CREATE_MESSAGE, flood(3, everywhere=True))
        discord.say(chat, ada, "say one")
        await discord.until(lambda: any(call.status == 429 for call in discord.fake.log), 20)
        refused = time.monotonic()
        discord.say(other, ben, "say two")
        await answer(discord, other, "two", 15)
        assert time.monotonic() - refused > 2


@pytest.mark.parametrize("code", [200000, 240000, 20009])
async def test_words_that_a_servers_rules_do_not_take_are_missed_in_its_channel(
    discord: DiscordHarness, code: int
) -> None:
    ada = discord.person("Ada")
    place = discord.group(ada)
    async with running(discord):
        no = Answer(403, b'{"code": %d, "message": "Message was blocked by automod"}' % code, headers={"Via": VIA})
        discord.fake.script(Route.CREATE_MESSAGE, None, *[no] * 2)
        discord.say(place, ada, "long 700", mention=True)
        await answer(discord, place, "A part of the answer could not be sent: Message was blocked by automod")
        assert any("word699" in one for one in texts(discord, place))
        assert not texts(discord, discord.private(ada))


async def test_a_second_gateway_with_the_same_token_is_told(
    discord: DiscordHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.contract.supervision.SETTLED_SECONDS", 0.0)
    ada = discord.person("Ada")
    chat = discord.private(ada)
    async with running(discord) as up:
        discord.say(chat, ada, "say one")
        await answer(discord, chat, "one")
        await quiet(discord, chat)
        assert (await status(up.url))["adapters"][0]["state"] == "up", "what we sent ourselves is ours"
        said = {"content": "two", "nonce": nonce_of("a part of another gateway"), "enforce_nonce": True}
        headers = {"Authorization": f"Bot {discord.fake.token}"}
        where = f"{discord.fake.api_url}/channels/{chat.id}/messages"
        async with aiohttp.ClientSession() as http, http.post(where, json=said, headers=headers) as response:
            assert response.status == 200
        told = await status_until(up.url, lambda told: told["adapters"][0]["state"] == "needs a person")
        assert "Another gateway" in told["adapters"][0]["words"]


async def test_a_command_in_an_answer_to_somebody_is_a_command(discord: DiscordHarness) -> None:
    ada, ben = discord.person("Ada"), discord.person("Ben")
    group = discord.group(ada, ben)
    async with running(discord):
        said = discord.say(group, ben, "what is it about?")
        discord.say(group, ada, "/model", mention=True, reply_to=said)
        await answer(discord, group, "Choose one: /model NAME")


async def test_an_answer_in_a_thread_that_was_archived_meanwhile_is_finished_there(discord: DiscordHarness) -> None:
    ada = discord.person("Ada")
    channel, thread, _ = discord.topics(ada)
    async with running(discord):
        discord.say(thread, ada, "hold The first words", mention=True)
        await answer(discord, thread, "The first words")
        discord.fake.people.archive(thread)
        discord.model.release()
        await discord.until(lambda: texts(discord, thread) == ["The first words end"])
    assert texts(discord, channel) == []


@pytest.mark.parametrize("private", [False, True])
async def test_of_a_thread_that_was_locked_only_what_everybody_could_read_goes_to_its_channel(
    discord: DiscordHarness, private: bool
) -> None:
    ada = discord.person("Ada")
    channel = discord.group(ada)
    thread = discord.fake.people.thread(channel, ada, "ours", private=private)
    thread.members.add(discord.fake.world.bot.id)
    async with running(discord) as up:
        discord.say(thread, ada, "hold The first words", mention=True)
        await answer(discord, thread, "The first words")
        discord.fake.people.archive(thread, locked=True)
        discord.model.release()
        if private:
            await status_until(up.url, lambda told: bool(told["troubled_chats"]))
        else:
            await answer(discord, channel, "The first words end")
    assert bool(texts(discord, channel)) is not private
