"""The stand-in for Discord over plain HTTP and websockets, where the library would be in the way: addresses, fields, limits, faults."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.common import JsonObject
from tests.fakes.discord import (
    ANY,
    LIKE_THE_SERVER,
    Channel,
    Code,
    Delay,
    DiscordFake,
    Guild,
    Limit,
    LoseAnswer,
    Op,
    Pause,
    Rates,
    Reset,
    Route,
    User,
    flood,
    gateway_page,
    refusal,
    server_error,
    shield_ban,
)
from tests.fakes.discord.forms import Form
from tests.fakes.discord.ids import Snowflakes, iso, made_at
from tests.fakes.discord.library import Watcher, discord, running


@dataclass
class Got:
    """An answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Place:
    """A fake with a channel, and a plain client with the bot's token."""

    def __init__(self, fake: DiscordFake, session: aiohttp.ClientSession) -> None:
        self.fake = fake
        self.session = session
        self.ada: User = fake.people.user("Ada")
        self.guild: Guild = fake.people.guild("Lovelace", self.ada)
        self.channel: Channel = fake.people.channel(self.guild, "general")
        self.messages = f"/channels/{self.channel.id}/messages"

    async def ask(self, method: str, path: str, body: object = None, **options: Any) -> Got:
        """One request."""
        headers: dict[str, str] = {"Authorization": f"Bot {self.fake.token}", **options.pop("headers", {})}
        if body is not None:
            headers["Content-Type"] = "application/json"
            options["data"] = body if isinstance(body, bytes) else orjson.dumps(body)
        async with self.session.request(method, self.fake.api_url + path, headers=headers, **options) as response:
            data = await response.read()
            is_json = response.headers.get("Content-Type") == "application/json"
            return Got(response.status, orjson.loads(data) if is_json else data, response.headers)

    async def send(self, **fields: object) -> Got:
        """Create a message."""
        return await self.ask("POST", self.messages, fields)


@contextlib.asynccontextmanager
async def furnished(fake: DiscordFake) -> AsyncIterator[Place]:
    """A fake that listens, with a client."""
    async with fake, aiohttp.ClientSession(trust_env=False) as session:
        yield Place(fake, session)


@pytest.fixture
async def place() -> AsyncGenerator[Place]:
    async with furnished(DiscordFake()) as there:
        yield there


# --- addresses ---


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/channels", 404),
        ("POST", "/users/@me", 405),
        ("GET", "/channels/1/messages/2/3", 404),
        ("PUT", "/channels/1/messages/pins/3", 404),
    ],
)
async def test_what_is_not_there(place: Place, method: str, path: str, status: int) -> None:
    got = await place.ask(method, path)
    words = {404: "404: Not Found", 405: "405: Method Not Allowed"}[status]
    assert (got.status, got.body) == (status, {"message": words, "code": 0})
    assert place.fake.log.routes() == [Route.UNKNOWN]


async def test_the_type_of_content_is_exactly_json_and_the_version_is_ten(place: Place) -> None:
    got = await place.ask("GET", "/users/@me")
    assert got.headers["Content-Type"] == "application/json"
    assert (got.body["id"], got.body["bot"]) == (str(place.fake.bot.id), True)
    async with place.session.get(f"{place.fake.origin}/api/v6/users/@me") as old:
        assert (old.status, (await old.json())["code"]) == (400, Code.INVALID_API_VERSION)
    async with place.session.get(f"{place.fake.origin}/elsewhere") as nowhere:
        assert nowhere.status == 404


async def test_a_token_is_needed(place: Place) -> None:
    for wrong in ("", "Bot nonsense", place.fake.token, f"Bearer {place.fake.token}"):
        got = await place.ask("GET", "/users/@me", headers={"Authorization": wrong})
        assert (got.status, got.body) == (401, {"message": "401: Unauthorized", "code": 0})
    assert (await place.ask("GET", "/gateway", headers={"Authorization": ""})).body == {"url": place.fake.gateway_url}


async def test_the_gateway_is_told_with_shards(place: Place) -> None:
    got = (await place.ask("GET", "/gateway/bot")).body
    assert (got["url"], got["shards"], got["session_start_limit"]["remaining"]) == (place.fake.gateway_url, 1, 1000)
    for path in ("/applications/@me", "/oauth2/applications/@me"):
        assert (await place.ask("GET", path)).body["id"] == str(place.fake.bot.id)


async def test_an_id_that_is_none(place: Place) -> None:
    got = await place.ask("GET", "/channels/general")
    assert (got.status, got.body["code"]) == (400, Code.INVALID_FORM)
    flaw = {"code": "NUMBER_TYPE_COERCE", "message": 'Value "general" is not snowflake.'}
    assert got.body["errors"] == {"channel_id": {"_errors": [flaw]}}


# --- fields ---


async def test_every_flaw_is_told_where_it_is(place: Place) -> None:
    got = await place.send(
        content="x" * 2001,
        tts="yes",
        embeds=[{"title": "ok"}, {"fields": [{"name": "n"}]}],
        allowed_mentions={"parse": ["users", "cats"], "users": ["1"]},
    )
    assert (got.status, got.body["code"], got.body["message"]) == (400, 50035, "Invalid Form Body")
    errors = got.body["errors"]
    assert errors["content"]["_errors"][0]["code"] == "BASE_TYPE_MAX_LENGTH"
    assert errors["embeds"]["1"]["fields"]["0"]["value"]["_errors"][0]["code"] == "BASE_TYPE_REQUIRED"
    assert errors["allowed_mentions"]["_errors"][0]["code"] == "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE"
    assert place.fake.shown(place.channel).messages == []


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"content": 5}, "content"),
        ({"content": "x", "flags": 64}, "flags"),
        ({"content": "x", "nonce": ["n"]}, "nonce"),
        ({"content": "x", "sticker_ids": ["1"]}, "sticker_ids"),
        ({"content": "x", "poll": {"question": {}}}, "poll"),
        ({"content": "x", "message_reference": {}}, "message_reference"),
        ({"content": "x", "message_reference": {"type": 1, "message_id": "1"}}, "message_reference"),
        ({"content": "x", "attachments": [{"id": 0}]}, "attachments"),
        ({"content": "x", "components": [{"type": 2}]}, "components"),
        ({"content": "x", "components": [{"type": 1, "components": []}]}, "components"),
        ({"content": "x", "components": [{"type": 1, "components": [{"type": 2, "style": 1}]}]}, "components"),
        ({"content": "x", "components": "none"}, "components"),
        ({"embeds": [{"description": "x" * 4000}, {"description": "y" * 2001}]}, "embeds"),
    ],
)
async def test_fields_that_are_not_right(place: Place, fields: JsonObject, name: str) -> None:
    got = await place.send(**fields)
    assert (got.status, got.body["code"], list(got.body["errors"])) == (400, 50035, [name])


async def test_bodies_that_are_not_right(place: Place) -> None:
    assert (await place.ask("POST", place.messages, b"{")).body["code"] == Code.INVALID_JSON
    got = await place.ask("POST", place.messages, data=b"content=x", headers={"Content-Type": "text/plain"})
    assert got.status == 415
    form = aiohttp.FormData()
    form.add_field("content", "x")
    form.add_field("files[0]", b"data", filename="a")
    assert (await place.ask("POST", place.messages, data=form)).body["code"] == Code.INVALID_FORM
    form = aiohttp.FormData()
    form.add_field("payload_json", '{"content": "x"}')
    form.add_field("upload", b"data", filename="a")
    assert (await place.ask("POST", place.messages, data=form)).body["code"] == Code.INVALID_FORM
    got = await place.ask("GET", f"{place.messages}?limit=101")
    assert got.body["errors"]["limit"]["_errors"][0]["code"] == "NUMBER_TYPE_MAX"
    assert (await place.ask("GET", f"{place.messages}?before=1&after=2")).status == 400


async def test_fields_that_nobody_knows_are_noted(place: Place) -> None:
    got = await place.send(content="x", contents="y", allowed_mentions={"parse": [], "reply": True})
    assert got.status == 200
    assert place.fake.log.of(Route.CREATE_MESSAGE)[0].ignored == {"contents", "allowed_mentions.reply"}


async def test_a_nonce_that_is_not_enforced_is_only_passed_on(place: Place) -> None:
    first = (await place.send(content="x", nonce="n")).body
    second = (await place.send(content="x", nonce="n")).body
    assert (first["nonce"], first["id"] == second["id"]) == ("n", False)
    third = (await place.send(content="y", nonce="n", enforce_nonce=True)).body
    assert third["id"] == second["id"]


async def test_threads_and_dms_have_their_rules(place: Place) -> None:
    base = f"/channels/{place.channel.id}"
    alone = (await place.ask("POST", f"{base}/threads", {"name": "t"})).body
    assert alone["type"] == 12
    assert (await place.ask("POST", f"/channels/{alone['id']}/threads", {"name": "t"})).body["code"] == 50024
    assert "name" in (await place.ask("POST", f"{base}/threads", {"name": "", "type": 11})).body["errors"]
    got = await place.ask("POST", f"{base}/threads", {"name": "t", "auto_archive_duration": 61})
    assert "auto_archive_duration" in got.body["errors"]
    assert (await place.ask("PATCH", base, {"name": "other"})).body["code"] == Code.WRONG_CHANNEL_KIND
    for wrong in ("1", str(place.fake.bot.id)):
        assert (await place.ask("POST", "/users/@me/channels", {"recipient_id": wrong})).body["code"] == 50033
    dm = (await place.ask("POST", "/users/@me/channels", {"recipient_id": str(place.ada.id)})).body
    assert (dm["type"], dm["recipients"][0]["id"]) == (1, str(place.ada.id))
    theirs = place.fake.people.say(place.fake.people.dm(place.ada), place.ada, "mine")
    got = await place.ask("DELETE", f"/channels/{dm['id']}/messages/{theirs.id}")
    assert got.body["code"] == Code.NOT_IN_A_DM


async def test_commands_have_their_rules(place: Place) -> None:
    path = f"/applications/{place.fake.bot.id}/commands"
    good = {"name": "ask", "description": "Ask", "options": [{"type": 3, "name": "q", "description": "Q"}]}
    assert (await place.ask("PUT", path, [good])).body[0]["name"] == "ask"
    for wrong in (
        {**good, "name": "Ask Me"},
        {**good, "description": ""},
        {**good, "options": [{"type": 12, "name": "q", "description": "Q"}]},
        {**good, "options": good["options"] * 2},
    ):
        got = await place.ask("PUT", path, [wrong])
        assert (got.status, got.body["code"], list(got.body["errors"])) == (400, 50035, ["items"])
    assert (await place.ask("PUT", path, [good, good])).body["code"] == 50035
    many = [{**good, "name": f"c{n}"} for n in range(101)]
    assert (await place.ask("PUT", path, many)).body["code"] == Code.TOO_MANY_COMMANDS
    assert (await place.ask("POST", path, {**good, "name": "tell"})).status == 201
    assert (await place.ask("POST", path, {**good, "description": "Again"})).status == 200
    assert [one["name"] for one in (await place.ask("GET", path)).body] == ["ask", "tell"]
    assert (await place.ask("GET", "/applications/1/commands")).status == 404
    assert (await place.ask("PUT", f"/applications/{place.fake.bot.id}/guilds/1/commands", [])).status == 403


async def test_answers_that_do_not_fit_the_interaction(place: Place) -> None:
    await place.ask("PUT", f"/applications/{place.fake.bot.id}/commands", [{"name": "ask", "description": "Ask"}])
    used = place.fake.people.command(place.channel, place.ada, "ask")
    path = f"/interactions/{used.id}/{used.token}/callback"
    for kind in (1, 6, 7, 8, 10):
        assert "type" in (await place.ask("POST", path, {"type": kind, "data": {}})).body["errors"]
    assert "data" in (await place.ask("POST", path, {"type": 4})).body["errors"]
    got = await place.ask("POST", f"/interactions/{used.id}/wrong/callback", {"type": 5})
    assert got.body["code"] == Code.UNKNOWN_INTERACTION
    assert (await place.ask("POST", path, {"type": 5})).status == 204
    assert (await place.ask("POST", path, {"type": 5})).body["code"] == Code.ALREADY_ACKNOWLEDGED
    webhook = f"/webhooks/{place.fake.bot.id}"
    got = await place.ask("POST", f"{webhook}/wrong", {"content": "x"})
    assert (got.status, got.body["code"]) == (401, Code.INVALID_WEBHOOK_TOKEN)


# --- rate limits ---


async def test_every_answer_tells_its_bucket(place: Place) -> None:
    one, two = (await place.send(content="x")).headers, (await place.ask("GET", "/users/@me")).headers
    assert one["X-RateLimit-Limit"] == "1000"
    assert one["X-RateLimit-Remaining"] == "999"
    assert 0 < float(one["X-RateLimit-Reset-After"]) <= 1
    assert one["X-RateLimit-Bucket"] != two["X-RateLimit-Bucket"]
    assert one["Via"] == "1.1 google"


async def test_what_comes_too_fast_is_refused_per_route_and_channel() -> None:
    rates = Rates(routes={Route.CREATE_MESSAGE: Limit(2, 5.0)})
    async with furnished(DiscordFake(rates=rates)) as place:
        left = [(await place.send(content="x")).headers["X-RateLimit-Remaining"] for _ in range(2)]
        assert left == ["1", "0"]
        got = await place.send(content="x")
        assert (got.status, got.body["global"], got.headers["X-RateLimit-Scope"]) == (429, False, "user")
        assert 4 < got.body["retry_after"] <= 5
        other = place.fake.people.channel(place.guild, "other")
        assert (await place.ask("POST", f"/channels/{other.id}/messages", {"content": "x"})).status == 200
        place.fake.advance(5)
        assert (await place.send(content="x")).status == 200
    assert LIKE_THE_SERVER.everywhere is not None


async def test_a_limit_for_everything_together() -> None:
    async with furnished(DiscordFake(rates=Rates(everywhere=Limit(2, 1.0)))) as place:
        statuses = [(await place.ask("GET", path)).status for path in ("/users/@me", "/gateway/bot")]
        got = await place.ask("GET", "/users/@me")
        assert (*statuses, got.status, got.body["global"]) == (200, 200, 429, True)
        assert got.headers["X-RateLimit-Global"] == "true"


# --- faults through the library ---


@contextlib.asynccontextmanager
async def channel_of_library(place: Place) -> AsyncIterator[discord.TextChannel]:
    """The channel as the library knows it."""
    bot = Watcher()
    async with running(place.fake, bot):
        found = bot.get_channel(place.channel.id)
        assert isinstance(found, discord.TextChannel)
        yield found


async def test_the_library_waits_for_a_rate_limit_that_looks_like_discords(place: Place) -> None:
    async with channel_of_library(place) as there:
        place.fake.script(Route.CREATE_MESSAGE, flood(0.2), flood(0.1, everywhere=True))
        await there.send("patient")
        first, second, third = place.fake.log.of(Route.CREATE_MESSAGE)
        assert second.at - first.at >= 0.2
        assert third.at - second.at >= 0.1
        assert place.fake.shown(place.channel).texts == ["patient"]


async def test_the_library_gives_up_at_once_without_via(place: Place) -> None:
    """A hazard of the library: a 429 that does not come from Discord itself is raised, whatever it says about waiting."""
    async with channel_of_library(place) as there:
        for answer in (flood(0.1, via=False), shield_ban()):
            place.fake.script(Route.CREATE_MESSAGE, answer)
            with pytest.raises(discord.HTTPException) as refused:
                await there.send("impatient")
            assert refused.value.status == 429
    assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 2


async def test_the_library_tries_some_server_errors_again_and_raises_others(place: Place) -> None:
    async with channel_of_library(place) as there:
        place.fake.script(Route.CREATE_MESSAGE, gateway_page(502))
        await there.send("again")
        assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 2
        place.fake.script(Route.CREATE_MESSAGE, server_error(503))
        with pytest.raises(discord.DiscordServerError):
            await there.send("not again")
        assert len(place.fake.log.of(Route.CREATE_MESSAGE)) == 3


async def test_an_answer_is_lost_and_the_nonce_finds_the_message_again(place: Place) -> None:
    async with channel_of_library(place) as there:
        half = LoseAnswer(sent="half")
        place.fake.script(Route.CREATE_MESSAGE, LoseAnswer(), half, LoseAnswer(clean=True))
        for _ in range(3):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await there.send("once", nonce="n")
        sent = await there.send("once", nonce="n")
        assert place.fake.shown(place.channel).texts == ["once"]
        assert place.fake.shown(place.channel).messages[0].id == sent.id


async def test_a_reset_before_anything_happens(place: Place) -> None:
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


async def test_delays_pauses_and_refusals(place: Place) -> None:
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
        await asyncio.wait_for(pause.reached.wait(), 2)
        assert place.fake.shown(place.channel).texts == there
        pause.release()
        assert (await asking).status == 200


async def test_chaos_befalls_the_same_requests_for_the_same_seed(place: Place) -> None:
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


# --- the gateway by hand ---


@contextlib.asynccontextmanager
async def socket(place: Place, query: str = "?v=10&encoding=json") -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A websocket that has not said anything."""
    async with place.session.ws_connect(place.fake.gateway_url + query) as ws:
        yield ws


async def identify(place: Place, ws: aiohttp.ClientWebSocketResponse, **fields: object) -> None:
    """Say who one is."""
    data = {"token": place.fake.token, "intents": 512, "properties": {"os": "linux"}, **fields}
    await ws.send_str(orjson.dumps({"op": Op.IDENTIFY.value, "d": data}).decode())


async def code_of(ws: aiohttp.ClientWebSocketResponse) -> int | None:
    """The code by which the server closes."""
    async with asyncio.timeout(3):
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
async def test_frames_that_are_not_right(place: Place, text: str, code: int) -> None:
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
async def test_an_identify_that_is_not_right(place: Place, fields: JsonObject, code: int) -> None:
    async with socket(place) as ws:
        await identify(place, ws, **fields)
        assert await code_of(ws) == code


async def test_one_cannot_identify_twice_speak_too_much_or_speak_another_version(place: Place) -> None:
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


async def test_a_goodbye_ends_the_session_and_a_wrong_number_too(place: Place) -> None:
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


# --- small parts ---


@settings(max_examples=40)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_a_field_of_whatever_type_is_read_or_refused(value: Any) -> None:
    form = Form({"field": value})
    text, number = form.text("field", most=5), form.integer("field", least=0, most=9)
    form.snowflake("field"), form.flag("field"), form.array("field"), form.object("field"), form.items("field")
    assert text is None or isinstance(text, str)
    assert number is None or isinstance(number, int)
    assert value is None or form.flawed
    assert list(form.unused()) == []


def test_ids_grow_and_tell_their_time() -> None:
    from tests.fakes.common import Clock

    clock = Clock()
    ids = Snowflakes(clock)
    made = [ids.next() for _ in range(1000)]
    apart = [ids.next_in_a_new_millisecond() for _ in range(10)]
    assert made == sorted(set(made))
    assert len({number >> 22 for number in apart}) == 10
    assert abs(made_at(made[0]).timestamp() - clock.unix()) < 5
    assert iso(made_at(0)) == "2015-01-01T00:00:00.000000+00:00"
