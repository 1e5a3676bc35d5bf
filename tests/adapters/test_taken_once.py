"""What a request is taken as, before a scripted gateway: in which conversation, under which key, for whom; and that nothing of it is told twice or forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from adapters.contract.base import FromApi, Inbound, KeptResponse, RefusedRequest, SessionKey, Showing, Sight, Ticket
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.http.api import taking
from adapters.http.api.surface import ApiSettings, OpenAiApi
from adapters.http.errorsas import Disconnect
from agent_core.failures.exits import Answered, HandedToClient, ProviderDown
from agent_core.messages import InputMessage
from agent_core.turn.state import CallItem, ThoughtText
from agent_core.turn.view import BubbleKind
from tests.adapters.scripted import SUMMARY, CountedIds, ScriptGateway, ended, shown, text
from tests.callers import OneKey

DONE = ended(Answered(), text("text0", "hello", BubbleKind.ANSWER, final=True))
ASKED: dict[str, Any] = {"model": "outspoken", "messages": [{"role": "user", "content": "hi"}]}
GOES_ON = {"model": "outspoken", "input": "and?", "previous_response_id": "resp_s_1_7", "store": True}
SESSION = SessionKey("api", "", "kept")
FIRST, AGAIN = {"x-stainless-retry-count": "0"}, {"x-stainless-retry-count": "1"}


class Kept(ScriptGateway):
    """One that keeps a response, and takes what it is told to take."""

    def __init__(self, script: Sequence[Sight | float | BaseException] = (DONE,)) -> None:
        super().__init__(script)
        self.refuses = 0
        self.together: asyncio.Barrier | None = None
        self.whose = FromApi(
            account="api", platform_key="k", session=SESSION, input=(InputMessage("hi"),), surface="api", memory_scope="",
            response={},
        )  # fmt: skip
        self.gone: list[float] = []

    async def accept(self, inbound: Inbound, *, to_end: bool = False) -> Ticket:
        if self.together is not None:
            await self.together.wait()
        if self.refuses:
            self.refuses -= 1
            raise NotAccepted("not now", NotAcceptedCode.STORAGE_AWAY)
        return await super().accept(inbound, to_end=to_end)

    async def response(self, session: str, number: int) -> KeptResponse:
        return KeptResponse(Ticket(number, session, duplicate=True), self.whose, 1, latest=True)

    async def told_after(self, kept: KeptResponse) -> tuple[dict[str, Any], ...]:
        del kept
        return ({"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"})

    async def unanswered(self, prefix: str) -> list[str]:
        del prefix
        return []


class Served:
    """The API before it."""

    def __init__(self, url: str, http: aiohttp.ClientSession, gateway: Kept, refused: list[RefusedRequest]) -> None:
        self.url, self.http, self.gateway, self.refused = url, http, gateway, refused

    async def ask(
        self,
        body: Mapping[str, Any] | Any,
        headers: Mapping[str, str] | None = None,
        path: str = "/v1/chat/completions",
    ) -> tuple[int, bytes, Mapping[str, str]]:
        given: dict[str, Any] = {"json": body} if isinstance(body, dict) else {"data": body}
        async with asyncio.timeout(30), self.http.post(self.url + path, headers=headers, **given) as answer:
            return answer.status, await answer.read(), answer.headers

    async def events(self, **more: Any) -> list[str]:
        _, body, _ = await self.ask({**ASKED, "stream": True, **more})
        return [one for one in body.decode().split("\n\n") if one]

    async def chunks(self, **more: Any) -> list[Any]:
        found = [one.removeprefix("data: ") for one in await self.events(**more) if one.startswith("data: {")]
        return [json.loads(one) for one in found]


@asynccontextmanager
async def serving(gateway: Kept, key: str | None = None, **settings: Any) -> AsyncGenerator[Served]:
    refused: list[RefusedRequest] = []

    async def note(one: RefusedRequest) -> None:
        refused.append(one)

    base: dict[str, Any] = {
        "callers": OneKey(key), "max_body_bytes": 5_000, "keep_alive_seconds": 15, "disconnect": Disconnect.DETACH,
    }  # fmt: skip
    api = OpenAiApi(cast("Any", gateway), ApiSettings(**{**base, **settings}), gateway.clock, CountedIds(), note)
    app = web.Application()
    app.add_routes(api.routes())
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as http:
            yield Served(f"http://127.0.0.1:{runner.addresses[0][1]}", http, gateway, refused)
    finally:
        await runner.cleanup()


async def test_who_goes_on_from_a_response_does_so_in_its_conversation_each_time() -> None:
    async with serving(Kept()) as served:
        for _ in range(2):
            status, _, _ = await served.ask(GOES_ON, path="/v1/responses")
            assert status == 200
        assert [one.session for one in served.gateway.taken] == [SESSION, SESSION]


async def test_of_two_that_go_on_at_once_one_goes_a_way_of_its_own() -> None:
    gateway = Kept()
    gateway.together = asyncio.Barrier(2)
    async with serving(gateway) as served:
        await asyncio.gather(*(served.ask(GOES_ON, path="/v1/responses") for _ in range(2)))
        sessions = [one.session for one in gateway.taken]
        assert sessions.count(SESSION) == 1


async def test_what_was_read_while_another_request_was_stored_there_is_read_again() -> None:
    gateway = Kept()
    may, reads, plain = asyncio.Event(), list[int](), gateway.response

    async def response(session: str, number: int) -> KeptResponse:
        reads.append(number)
        first, kept = len(reads) == 1, replace(await plain(session, number), latest=not gateway.taken)
        if first:
            await may.wait()
        return kept

    cast("Any", gateway).response = response
    async with serving(gateway) as served, asyncio.timeout(20):
        late = asyncio.create_task(served.ask(GOES_ON, path="/v1/responses"))
        while not reads:
            await asyncio.sleep(0.01)
        await served.ask(GOES_ON, path="/v1/responses")
        may.set()
        await late
        assert [one.session == SESSION for one in gateway.taken] == [True, False]
        assert len(reads) == 3


async def test_nobody_goes_on_from_what_another_key_has_asked() -> None:
    gateway = Kept()
    gateway.whose = replace(gateway.whose, key="somebody", own_history=(), response=None)
    async with serving(gateway) as served:
        status, body, _ = await served.ask(GOES_ON, path="/v1/responses")
        assert (status, gateway.taken) == (400, [])
        assert b"previous_response_not_found" in body


async def test_a_retry_of_what_was_refused_or_answered_is_a_request_of_its_own() -> None:
    gateway = Kept()
    gateway.refuses = 1
    async with serving(gateway) as served:
        assert (await served.ask(ASKED, FIRST))[0] == 503
        for headers in (AGAIN, FIRST, AGAIN):
            assert (await served.ask(ASKED, headers))[0] == 200
        keys = [one.platform_key for one in gateway.taken]
        assert len(set(keys)) == 3


async def test_a_retry_of_what_failed_in_our_hands_is_one_as_well() -> None:
    gateway = Kept([ZeroDivisionError("a mistake of ours")])
    async with serving(gateway) as served:
        for headers in (FIRST, AGAIN):
            assert (await served.ask(ASKED, headers))[0] == 500
        first, second = (one.platform_key for one in gateway.taken)
        assert first != second


async def test_what_is_too_large_is_not_read_to_its_end_and_not_taken() -> None:
    sent = 0

    async def body() -> AsyncGenerator[bytes]:
        nonlocal sent
        for _ in range(20_000):
            sent += 1_000
            yield b" " * 1_000
            await asyncio.sleep(0)

    async with serving(Kept()) as served:
        try:
            status, _, _ = await served.ask(body())
            assert status == 413
        except aiohttp.ClientError:
            pass  # it hung up while we were writing
        assert served.gateway.taken == []
        assert sent < 20_000_000


async def test_whoever_is_refused_is_noted_with_the_id_that_they_are_told() -> None:
    async with serving(Kept(), key="right") as served:
        assert (await served.ask(ASKED, {"Authorization": "Bearer wrong"}))[0] == 401
        status, _, headers = await served.ask({**ASKED, "messages": 5}, {"Authorization": "Bearer right"})
        assert status == 400
        stranger, odd = served.refused
        assert (stranger.stranger, odd.stranger) == (True, False)
        assert headers["x-request-id"] == odd.request != ""


@pytest.mark.parametrize("wanted", [True, False])
async def test_what_was_used_is_told_in_a_stream_to_who_asks_for_it(wanted: bool) -> None:
    async with serving(Kept()) as served:
        chunks = await served.chunks(stream_options={"include_usage": wanted})
        told = [one["usage"] for one in chunks if one.get("usage")]
        total = SUMMARY.input_tokens + SUMMARY.output_tokens
        assert [one["total_tokens"] for one in told] == ([total] if wanted else [])


async def test_calls_of_the_client_have_their_numbers_and_a_stream_has_its_end() -> None:
    calls = tuple(CallItem(f"call_{name}", name, "{}") for name in "ab")
    async with serving(Kept([ended(HandedToClient(), handed=calls)])) as served:
        events = await served.events()
        assert events[-1] == "data: [DONE]"
        deltas = [json.loads(one[6:])["choices"][0]["delta"] for one in events if one.startswith("data: {")]
        numbered = [call for one in deltas for call in one.get("tool_calls", ())]
        assert [(one["index"], one["id"]) for one in numbered] == [(0, "call_a"), (1, "call_b")]


async def test_a_sign_of_life_comes_when_nothing_came_for_so_long_and_not_more_often() -> None:
    async with serving(Kept([1.0] * 60 + [DONE])) as served:
        events = await served.events()
        assert events.count(": keep-alive") == 3


async def test_what_a_model_thinks_is_told_once_and_to_its_end() -> None:
    thought = ThoughtText()
    sights: list[Sight | float | BaseException] = []
    for piece in ("I ", "think ", "so."):
        thought.add(piece)
        grown = ThoughtText()
        grown.add("I think so."[: thought.chars])
        sights.append(Showing("t_1", shown(), grown))
    thought.add(" Yes.")
    whole = ThoughtText()
    whole.add("I think so. Yes.")
    script = [15.0, *(one for sight in sights for one in (sight, 14.0)), replace(DONE, thought=whole)]
    async with serving(Kept(script)) as served:
        events = await served.events()
        chunks = [json.loads(one.removeprefix("data: ")) for one in events if one.startswith("data: {")]
        told = [one["choices"][0]["delta"].get("reasoning_content", "") for one in chunks if one["choices"]]
        assert "".join(told) == "I think so. Yes."
        assert len([one for one in told if one]) > 1, "it is told as it comes"
        assert ": keep-alive" not in events, "something was told only just"


async def test_a_stream_that_fails_in_the_gateway_ends_with_a_word_about_it() -> None:
    async with serving(Kept([15.0, Showing("t_1", shown(), ThoughtText()), RuntimeError("a bug")])) as served:
        *_, told, end = await served.events()
        assert ("error" in told, end) == (True, "data: [DONE]")


async def test_an_object_that_came_too_late_for_a_status_says_its_failure_itself() -> None:
    failed = ended(ProviderDown(status=503))
    async with serving(Kept([20.0, 20.0, 20.0, failed])) as served:
        status, body, _ = await served.ask(ASKED)
        assert (status, "error" in json.loads(body)) == (200, True)


@pytest.mark.parametrize(
    ("keyed", "background", "disconnect", "seconds"),
    [
        (False, False, Disconnect.GRACE, 10.0), (True, False, Disconnect.GRACE, float("inf")),
        (False, True, Disconnect.GRACE, float("inf")), (True, True, Disconnect.CANCEL, 0.0), (False, False, Disconnect.DETACH, float("inf")),
    ],
)  # fmt: skip
async def test_who_goes_leaves_a_request_that_goes_on_for_so_long(
    keyed: bool, background: bool, disconnect: Disconnect, seconds: float
) -> None:
    gateway = Kept()
    settings = ApiSettings(OneKey(None), 1, 15, disconnect)

    async def note(_: RefusedRequest) -> None: ...

    left: list[float] = []

    def client_left(_: Ticket, grace: float) -> None:
        left.append(grace)

    vars(gateway).update(client_left=client_left)
    api = OpenAiApi(cast("Any", gateway), settings, gateway.clock, CountedIds(), note)
    ticket = Ticket(7, "s_1", duplicate=False)
    job = SimpleNamespace(keyed=keyed, asked=SimpleNamespace(background=background), ticket=ticket, request_id="r")
    request = SimpleNamespace(headers={})
    served = api._taking.retries.begins("mark", "key", 0.0, retry=False)
    api._left(cast("Any", request), cast("Any", job), served)
    assert left == ([seconds] if seconds < float("inf") else [])
    assert served.until is not None
    assert served.until - gateway.clock.at == min(seconds, 60.0), (
        "a client that is gone for good is not remembered for good"
    )


@pytest.mark.parametrize("traced", [False, True])
def test_no_two_people_and_no_two_contents_have_one_key(traced: bool) -> None:
    headers = {"X-Request-Id": "r"} if traced else {taking.KEYED: "r"}
    request = SimpleNamespace(headers=headers)
    keys = [
        taking.platform_key_of(cast("Any", request), cast("Any", SimpleNamespace(whose=whose, digest=digest)), "r")
        for whose in ("", "ada", "bob")
        for digest in ("x", "y")
    ]
    assert len(set(keys)) == (6 if traced else 3)
    marks = {
        taking.mark_of(cast("Any", SimpleNamespace(caller=SimpleNamespace(key=key), whose=whose, digest=digest)))
        for key in "ab" for whose in "cd" for digest in "ef"
    }  # fmt: skip
    assert len(marks) == 8


@pytest.mark.parametrize(
    ("named", "joins"),
    [
        ({}, True),
        ({"Idempotency-Key": "mine"}, False),
        ({"X-Request-Id": "mine"}, False),
        ({"X-Client-Request-Id": "mine"}, False),
    ],
)
async def test_a_retry_that_names_itself_joins_nothing_but_itself(named: dict[str, str], *, joins: bool) -> None:
    class Stored(Kept):
        async def unanswered(self, prefix: str) -> list[str]:
            return [f"{prefix}before"]

    async with serving(Stored()) as served:
        assert (await served.ask(ASKED, AGAIN | named))[0] == 200
        (taken,) = served.gateway.taken
        assert taken.platform_key.endswith(":before") is joins
