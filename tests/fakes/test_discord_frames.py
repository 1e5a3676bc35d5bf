"""The gateway of the stand-in for Discord, by hand: frames that no library sends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import aiohttp
import orjson
import pytest

from tests.fakes.common import JsonObject
from tests.fakes.discord import (
    DiscordFake,
    Op,
)
from tests.fakes.discord.plain import Plain, furnished


@pytest.fixture
async def place() -> AsyncGenerator[Plain]:
    async with furnished(DiscordFake()) as there:
        yield there


# --- the gateway by hand ---


@contextlib.asynccontextmanager
async def socket(place: Plain, query: str = "?v=10&encoding=json") -> AsyncGenerator[aiohttp.ClientWebSocketResponse]:
    """A websocket that has not said anything."""
    async with place.session.ws_connect(place.fake.gateway_url + query) as ws:
        yield ws


async def identify(place: Plain, ws: aiohttp.ClientWebSocketResponse, **fields: object) -> None:
    """Say who one is."""
    data = {"token": place.fake.token, "intents": 512, "properties": {"os": "linux"}, **fields}
    await ws.send_str(orjson.dumps({"op": Op.IDENTIFY.value, "d": data}).decode())


async def code_of(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    """The code by which the server closes."""
    async with asyncio.timeout(60):
        while (await ws.receive()).type not in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}:
            pass
    return ws.close_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", 4002),
        ("[]", 4002),
        ('{"op": "1"}', 4002),
        ('{"op": 1, "d": "' + "x" * 4096 + '"}', 4002),
        ('{"op": 77, "d": null}', 4001),
        ('{"op": 11, "d": null}', 4001),
        ('{"op": 3, "d": {}}', 4003),
        ('{"op": 6, "d": {"token": "wrong", "session_id": "x", "seq": 1}}', 4004),
    ],
)
async def test_frames_that_are_not_right(place: Plain, text: str, code: int) -> None:
    async with socket(place) as ws:
        await ws.send_str(text)
        assert await code_of(ws) == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"token": "wrong"}, 4004),
        ({"intents": -1}, 4013),
        ({"intents": "512"}, 4013),
        ({"shard": [2, 2]}, 4010),
        ({"shard": "0"}, 4010),
        ({"properties": None}, 4002),
    ],
)
async def test_an_identify_that_is_not_right(place: Plain, fields: JsonObject, code: int) -> None:
    async with socket(place) as ws:
        await identify(place, ws, **fields)
        assert await code_of(ws) == code


async def test_one_cannot_identify_twice_speak_too_much_or_speak_another_version(place: Plain) -> None:
    async with socket(place) as ws:
        await identify(place, ws)
        await identify(place, ws)
        assert await code_of(ws) == 4005
    async with socket(place) as ws:
        for _ in range(121):
            await ws.send_str('{"op": 1, "d": null}')
        assert await code_of(ws) == 4008
    async with socket(place, "?v=6&encoding=json") as ws:
        assert await code_of(ws) == 4012


async def test_a_goodbye_ends_the_session_and_a_wrong_number_too(place: Plain) -> None:
    async with socket(place) as ws:
        await identify(place, ws)
        await place.fake.until_connected()
        await ws.close(code=1000)
    await place.fake.until(lambda: place.fake.gateway.sessions == [])
    async with socket(place) as ws:
        await identify(place, ws)
        await place.fake.until_connected()
        await ws.close(code=4000)
    await place.fake.until(lambda: not place.fake.connected)
    session = place.fake.gateway.sessions[0]
    resume: JsonObject = {"token": place.fake.token, "session_id": session.id, "seq": 99}
    async with socket(place) as ws:
        await ws.send_str(orjson.dumps({"op": 6, "d": resume}).decode())
        assert await code_of(ws) == 4007
    place.fake.advance(301)
    async with socket(place) as ws:
        await ws.send_str(orjson.dumps({"op": 6, "d": {**resume, "seq": 1}}).decode())
        await ws.receive()
        assert (await ws.receive_json())["op"] == Op.INVALID_SESSION
