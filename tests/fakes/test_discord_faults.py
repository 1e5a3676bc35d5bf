"""What goes wrong by script at the stand-in for Discord, and what the real library makes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import aiohttp
import pytest

from tests.fakes.common import ANY, Delay, LoseAnswer, Pause, Reset
from tests.fakes.discord import (
    Code,
    DiscordFake,
    Route,
    flood,
    gateway_page,
    refusal,
    server_error,
    shield_ban,
)
from tests.fakes.discord.library import Watcher, discord, running
from tests.fakes.discord.plain import Plain, furnished


@pytest.fixture
async def place() -> AsyncGenerator[Plain]:
    async with furnished(DiscordFake()) as there:
        yield there


# --- faults through the library ---


@contextlib.asynccontextmanager
async def channel_of_library(place: Plain) -> AsyncGenerator[discord.TextChannel]:
    """The channel as the library knows it."""
    bot = Watcher()
    async with running(place.fake, bot):
        found = bot.get_channel(place.channel.id)
        assert isinstance(found, discord.TextChannel)
        yield found


async def test_the_library_waits_for_a_rate_limit_that_looks_like_discords(place: Plain) -> None:
    async with channel_of_library(place) as there:
        place.fake.script(Route.CREATE_MESSAGE, flood(0.2), flood(0.1, everywhere=True))
        await there.send("patient")
        first, second, third = place.fake.log.of(Route.CREATE_MESSAGE)
        assert second.at - first.at >= 0.2
        assert third.at - second.at >= 0.1
        assert place.fake.shown(place.channel).texts == ["patient"]


async def test_the_library_gives_up_at_once_without_via(place: Plain) -> None:
    """A hazard of the library: a 429 that does not come from Discord itself is raised, whatever it says about waiting."""
    async with channel_of_library(place) as there:
        for answer in (flood(0.1, via=False), shield_ban()):
            place.fake.script(Route.CREATE_MESSAGE, answer)
            with pytest.raises(discord.HTTPException) as refused:
                await there.send("impatient")
            assert refused.value.status == 429
    assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 2


async def test_the_library_tries_some_server_errors_again_and_raises_others(place: Plain) -> None:
    async with channel_of_library(place) as there:
        place.fake.script(Route.CREATE_MESSAGE, gateway_page(502))
        await there.send("again")
        assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 2
        place.fake.script(Route.CREATE_MESSAGE, server_error(503))
        with pytest.raises(discord.DiscordServerError):
            await there.send("not again")
        assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 3


async def test_an_answer_is_lost_and_the_nonce_finds_the_message_again(place: Plain) -> None:
    async with channel_of_library(place) as there:
        half = LoseAnswer(sent="half")
        place.fake.script(Route.CREATE_MESSAGE, LoseAnswer(), half, LoseAnswer(clean=True))
        for _ in range(3):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await there.send("once", nonce="n")
        sent = await there.send("once", nonce="n")
        assert place.fake.shown(place.channel).texts == ["once"]
        assert place.fake.shown(place.channel).messages[0].id == sent.id


async def test_a_reset_before_anything_happens(place: Plain) -> None:
    async with channel_of_library(place) as there:
        place.fake.script(Route.CREATE_MESSAGE, Reset(), channel=place.channel)
        with pytest.raises(OSError, match=r"."):
            await there.send("lost")
        assert place.fake.shown(place.channel).texts == []
        # aiohttp repeats what may be repeated if a kept connection turns out to be dead.
        sent = await there.send("x")
        place.fake.script(Route.DELETE_MESSAGE, Reset())
        await sent.delete()
        assert len(place.fake.log.of(Route.DELETE_MESSAGE)) == 2


async def test_delays_pauses_and_refusals(place: Plain) -> None:
    place.fake.script(Route.CREATE_MESSAGE, Delay(0.05), refusal(Code.MISSING_PERMISSIONS))
    await place.send(content="slow")
    call = place.fake.log.of(Route.CREATE_MESSAGE)[0]
    assert call.ended_at is not None
    assert call.ended_at - call.at >= 0.05
    assert (await place.send(content="refused")).body == {"message": "Missing Permissions", "code": 50013}
    for pause, there in ((Pause(), []), (Pause(after=True), ["waits"])):
        place.fake.script(ANY, pause)
        place.channel.messages.clear()
        asking = asyncio.create_task(place.send(content="waits"))
        await asyncio.wait_for(pause.reached.wait(), 60)
        assert place.fake.shown(place.channel).texts == there
        pause.release()
        assert (await asking).status == 200


async def test_chaos_befalls_the_same_requests_for_the_same_seed(place: Plain) -> None:
    statuses: list[list[int]] = []
    for _ in range(2):
        place.fake.chaos(7, (0.5, server_error(500)), route=Route.GET_ME)
        statuses.append([(await place.ask("GET", "/users/@me")).status for _ in range(12)])
    assert statuses[0] == statuses[1]
    assert set(statuses[0]) == {200, 500}


async def test_closing_ends_what_waits() -> None:
    async with aiohttp.ClientSession(trust_env=False) as session:
        async with DiscordFake() as fake:
            fake.script(Route.GET_GATEWAY, Pause())
            asking = asyncio.create_task(session.get(f"{fake.api_url}/gateway"))
            ws = await session.ws_connect(f"{fake.gateway_url}?v=10&encoding=json")
            await fake.until(lambda: len(fake.log) == 2)
        with pytest.raises((aiohttp.ClientError, OSError)):
            await asking
        await ws.close()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
