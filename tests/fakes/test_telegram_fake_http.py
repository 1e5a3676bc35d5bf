"""The stand-in for Telegram at the level of HTTP: forms of requests, webhooks, faults, and a server that is down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import cast

import aiohttp
import orjson
import pytest
from aiohttp import web

from tests.fakes.common import Door
from tests.fakes.telegram import Answer, Delay, LoseAnswer, Pause, Reset, TelegramFake, flood, server_error


@pytest.fixture
async def fake() -> AsyncGenerator[TelegramFake]:
    async with TelegramFake() as running:
        yield running


@pytest.fixture
async def http() -> AsyncGenerator[aiohttp.ClientSession]:
    # A connection each, because a client that finds an old one cut tries again by itself.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=20)) as session:
        yield session


@dataclass(slots=True)
class Reply:
    """An answer of the Bot API."""

    status: int
    body: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def words(self) -> str:
        """The description of an error."""
        return str(self.body.get("description", ""))


async def call(fake: TelegramFake, http: aiohttp.ClientSession, method: str, **params: object) -> Reply:
    """A request with a JSON body."""
    async with http.post(f"{fake.base_url}{fake.token}/{method}", json=params) as answer:
        return Reply(answer.status, orjson.loads(await answer.read()))


async def test_what_nobody_knows_is_not_there(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    missing: dict[str, object] = {"ok": False, "error_code": 404, "description": "Not Found"}
    assert await call(fake, http, "sendTelepathy", chat_id=1) == Reply(404, missing)
    async with http.get(f"{fake.origin}/elsewhere") as answer:
        assert (answer.status, orjson.loads(await answer.read())) == (404, missing)
    async with http.get(f"{fake.file_url}{fake.token}/documents/none.txt") as answer:
        assert answer.status == 404
    assert fake.log.routes() == ["sendTelepathy", "/elsewhere", "file"]


async def test_all_forms_of_requests_are_read(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    address = f"{fake.base_url}{fake.token}/SENDmessage"
    markup = '{"inline_keyboard": [[{"text": "b", "callback_data": "d"}]]}'
    fields = {"chat_id": str(chat.id), "text": "ü 🏟", "reply_markup": markup, "disable_notification": "true"}
    multipart = aiohttp.FormData(fields)
    multipart.add_field("unneeded", b"x", filename="x.bin")
    for request in (
        http.get(address, params=fields),
        http.post(address, data=fields),
        http.post(address, data=multipart),
        http.post(address, json={**fields, "chat_id": chat.id, "reply_markup": orjson.loads(markup)}),
    ):
        async with request as answer:
            assert answer.status == 200, await answer.text()
    shown = fake.shown(chat).messages
    assert [(one.text, one.buttons, one.silent) for one in shown] == [("ü 🏟", (("b",),), True)] * 4
    async with http.post(address, data=b"{", headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 400


async def test_parameters_that_nobody_knows_are_reported(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    await call(fake, http, "sendMessage", chat_id=chat.id, text="x", parsemode="HTML")
    assert fake.log.of("sendMessage")[0].ignored == {"parsemode"}


async def test_requests_lack_nothing(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    for method, params, words in (
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("sendMessage", {"chat_id": chat.id}, "message text is empty"),
        ("sendMessage", {"chat_id": chat.id, "text": "x", "parse_mode": "BBCode"}, "unsupported parse_mode"),
        ("sendMessage", {"chat_id": chat.id, "text": "x", "reply_markup": "nonsense"}, "can't parse reply_markup"),
        ("editMessageText", {"chat_id": chat.id, "text": "x"}, "message identifier is not specified"),
        ("sendDocument", {"chat_id": chat.id}, "there is no document in the request"),
        ("getUpdates", {"offset": "soon"}, "invalid offset"),
    ):
        reply = await call(fake, http, method, **params)
        assert (reply.status, reply.body["ok"]) == (400, False)
        assert reply.words.startswith(f"Bad Request: {words}")


# --- faults ---


async def test_faults_befall_requests_in_the_order_of_the_script(
    fake: TelegramFake, http: aiohttp.ClientSession
) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    fake.script("sendMessage", server_error(503), None, flood(7), (Delay(0.01), Answer(418, b"{}")))
    replies = [await call(fake, http, "sendMessage", chat_id=chat.id, text=str(number)) for number in range(5)]
    assert [reply.status for reply in replies] == [503, 200, 429, 418, 200]
    assert replies[2].body["parameters"] == {"retry_after": 7}
    assert fake.shown(chat).texts == ["1", "4"]
    calls = fake.log.of("sendMessage")
    assert [one.status for one in calls] == [503, 200, 429, 418, 200]
    times = [moment for one in calls for moment in (one.at, one.ended_at or 0.0)]
    assert times == sorted(times)


async def test_a_script_may_mean_one_chat_only(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    one, other = (fake.people.private(fake.people.user(name)) for name in ("Ada", "Bob"))
    fake.script("sendMessage", flood(1), chat=other)
    assert (await call(fake, http, "sendMessage", chat_id=one.id, text="x")).status == 200
    assert fake.faults.left("sendMessage") == 1
    assert (await call(fake, http, "sendMessage", chat_id=other.id, text="x")).status == 429
    assert (await call(fake, http, "sendMessage", chat_id=other.id, text="x")).status == 200


async def test_a_reset_comes_before_and_a_lost_answer_after_the_deed(
    fake: TelegramFake, http: aiohttp.ClientSession
) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    fake.script("sendMessage", Reset(), LoseAnswer(), LoseAnswer(sent="half"), LoseAnswer(clean=True))
    for text in ("cut", "lost", "half", "closed"):
        with pytest.raises(aiohttp.ClientError):
            await call(fake, http, "sendMessage", chat_id=chat.id, text=text)
    assert fake.shown(chat).texts == ["lost", "half", "closed"]
    assert [one.status for one in fake.log.of("sendMessage")] == [None, 200, 200, 200]


@pytest.mark.parametrize("after", [False, True])
async def test_a_pause_ends_when_the_test_says_so(fake: TelegramFake, http: aiohttp.ClientSession, after: bool) -> None:
    chat = fake.people.private(fake.people.user("Ada"))
    pause = Pause(after=after)
    fake.script("sendMessage", pause)
    sending = asyncio.create_task(call(fake, http, "sendMessage", chat_id=chat.id, text="x"))
    await pause.reached.wait()
    assert fake.shown(chat).texts == (["x"] if after else [])
    assert not sending.done()
    pause.release()
    assert (await sending).status == 200
    assert fake.shown(chat).texts == ["x"]


async def test_a_fake_that_is_left_lets_nobody_wait(http: aiohttp.ClientSession) -> None:
    async with TelegramFake() as fake:
        pause = Pause()
        fake.script("getMe", pause)
        asking = asyncio.create_task(call(fake, http, "getMe"))
        polling = asyncio.create_task(call(fake, http, "getUpdates", timeout=50))
        await pause.reached.wait()
        await fake.until(lambda: fake.polled)
    for task in (asking, polling):
        with pytest.raises(aiohttp.ClientError):
            await task


async def test_chance_is_the_same_for_the_same_seed(http: aiohttp.ClientSession) -> None:
    async def statuses(seed: int) -> list[int]:
        async with TelegramFake() as fake:
            fake.chaos(seed, (0.3, server_error(500)), (0.2, flood(1)), method="getMe")
            return [(await call(fake, http, "getMe")).status for _ in range(40)]

    first = await statuses(1)
    assert first == await statuses(1)
    assert first != await statuses(2)
    assert set(first) == {200, 429, 500}


async def test_down_means_refused_and_up_means_the_same_port(fake: TelegramFake, http: aiohttp.ClientSession) -> None:
    poll = asyncio.create_task(call(fake, http, "getUpdates", timeout=50))
    await fake.until(lambda: fake.polled)
    address = fake.base_url
    await fake.down()
    with pytest.raises(aiohttp.ClientError):
        await poll
    for _ in range(3):
        with pytest.raises(aiohttp.ClientConnectorError):
            await call(fake, http, "getMe")
    await fake.up()
    assert fake.base_url == address
    assert (await call(fake, http, "getMe")).status == 200


# --- webhooks ---


@dataclass(slots=True)
class Receiver:
    """A webhook that answers what it is told to, 200 when there is nothing left."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Set: answers are given at once."""
    answers: list[int] = field(default_factory=list[int])
    got: list[tuple[str, dict[str, object]]] = field(default_factory=list[tuple[str, dict[str, object]]])
    """The secret and the update."""

    async def handle(self, request: web.Request) -> web.Response:
        """Take an update."""
        self.got.append(
            (request.headers.get("X-Telegram-Bot-Api-Secret-Token", ""), orjson.loads(await request.read()))
        )
        await self.gate.wait()
        return web.Response(status=self.answers.pop(0) if self.answers else 200)


def text(update: dict[str, object]) -> str:
    """What the message of an update says."""
    message = cast("dict[str, object]", update["message"])
    return str(message["text"])


@pytest.fixture
async def receiver() -> AsyncGenerator[tuple[Receiver, str]]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/hook", made.handle)
    door = Door(app)
    await door.open()
    yield made, f"http://127.0.0.1:{door.port}/hook"
    await door.close()


async def test_a_webhook_gets_every_update_in_order_until_it_answers_200(
    fake: TelegramFake, http: aiohttp.ClientSession, receiver: tuple[Receiver, str]
) -> None:
    hook, url = receiver
    hook.answers = [500, 404]
    hook.gate.set()
    ada = fake.people.user("Ada")
    chat = fake.people.private(ada)
    fake.people.say(chat, ada, "before")
    assert (await call(fake, http, "setWebhook", url=url, secret_token="S-1_x", max_connections=1)).status == 200
    fake.people.say(chat, ada, "after")
    await fake.until(lambda: not fake.unconfirmed)
    assert [text(update) for _, update in hook.got] == ["before"] * 3 + ["after"]
    assert {secret for secret, _ in hook.got} == {"S-1_x"}
    info = (await call(fake, http, "getWebhookInfo")).body["result"]
    assert isinstance(info, dict)
    assert (info["url"], info["pending_update_count"]) == (url, 0)
    assert info["last_error_message"] == "Wrong response from the webhook: 404 Not Found"
    assert [status for _, status in fake.api.deliverer.attempts] == [500, 404, 200, 200]


async def test_a_webhook_is_used_at_once_for_several_chats_but_in_order_within_one(
    fake: TelegramFake, http: aiohttp.ClientSession, receiver: tuple[Receiver, str]
) -> None:
    hook, url = receiver
    await call(fake, http, "setWebhook", url=url)
    for name in ("Ada", "Bob"):
        user = fake.people.user(name)
        chat = fake.people.private(user)
        for number in range(2):
            fake.people.say(chat, user, f"{name} {number}")
    await fake.until(lambda: len(hook.got) == 2)
    assert sorted(text(update) for _, update in hook.got) == ["Ada 0", "Bob 0"]
    hook.gate.set()
    await fake.until(lambda: not fake.unconfirmed)
    assert sorted(text(update) for _, update in hook.got[2:]) == ["Ada 1", "Bob 1"]


async def test_polling_and_a_webhook_exclude_each_other(
    fake: TelegramFake, http: aiohttp.ClientSession, receiver: tuple[Receiver, str]
) -> None:
    poll = asyncio.create_task(call(fake, http, "getUpdates", timeout=50))
    await fake.until(lambda: fake.polled)
    await call(fake, http, "setWebhook", url=receiver[1])
    assert await poll == Reply(
        409, {"ok": False, "error_code": 409, "description": "Conflict: terminated by setWebhook request"}
    )
    refused = await call(fake, http, "getUpdates")
    assert (refused.status, refused.words.startswith("Conflict: can't use getUpdates")) == (409, True)
    ada = fake.people.user("Ada")
    await call(fake, http, "deleteWebhook")
    said = fake.people.say(fake.people.private(ada), ada, "x")
    assert f"'message_id': {said.id}" in str((await call(fake, http, "getUpdates")).body["result"])
    await call(fake, http, "deleteWebhook", drop_pending_updates=True)
    assert not fake.unconfirmed
    assert receiver[0].got == []


async def test_a_webhook_must_have_a_good_address_and_secret(http: aiohttp.ClientSession) -> None:
    async with TelegramFake(https_only=True) as fake:
        plain = await call(fake, http, "setWebhook", url="http://127.0.0.1:1/hook")
        assert plain.words == "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"
        odd = await call(fake, http, "setWebhook", url="https://127.0.0.1:1/hook", secret_token="with blank")
        assert odd.words == "Bad Request: secret token contains unallowed characters"
