"""The stand-in for Slack at the level of HTTP: signed events, faults by script, and a server that is down."""

# The libraries' annotations leave out what handlers get and what answers hold, so the client is `Any` here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.app.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.common import Door
from tests.fakes.slack import (
    Delay,
    LoseAnswer,
    Pause,
    Reset,
    SlackFake,
    Tamper,
    fatal_error,
    gateway_page,
    internal_error,
    missing_scope,
    ratelimited,
    refusal,
)


@pytest.fixture
async def fake() -> AsyncGenerator[SlackFake]:
    async with SlackFake(ack_seconds=0.3, retries_seconds=(0.0, 0.05, 0.05)) as running:
        yield running


def library(fake: SlackFake, *, stubborn: bool = False) -> Any:
    """A client; a stubborn one is as the library makes it, and tries again by itself."""
    handlers = None if stubborn else []
    return AsyncWebClient(token=fake.bot_token, base_url=fake.base_url, retry_handlers=handlers)


@dataclass(slots=True)
class Endpoint:
    """A Bolt app behind an address; answers what it is told to instead of the app's answer, if anything."""

    app: AsyncApp
    instead: list[web.Response | float] = field(default_factory=list["web.Response | float"])
    """A response, or a pause in seconds before the app's own."""
    got: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The headers of every request."""

    async def handle(self, request: web.Request) -> web.Response:
        """Take a request."""
        self.got.append({name.lower(): value for name, value in request.headers.items()})
        await request.read()
        match self.instead.pop(0) if self.instead else None:
            case web.Response() as response:
                return response
            case float(seconds):
                await asyncio.sleep(seconds)
            case _:
                pass
        return await to_aiohttp_response(await self.app.async_dispatch(await to_bolt_request(request)))


@pytest.fixture
async def endpoint(fake: SlackFake) -> AsyncGenerator[Endpoint]:
    made = Endpoint(AsyncApp(client=library(fake), signing_secret=fake.signing_secret))
    app = web.Application()
    app.router.add_post("/slack/events", made.handle)
    door = Door(app)
    await door.open()
    fake.use_http(f"http://127.0.0.1:{door.port}/slack/events")
    yield made
    fake.use_http(None)
    await door.close()


# --- signed requests ---


async def test_the_address_is_verified_and_events_presses_and_commands_come_signed(
    fake: SlackFake, endpoint: Endpoint
) -> None:
    heard: list[str] = []

    @endpoint.app.event("message")
    async def on_message(event: dict[str, Any]) -> None:
        heard.append(event["text"])

    @endpoint.app.command("/ask")
    async def on_command(ack: Any, command: dict[str, Any]) -> None:
        await ack(f"asked {command['text']}")

    @endpoint.app.action("stop")
    async def on_press(ack: Any, respond: Any) -> None:
        await ack()
        await respond(text="stopped", replace_original=True)

    assert await fake.webhooks.verify()
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    fake.people.say(dm, ada, "über <b>")
    fake.people.command(dm, ada, "/ask", "a & b")
    await fake.until_shown(dm, lambda now: "asked a & b" in now.texts)
    stop = {
        "type": "actions",
        "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Stop"}, "action_id": "stop"}],
    }
    fake.world.settings.echo = False
    sent = await library(fake).chat_postMessage(channel=dm.id, text="w", blocks=[stop])
    fake.people.press(fake.message(dm, sent["ts"]), ada, "Stop")
    await fake.until_shown(dm, lambda now: "stopped" in now.texts)
    await fake.until_settled()
    assert heard == ["über &lt;b&gt;"]
    kinds = [(request.kind, request.status) for request in fake.webhooks.log]
    assert sorted(kinds) == [("/ask", 200), ("block_actions", 200), ("message", 200), ("url_verification", 200)]
    assert all(headers["x-slack-signature"].startswith("v0=") for headers in endpoint.got)


@pytest.mark.parametrize("tamper", [Tamper.SIGNATURE, Tamper.TIMESTAMP, Tamper.UNSIGNED])
async def test_what_does_not_come_from_slack_is_refused_by_the_app(
    fake: SlackFake, endpoint: Endpoint, tamper: Tamper
) -> None:
    fake.webhooks.tamper = tamper
    ada = fake.people.user("Ada")
    fake.people.say(fake.people.dm(ada), ada, "let me in")
    await fake.until_settled()
    assert {request.status for request in fake.webhooks.log} == {401}
    assert fake.envelopes[0].lost


async def test_a_request_that_fails_is_sent_again_with_the_reason(fake: SlackFake, endpoint: Endpoint) -> None:
    @endpoint.app.event("message")
    async def on_message() -> None:
        pass

    endpoint.instead = [web.Response(status=500), 0.5]
    ada = fake.people.user("Ada")
    fake.people.say(fake.people.dm(ada), ada, "x")
    await fake.until_settled()
    told = [(got.get("x-slack-retry-num"), got.get("x-slack-retry-reason")) for got in endpoint.got]
    assert told[:3] == [(None, None), ("1", "http_error"), ("2", "http_timeout")]
    assert fake.envelopes[0].acked
    endpoint.instead = [web.Response(status=500, headers={"X-Slack-No-Retry": "1"})]
    fake.people.say(fake.people.dm(ada), ada, "y")
    await fake.until_settled()
    assert (len(fake.envelopes[1].attempts), fake.envelopes[1].lost) == (1, True)


async def test_nobody_at_the_address(fake: SlackFake) -> None:
    fake.use_http("http://127.0.0.1:9/nobody")
    ada = fake.people.user("Ada")
    fake.people.say(fake.people.dm(ada), ada, "x")
    await fake.until_settled()
    assert [attempt.reason for attempt in fake.envelopes[0].attempts] == ["", *["connection_failed"] * 3]


# --- faults ---


async def test_errors_by_script(fake: SlackFake) -> None:
    client = library(fake)
    ada = fake.people.user("Ada")
    dm, room = fake.people.dm(ada), fake.people.channel("room", ada)
    words = ["fatal_error", "internal_error", "missing_scope", "ratelimited", "org_login_required"]
    faults = (
        fatal_error(),
        internal_error(),
        missing_scope("chat:write"),
        ratelimited(7),
        refusal("org_login_required"),
    )
    fake.script("chat.postMessage", *faults, channel=dm)
    await client.chat_postMessage(channel=room.id, text="not meant")
    for word in words:
        with pytest.raises(SlackApiError) as raised:
            await client.chat_postMessage(channel=dm.id, text="x")
        assert raised.value.response["error"] == word
        if word == "ratelimited":
            assert (raised.value.response.status_code, raised.value.response.headers["Retry-After"]) == (429, "7")
    await client.chat_postMessage(channel=dm.id, text="x")
    assert fake.shown(dm).texts == ["x"]


async def test_five_hundreds_in_both_forms(fake: SlackFake) -> None:
    client = library(fake)
    fake.script("auth.test", internal_error(500), gateway_page(503))
    with pytest.raises(SlackApiError) as raised:
        await client.auth_test()
    assert (raised.value.response.status_code, raised.value.response["error"]) == (500, "internal_error")
    with pytest.raises(SlackApiError) as raised:
        await client.auth_test()
    # The library makes an empty object of a page.
    assert (raised.value.response.status_code, raised.value.response.data) == (503, {})


@pytest.mark.parametrize("fault", [LoseAnswer(), LoseAnswer(clean=True), LoseAnswer("half")])
async def test_a_message_arrives_and_its_answer_does_not(fake: SlackFake, fault: LoseAnswer) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    fake.script("chat.postMessage", fault)
    with pytest.raises((aiohttp.ClientError, SlackApiError)):
        await library(fake).chat_postMessage(channel=dm.id, text="once")
    assert fake.shown(dm).texts == ["once"]
    answer = fake.log.of("chat.postMessage")[0].answer
    assert isinstance(answer, dict)
    assert answer["ok"] is True


async def test_the_library_as_it_comes_writes_twice_when_an_answer_is_lost(fake: SlackFake) -> None:
    dm = fake.people.dm(fake.people.user("Ada"))
    stubborn = library(fake, stubborn=True)
    for handler in stubborn.retry_handlers:
        handler.interval_calculator.calculate_sleep_duration = lambda _: 0.0  # type: ignore[method-assign]
    fake.script("chat.postMessage", LoseAnswer())
    await stubborn.chat_postMessage(channel=dm.id, text="once?")
    assert fake.shown(dm).texts == ["once?", "once?"]
    fake.script("chat.postMessage", LoseAnswer())
    mark = "11111111-2222-4333-8444-555555555555"
    await stubborn.chat_postMessage(channel=dm.id, text="once!", client_msg_id=mark)
    assert fake.shown(dm).texts == ["once?", "once?", "once!"]


async def test_resets_delays_and_pauses(fake: SlackFake) -> None:
    client = library(fake)
    dm = fake.people.dm(fake.people.user("Ada"))
    pause = Pause(after=True)
    fake.script("chat.postMessage", Reset(), Delay(0.1), pause)
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=dm.id, text="never")
    await client.chat_postMessage(channel=dm.id, text="slow")
    sending = asyncio.create_task(client.chat_postMessage(channel=dm.id, text="waits"))
    await pause.reached.wait()
    assert fake.shown(dm).texts == ["slow", "waits"]
    assert not sending.done()
    pause.release()
    await sending
    calls = fake.log.of("chat.postMessage")
    assert (calls[1].ended_at or 0.0) - calls[1].at >= 0.1
    assert [call.status for call in calls] == [None, 200, 200]


async def test_uploads_downloads_and_response_urls_fail_by_script_too(fake: SlackFake) -> None:
    client = library(fake)
    ada = fake.people.user("Ada")
    dm = fake.people.dm(ada)
    fake.script("upload", Reset())
    with pytest.raises(aiohttp.ClientError):
        await client.files_upload_v2(filename="a.txt", content="a", channel=dm.id)
    sent = fake.people.upload(dm, ada, "b.txt", b"bytes" * 100)
    command = fake.people.command(dm, ada, "/ask")
    fake.script("file", LoseAnswer("half"))
    fake.script("response_url", gateway_page(502))
    url = str(fake.world.file_json(sent.files[0])["url_private"])
    headers = {"Authorization": f"Bearer {fake.bot_token}"}
    async with aiohttp.ClientSession() as http:
        with pytest.raises(aiohttp.ClientError):
            async with http.get(url, headers=headers) as answer:
                await answer.read()
        async with http.post(command.response_url, json={"text": "x"}) as answer:
            assert answer.status == 502
    assert fake.shown(dm).answers == []


async def test_chance_is_the_same_for_the_same_seed() -> None:
    async def statuses(seed: int) -> list[int]:
        async with SlackFake() as fake, aiohttp.ClientSession() as http:
            fake.chaos(seed, (0.3, internal_error(500)), (0.2, ratelimited(1)), method="api.test")
            found: list[int] = []
            for _ in range(40):
                async with http.post(f"{fake.base_url}api.test") as answer:
                    found.append(answer.status)
            return found

    first = await statuses(1)
    assert first == await statuses(1)
    assert first != await statuses(2)
    assert set(first) == {200, 429, 500}


async def test_down_means_refused_and_up_means_the_same_port(fake: SlackFake) -> None:
    client = library(fake)
    address = fake.base_url
    await fake.down()
    with pytest.raises(aiohttp.ClientConnectorError):
        await client.auth_test()
    await fake.up()
    assert fake.base_url == address
    await client.auth_test()


async def test_a_fake_that_is_left_lets_nobody_wait() -> None:
    async with SlackFake() as fake:
        pause = Pause()
        fake.script("auth.test", pause)
        asking = asyncio.create_task(library(fake).auth_test())
        await pause.reached.wait()
    with pytest.raises(aiohttp.ClientError):
        await asking
    assert asyncio.all_tasks() == {asyncio.current_task()}
