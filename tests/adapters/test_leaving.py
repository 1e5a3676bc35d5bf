"""Stop and come back: who closes a connection stops what was asked, after a grace in which they may come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import openai
import pytest

from agent_core.store.inbox.rows import Accepted
from gateway.daemon import Serving
from gateway.sessions.accepting import Accepting
from tests.serving import served

SLOW: list[Any] = [{"role": "user", "content": "count to 200 slowly"}]
GRACE = 1.5


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path, {"OUTSPOKEN_SERVER__DISCONNECT_SECONDS": str(GRACE)}) as serving:
        yield serving


async def exits(up: Serving, count: int, seconds: float = 40) -> list[str]:
    """How the first turns ended, when so many have."""
    async with asyncio.timeout(seconds):
        while True:
            rows = [row async for row in _turns(up)]
            if len([one for one in rows if one]) >= count:
                return rows
            await asyncio.sleep(0.1)


async def _turns(up: Serving) -> AsyncGenerator[str]:
    from sqlalchemy import select

    from agent_core.store import tables as t

    rows = await up.hub._store.turns._asks.all(select(t.turns.c.exit).order_by(t.turns.c.turn))
    for row in rows:
        yield str(row[0] or "")


async def left(up: Serving, headers: dict[str, str] | None = None, *, stream: bool = True, **more: Any) -> None:
    """A client that hangs up when it has heard something."""
    body = {"model": "outspoken", "messages": SLOW, "stream": stream, **more}
    async with aiohttp.ClientSession() as http:
        if stream:
            async with http.post(f"{up.url}/v1/chat/completions", json=body, headers=headers) as response:
                async for line in response.content:
                    if b"content" in line:
                        break
                response.close()
        else:

            async def asked() -> None:
                async with http.post(f"{up.url}/v1/chat/completions", json=body, headers=headers):
                    pass

            asking = asyncio.create_task(asked())
            while not up.hub.running():
                await asyncio.sleep(0.05)
            asking.cancel()
            await asyncio.wait({asking})


@pytest.mark.parametrize("stream", [True, False])
async def test_what_nobody_waits_for_is_stopped_after_the_grace(up: Serving, stream: bool):
    await left(up, stream=stream)
    assert await exits(up, 1) == ["stopped"]


async def test_who_leaves_while_the_message_is_being_stored_stops_it_as_well(
    up: Serving, monkeypatch: pytest.MonkeyPatch
):
    storing, gone, put = asyncio.Event(), asyncio.Event(), Accepting.put

    async def slowly(self: Accepting, *given: Any) -> Accepted:
        storing.set()
        await gone.wait()
        return await put(self, *given)

    monkeypatch.setattr(Accepting, "put", slowly)
    async with aiohttp.ClientSession() as http:
        body = {"model": "outspoken", "messages": SLOW}
        asking = asyncio.create_task(http.post(f"{up.url}/v1/chat/completions", json=body))
        await storing.wait()
        asking.cancel()
        await asyncio.wait({asking})
    await asyncio.sleep(0.2)  # until the server has noticed
    gone.set()
    assert await exits(up, 1) == ["stopped"]


@pytest.mark.parametrize("headers", [{"Idempotency-Key": "K"}, {"X-Outspoken-Disconnect": "detach"}])
async def test_what_has_a_key_or_is_let_go_on_comes_to_its_end(up: Serving, headers: dict[str, str]):
    await left(up, headers)
    assert await exits(up, 1) == ["answered"]


async def test_a_response_in_the_background_goes_on_when_its_stream_is_closed(up: Serving):
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client:
        stream: Any = await client.responses.create(
            model="outspoken", input="count to 200 slowly", background=True, stream=True
        )
        async for event in stream:
            if event.type == "response.output_text.delta":
                break
        await stream.close()
        assert await exits(up, 1) == ["answered"]


async def test_who_comes_back_within_the_grace_is_put_on_again(up: Serving):
    again = {"X-Request-Id": "mine"}
    await left(up, again)
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client:
        stream: Any = await client.chat.completions.create(
            model="outspoken", messages=SLOW, stream=True, extra_headers=again
        )
        ends = [choice.finish_reason async for chunk in stream for choice in chunk.choices]
    assert ends[-1] == "stop"
    assert await exits(up, 1) == ["answered"]


class Impatient(httpx2.AsyncHTTPTransport):
    """Its patience ends as soon as the gateway answers."""

    def __init__(self, up: Serving) -> None:
        super().__init__()
        self._answered = up.hub.watching.following
        self.asked = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        while self._answered:  # the one before has not been left yet
            await asyncio.sleep(0.02)
        self.asked += 1
        asking = asyncio.ensure_future(super().handle_async_request(request))
        while not self._answered and not asking.done():
            await asyncio.sleep(0.02)
        asking.cancel()
        await asyncio.wait({asking})
        raise httpx2.ReadTimeout("too long", request=request)


async def test_an_sdk_that_asks_again_joins_the_running_turn(up: Serving):
    """The real SDK, whose patience ends before the answer comes: three requests, one turn."""
    http = openai.DefaultAsyncHttpxClient(transport=(way := Impatient(up)))
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=2, http_client=http) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(model="outspoken", messages=SLOW)
    assert way.asked == 3
    assert await exits(up, 1) == ["stopped"]


async def test_the_same_asked_twice_at_once_is_two_turns(up: Serving):
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client:
        words: list[Any] = [{"role": "user", "content": "hello"}]
        both = await asyncio.gather(
            *(client.chat.completions.create(model="outspoken", messages=words) for _ in range(2))
        )
    assert len({one.id for one in both}) == 2


async def test_a_chat_completion_is_cancelled_by_its_id_from_another_connection(up: Serving):
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client:
        stream: Any = await client.chat.completions.create(model="outspoken", messages=SLOW, stream=True)
        made, finish = "", ""
        async for chunk in stream:
            if not made:
                made = chunk.id
                cancelled: Any = await client.post(f"/chat/completions/{made}/cancel", cast_to=object)
                assert cancelled["outspoken"]["exit"] == "stopped"
            for choice in chunk.choices:
                finish = choice.finish_reason or finish
        assert finish == "length"
        with pytest.raises(openai.NotFoundError):
            await client.post("/chat/completions/chatcmpl-s_nothing-1/cancel", cast_to=object)
