"""The stand-in for Discord over plain HTTP, where the library would be in the way: addresses, fields, rate limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import examples
from tests.fakes.common import Clock, Json, JsonObject
from tests.fakes.discord import (
    LIKE_THE_SERVER,
    Code,
    DiscordFake,
    Limit,
    Rates,
    Route,
)
from tests.fakes.discord.forms import Form
from tests.fakes.discord.ids import Snowflakes, iso, made_at
from tests.fakes.discord.plain import Plain, furnished


@pytest.fixture
async def place() -> AsyncGenerator[Plain]:
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
async def test_what_is_not_there(place: Plain, method: str, path: str, status: int) -> None:
    got = await place.ask(method, path)
    words = {404: "404: Not Found", 405: "405: Method Not Allowed"}[status]
    assert (got.status, got.body) == (status, {"message": words, "code": 0})
    assert place.fake.log.routes() == [Route.UNKNOWN]


async def test_the_type_of_content_is_exactly_json_and_the_version_is_ten(place: Plain) -> None:
    got = await place.ask("GET", "/users/@me")
    assert got.headers["Content-Type"] == "application/json"
    assert (got.body["id"], got.body["bot"]) == (str(place.fake.bot.id), True)
    async with place.session.get(f"{place.fake.origin}/api/v6/users/@me") as old:
        assert (old.status, (await old.json())["code"]) == (400, Code.INVALID_API_VERSION)
    async with place.session.get(f"{place.fake.origin}/elsewhere") as nowhere:
        assert nowhere.status == 404


async def test_a_token_is_needed(place: Plain) -> None:
    for wrong in ("", "Bot nonsense", place.fake.token, f"Bearer {place.fake.token}"):
        got = await place.ask("GET", "/users/@me", headers={"Authorization": wrong})
        assert (got.status, got.body) == (401, {"message": "401: Unauthorized", "code": 0})
    assert (await place.ask("GET", "/gateway", headers={"Authorization": ""})).body == {"url": place.fake.gateway_url}


async def test_the_gateway_is_told_with_shards(place: Plain) -> None:
    got = (await place.ask("GET", "/gateway/bot")).body
    assert (got["url"], got["shards"], got["session_start_limit"]["remaining"]) == (place.fake.gateway_url, 1, 1000)
    for path in ("/applications/@me", "/oauth2/applications/@me"):
        assert (await place.ask("GET", path)).body["id"] == str(place.fake.bot.id)


async def test_an_id_that_is_none(place: Plain) -> None:
    got = await place.ask("GET", "/channels/general")
    assert (got.status, got.body["code"]) == (400, Code.INVALID_FORM)
    flaw = {"code": "NUMBER_TYPE_COERCE", "message": 'Value "general" is not snowflake.'}
    assert got.body["errors"] == {"channel_id": {"_errors": [flaw]}}


# --- fields ---


async def test_every_flaw_is_told_where_it_is(place: Plain) -> None:
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


WRONG: list[tuple[JsonObject, str]] = [
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
]


@pytest.mark.parametrize(("fields", "name"), WRONG)
async def test_fields_that_are_not_right(place: Plain, fields: JsonObject, name: str) -> None:
    got = await place.send(**fields)
    assert (got.status, got.body["code"], list(got.body["errors"])) == (400, 50035, [name])


async def test_bodies_that_are_not_right(place: Plain) -> None:
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


async def test_fields_that_nobody_knows_are_noted(place: Plain) -> None:
    got = await place.send(content="x", contents="y", allowed_mentions={"parse": [], "reply": True})
    assert got.status == 200
    assert place.fake.log.of(Route.CREATE_MESSAGE)[0].ignored == {"contents", "allowed_mentions.reply"}


async def test_a_nonce_that_is_not_enforced_is_only_passed_on(place: Plain) -> None:
    first = (await place.send(content="x", nonce="n")).body
    second = (await place.send(content="x", nonce="n")).body
    assert (first["nonce"], first["id"] == second["id"]) == ("n", False)
    third = (await place.send(content="y", nonce="n", enforce_nonce=True)).body
    assert (third["id"], third["nonce"]) == (second["id"], "n")
    # The server does not keep it.
    assert all("nonce" not in one for one in (await place.ask("GET", place.messages)).body)


async def test_threads_and_dms_have_their_rules(place: Plain) -> None:
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


async def test_commands_have_their_rules(place: Plain) -> None:
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
        assert (got.status, got.body["code"], list(got.body["errors"])) == (400, 50035, ["0"])
    assert (await place.ask("PUT", path, [good, good])).body["code"] == 50035
    many = [{**good, "name": f"c{n}"} for n in range(101)]
    assert (await place.ask("PUT", path, many)).body["code"] == Code.TOO_MANY_COMMANDS
    assert (await place.ask("POST", path, {**good, "name": "tell"})).status == 201
    assert (await place.ask("POST", path, {**good, "description": "Again"})).status == 200
    assert [one["name"] for one in (await place.ask("GET", path)).body] == ["ask", "tell"]
    assert (await place.ask("GET", "/applications/1/commands")).status == 404
    assert (await place.ask("PUT", f"/applications/{place.fake.bot.id}/guilds/1/commands", [])).status == 403


async def test_answers_that_do_not_fit_the_interaction(place: Plain) -> None:
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


async def test_every_answer_tells_its_bucket(place: Plain) -> None:
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


# --- small parts ---


@examples.MANY
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_a_field_of_whatever_type_is_read_or_refused(value: Json) -> None:
    form = Form({"field": value})
    text, number = form.text("field", most=5), form.integer("field", least=0, most=9)
    for read in (form.snowflake, form.flag, form.array, form.object, form.items):
        read("field")
    assert text is None or isinstance(text, str)
    assert number is None or isinstance(number, int)
    assert value is None or form.flawed
    assert list(form.unused()) == []


def test_ids_grow_and_tell_their_time() -> None:
    clock = Clock()
    ids = Snowflakes(clock)
    made = [ids.next() for _ in range(1000)]
    apart = [ids.next_in_a_new_millisecond() for _ in range(10)]
    assert made == sorted(set(made))
    assert len({number >> 22 for number in apart}) == 10
    assert abs(made_at(made[0]).timestamp() - clock.unix()) < 5
    assert iso(made_at(0)) == "2015-01-01T00:00:00.000000+00:00"
