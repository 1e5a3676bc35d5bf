"""The OpenAI-compatible API, used by the real SDK, against the whole gateway with the rehearsal model."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from agent_core.model.rehearsal.faults import FAULTS
from gateway.daemon import Serving
from tests.serving import served

CLEAN = frozenset({"answered", "handed_to_client"})
NEVER_MENDED = frozenset(
    {"long rate limit", "context overflow", "bad request", "unauthorised", "payment required", "model not found", "refusal",
     "refusal midway", "failing call", "no progress", "circles", "endless steps"}
)  # fmt: skip


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path) as serving:
        yield serving


@pytest.fixture
async def client(up: Serving) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def words(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


async def streamed(client: openai.AsyncOpenAI, text: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    """(text, finish reason, the outspoken object)."""
    said, finish = "", ""
    facts: dict[str, Any] = {}
    async with asyncio.timeout(60):
        stream: Any = await client.chat.completions.create(model="outspoken", messages=words(text), stream=True, **more)
        async for chunk in stream:
            for choice in chunk.choices:
                said += choice.delta.content or ""
                finish = choice.finish_reason or finish
            extra: dict[str, Any] = chunk.model_extra or {}
            facts = extra.get("outspoken") or facts
    return said, finish, facts


async def test_a_question_is_answered_streaming_and_not(client: openai.AsyncOpenAI):
    text, finish, facts = await streamed(client, "hello there")
    assert "hello there" in text
    assert (finish, facts["exit"]) == ("stop", "answered")
    whole = await client.chat.completions.create(model="outspoken", messages=words("hello there"))
    assert whole.choices[0].message.content == text
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage is not None
    assert whole.usage.total_tokens > 0


async def test_no_rehearsed_fault_is_silent_or_hangs_or_passes_for_finished(client: openai.AsyncOpenAI):
    limit = asyncio.Semaphore(8)

    async def one(name: str) -> tuple[str, str, str, str]:
        async with limit:
            text, finish, facts = await streamed(client, f"rehearse {name}", user=name.replace(" ", "-"))
        return name, text, finish, str(facts["exit"])

    names = [*FAULTS, *(f"{name} forever" for name in FAULTS)]
    for name, text, finish, code in await asyncio.gather(*map(one, names)):
        assert text.strip(), f"{name}: silent"
        assert (finish == "stop") == (code == "answered"), f"{name}: {finish} for {code}"
        if name in FAULTS and name not in NEVER_MENDED:
            assert code in CLEAN, f"{name} could have been mended, and ended as {code}: {text}"
        if name.endswith("forever") and name.removesuffix(" forever") not in (
            "text tool call",
            "housekeeping then nothing",
        ):
            assert code not in CLEAN, f"{name} passed for {code}: {text}"


async def test_a_broken_reply_is_continued_and_said_once(client: openai.AsyncOpenAI):
    text, _, _ = await streamed(client, "rehearse drop in text")
    assert text.count("This is the first part") == 1
    assert text.endswith("nothing was said twice.")


async def test_a_clients_own_tools_are_handed_back_and_their_results_taken(client: openai.AsyncOpenAI):
    tool: Any = {
        "type": "function",
        "function": {"name": "list_files", "description": "lists", "parameters": {"type": "object", "properties": {}}},
    }
    first = await client.chat.completions.create(model="outspoken", messages=words("list files"), tools=[tool])
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    call = choice.message.tool_calls[0]
    messages: list[Any] = [
        *words("list files"),
        choice.message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "one.txt"},
    ]
    second = await client.chat.completions.create(model="outspoken", messages=messages, tools=[tool])
    assert "one.txt" in str(second.choices[0].message.content)
    stream: Any = await client.chat.completions.create(
        model="outspoken", messages=words("list files"), tools=[tool], stream=True
    )
    deltas: list[Any] = [choice.delta async for chunk in stream for choice in chunk.choices]
    calls: list[Any] = [call for delta in deltas for call in delta.tool_calls or ()]
    names = [call.function.name for call in calls]
    assert names == ["list_files"]


async def test_a_named_session_remembers_and_a_stateless_request_does_not(client: openai.AsyncOpenAI, up: Serving):
    for text in ("one", "two"):
        await client.chat.completions.create(
            model="outspoken", messages=words(text), extra_headers={"X-Outspoken-Session": "mine"}
        )
    story = await client.chat.completions.create(
        model="outspoken", messages=words("three"), extra_body={"outspoken": {"session": "mine"}}
    )
    assert (story.model_extra or {})["outspoken"]["session"] == "mine"


async def test_a_retry_with_the_same_key_is_the_same_turn(client: openai.AsyncOpenAI):
    async def ask(text: str) -> Any:
        return await client.chat.completions.create(
            model="outspoken", messages=words(text), extra_headers={"Idempotency-Key": "K-1"}
        )

    first, again = await asyncio.gather(ask("count to 5 slowly"), ask("count to 5 slowly"))
    later = await ask("count to 5 slowly")
    assert first.id == again.id == later.id
    assert first.choices[0].message.content == later.choices[0].message.content
    with pytest.raises(openai.UnprocessableEntityError):
        await ask("something else")


async def test_leaving_detaches_and_the_answer_is_there_for_a_retry(client: openai.AsyncOpenAI):
    headers = {"Idempotency-Key": "K-2"}
    stream: Any = await client.chat.completions.create(
        model="outspoken", messages=words("count to 30 slowly"), stream=True, extra_headers=headers
    )
    async for _ in stream:
        break
    await stream.close()
    whole = await client.chat.completions.create(
        model="outspoken", messages=words("count to 30 slowly"), stream=True, extra_headers=headers
    )
    text = "".join([c.choices[0].delta.content or "" async for c in whole if c.choices])
    assert text.endswith("29, 30.")


async def test_leaving_with_cancel_stops_the_turn(up: Serving):
    body = {"model": "outspoken", "messages": words("count to 90 slowly"), "stream": True}
    headers = {"X-Outspoken-Disconnect": "cancel", "Idempotency-Key": "K-3"}
    url = f"{up.url}/v1/chat/completions"
    async with aiohttp.ClientSession() as http:
        async with http.post(url, json=body, headers=headers) as response:
            await response.content.readline()
        await asyncio.sleep(0.3)
        async with http.post(url, json=body, headers=headers) as response:
            text = await response.text()
    assert '"exit":"stopped"' in text


async def test_usage_and_models_are_as_the_api_says(client: openai.AsyncOpenAI):
    stream: Any = await client.chat.completions.create(
        model="outspoken", messages=words("hi"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert chunks[-1].usage.total_tokens > 0
    assert chunks[-1].choices == []
    assert len({chunk.id for chunk in chunks}) == 1
    assert [model.id async for model in client.models.list()] == ["outspoken", "rehearsal"]
    assert (await client.models.retrieve("rehearsal")).id == "rehearsal"


async def test_an_unknown_model_is_a_clear_error(client: openai.AsyncOpenAI):
    with pytest.raises(openai.NotFoundError, match="There is no model called 'gpt-99'"):
        await client.chat.completions.create(model="gpt-99", messages=words("hi"))
    with pytest.raises(openai.NotFoundError):
        await client.models.retrieve("gpt-99")


BAD_BODIES: list[tuple[bytes, int, str]] = [
    (b"{", 400, "not valid JSON"),
    (b"[]", 400, "JSON object"),
    (b"\xff\xfe", 400, "not valid JSON"),
    (b'{"messages": []}', 400, "at least one message"),
    (b'{"messages": [{"role": "user", "content": 7}]}', 400, "messages[0].content must be text"),
    (b'{"messages": [{"role": "king", "content": "x"}]}', 400, "messages[0].role"),
    (b'{"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}', 400, "temperature must be a number"),
    (b'{"messages": [{"role": "user", "content": "x"}], "n": 3}', 400, "n must be 1"),
    (b'{"messages": [{"role": "user", "content": "x"}], "user": "' + b"u" * 201 + b'"}', 400, "user has at most 200"),
    (b'{"messages": [{"role": "user", "content": "x"}], "stream": "yes"}', 400, "stream must be true or false"),
    (b'{"messages": [{"role": "user", "content": "x"}], "tools": [{}]}', 400, "tools[0]"),
    (b"[" * 100_000, 400, "not valid JSON"),
    (b'{"messages": [{"role": "user", "content": "' + b"x" * 50_000_000 + b'"}]}', 413, "larger than"),
]


async def test_bad_input_is_told_in_openais_shape_and_the_daemon_goes_on(up: Serving):
    async with aiohttp.ClientSession() as http:
        for body, status, message in BAD_BODIES:
            async with http.post(f"{up.url}/v1/chat/completions", data=io.BytesIO(body)) as response:
                error = json.loads(await response.text())["error"]
                assert (response.status, message in error["message"]) == (status, True), (body[:80], error)
                assert set(error) == {"message", "type", "param", "code"}
        control = {"messages": words("\x00\x01\x1b[31m\u202e hi \U0001f600 \ud800")}
        async with http.post(f"{up.url}/v1/chat/completions", json=control) as response:
            assert response.status == 200
        async with http.get(f"{up.url}/v1/nothing") as response:
            assert response.status == 404
            assert "error" in await response.json()
        async with http.get(f"{up.url}/readyz") as response:
            assert response.status == 200


async def test_the_key_is_asked_for_and_strangers_are_sent_away(tmp_path: Path):
    async with served(tmp_path, {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame"}) as up:
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="wrong", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="outspoken", messages=words("hi"))
        async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="sesame-sesame", max_retries=0) as client:
            await client.chat.completions.create(model="outspoken", messages=words("hi"))
        async with aiohttp.ClientSession() as http:
            evil = {"Origin": "https://evil.example", "Authorization": "Bearer sesame-sesame"}
            async with http.get(f"{up.url}/v1/models", headers=evil) as response:
                assert response.status == 403


async def test_the_page_is_told_of_a_used_id_as_the_api_is(up: Serving):
    async with aiohttp.ClientSession() as http:
        door = f"{up.url}/api/sessions/page-of-a-test/messages"
        for text, status in (("one", 202), ("one", 202), ("another", 422)):
            async with http.post(door, json={"id": "message-0001", "text": text}) as response:
                assert response.status == status
                error = (await response.json()).get("error")
        assert error["code"] == "idempotency_key_reused"


async def test_by_a_name_that_is_not_this_machines_a_key_is_asked_for(up: Serving):
    """It may have been made to point here; or it is the public one, and the page asks for the key at this code."""
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{up.url}/v1/models", headers={"Host": "rebound.example:80"}) as response,
    ):
        told = (await response.json())["error"]
        assert (response.status, told["code"]) == (401, "invalid_api_key")
        assert "'rebound.example'" in told["message"]


async def test_a_limit_that_the_client_set_is_told_by_the_finish_reason_alone(client: openai.AsyncOpenAI):
    text, finish, facts = await streamed(client, "rehearse cut by length forever", max_tokens=5)
    assert (finish, facts["exit"]) == ("length", "cut_by_length")
    assert "output limit" not in text
