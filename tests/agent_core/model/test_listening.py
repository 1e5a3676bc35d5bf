"""The client against a raw socket: what is new, what is a loop, whose limit it was, and what an endpoint has refused once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core.causes import BreakCause
from agent_core.model.client import DONE_ONLY, ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, Event, ReasoningArrived, ReplyFinished, TextArrived, ToolArgumentsArrived
from tests.agent_core.model.test_client import HEAD, data, delta, text_of, upstream, writes

Answer = Callable[[dict[str, Any]], bytes]


def drips(
    piece: bytes, *, first: bytes = b"", every: float = 0.05
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + first)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(every)

    return peer


def arguments(text: str) -> bytes:
    return delta(
        f'"tool_calls": [{{"index": 0, "id": "c", "function": {{"name": "look", "arguments": {json.dumps(text)}}}}}]'
    )


HELLO = delta('"content": "Hello, here is what I found out about it. "')


@pytest.mark.parametrize(
    "piece",
    [
        delta('"content": " "'),
        delta('"content": "\\n"'),
        delta('"content": "\\u200b\\ufeff"'),
        delta('"reasoning_content": "  "'),
        delta('"content": "I am still at it. "'),
        delta('"reasoning_content": "Let me think about this again. "'),
        delta('"content": "."'),
        arguments(""),
        arguments("   "),
        arguments("[] "),
    ],
)  # fmt: skip
async def test_a_drip_that_says_nothing_new_is_a_stall_after_the_usual_time(piece: bytes) -> None:
    async with upstream(drips(piece, first=HELLO)) as call:
        async with asyncio.timeout(60):
            events, ending = await call(stall=0.7)
    assert isinstance(ending, CallBroke)
    repeats = b" at it" in piece or b"this again" in piece
    assert ending.cause is (BreakCause.REPEATING if repeats else BreakCause.STALLED)
    shown = text_of(events)
    assert len(shown) < 200, "what is only said again is not shown for long"


async def test_words_that_come_slowly_are_life() -> None:
    pieces = [delta(f'"content": "word{number} "') for number in range(12)]

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for piece in [*pieces, delta("", '"stop"'), data("[DONE]")]:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.2)

    async with upstream(peer) as call:
        _, ending = await call(stall=0.8)
    assert isinstance(ending, ReplyFinished)


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
async def test_a_loop_is_cut_where_it_begins_and_not_shown(field: str) -> None:
    loop = delta(f'"{field}": "And then I will run the tests again. "')
    async with upstream(writes(HELLO, loop * 3_000)) as call:
        events, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.REPEATING
    said = "".join(e.text for e in events if isinstance(e, TextArrived | ReasoningArrived))
    assert said.count("run the tests again") < 8


async def test_what_was_said_again_before_a_connection_broke_is_not_lost_with_it() -> None:
    chorus = "And then I will run the tests again. "
    said = delta(f'"content": "{chorus}"')
    async with upstream(writes(HELLO, said, said, said)) as call:
        events, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.ENDED_EARLY
    assert text_of(events).endswith(chorus * 3), "whoever goes on begins behind what was said"


async def test_a_loop_of_arguments_is_cut() -> None:
    async with upstream(writes(arguments('{"text": "'), arguments("and on it goes ") * 3_000)) as call:
        events, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.REPEATING
    assert sum(len(e.text) for e in events if isinstance(e, ToolArgumentsArrived)) < 300


async def test_a_call_that_comes_again_and_again_in_one_reply_is_a_loop() -> None:
    calls = b"".join(
        delta(f'"tool_calls": [{{"index": {n}, "id": "c{n}", "function": {{"name": "look_around_here", "arguments": "{{\\"where\\": \\"at the same old place, once more\\"}}"}}}}]')
        for n in range(1_000)
    )  # fmt: skip
    async with upstream(writes(calls)) as call:
        _, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.REPEATING


async def test_an_output_limit_in_a_loop_is_the_loop() -> None:
    async with upstream(
        writes(HELLO, delta('"content": "court "') * 400, delta("", '"length"'), data("[DONE]"))
    ) as call:
        _, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.REPEATING


async def test_a_repetition_that_ends_is_said_whole() -> None:
    loop, after = '"I will not talk in class.\\n"', '"That was it."'
    async with upstream(
        writes(
            HELLO, delta(f'"content": {loop}') * 200, delta(f'"content": {after}'), delta("", '"stop"'), data("[DONE]")
        )
    ) as call:
        events, ending = await call()
    assert isinstance(ending, ReplyFinished)
    assert text_of(events).count("I will not talk in class.\n") == 200
    assert text_of(events).endswith("That was it.")
    async with upstream(writes(HELLO, delta(f'"content": {loop}') * 200, delta("", '"stop"'), data("[DONE]"))) as call:
        events, ending = await call()
    assert isinstance(ending, ReplyFinished)
    assert text_of(events).count("I will not talk in class.\n") == 200


async def test_a_reply_beyond_our_limit_says_that_it_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.model.client.REPLY_CHARS", 5_000)
    pieces = [delta(f'"content": "Sentence number {n} is one of very many. "') for n in range(500)]
    async with upstream(writes(*(b"".join(pieces[at : at + 50]) for at in range(0, 500, 50)))) as call:
        _, ending = await call()
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.TOO_LONG


async def test_done_without_a_reason_is_an_end_where_there_never_is_one() -> None:
    async with upstream(writes(HELLO, data("[DONE]"))) as call:
        first, second = (await call())[1], (await call())[1]
    assert isinstance(first, CallBroke)
    assert isinstance(second, ReplyFinished)
    assert second.reason == DONE_ONLY


async def test_done_without_a_reason_is_a_break_where_there_are_reasons() -> None:
    replies = [writes(HELLO, delta("", '"stop"'), data("[DONE]")), *[writes(HELLO, data("[DONE]"))] * 4]

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await replies.pop(0)(reader, writer)

    async with upstream(peer) as call:
        endings = [(await call())[1] for _ in range(5)]
    assert [type(each) for each in endings] == [ReplyFinished, *[CallBroke] * 4]


CALL = delta('"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]', '"tool_calls"')


def reasons(endings: Sequence[object]) -> list[str]:
    return [each.reason if isinstance(each, ReplyFinished) else "" for each in endings]


async def test_reasons_that_only_calls_have_say_nothing_of_how_texts_end() -> None:
    replies = [
        writes(CALL, data("[DONE]")),
        *[writes(HELLO, data("[DONE]"))] * 2,
        writes(CALL),
        writes(HELLO, data("[DONE]")),
    ]

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await replies.pop(0)(reader, writer)

    async with upstream(peer) as call:
        endings = [(await call())[1] for _ in range(5)]
    assert [type(each) for each in endings] == [ReplyFinished, CallBroke, ReplyFinished, ReplyFinished, ReplyFinished]
    assert reasons(endings)[-1] == DONE_ONLY


WHOLE, BEGUN = '{\\"city\\": \\"Rome\\"}', '{\\"city\\": \\"Ro'


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [(WHOLE, "", True), (WHOLE, WHOLE, True), (BEGUN, "", False), (WHOLE, BEGUN, False), ("{}", "", False)],
)
async def test_whole_calls_need_no_reason_where_done_stands_behind_them(first: str, second: str, whole: bool) -> None:
    """NVIDIA's servers give texts a reason and calls none. What may be the empty beginning of arguments is not whole."""
    pieces = [
        delta(f'"tool_calls": [{{"index": {n}, "id": "c{n}", "function": {{"name": "f", "arguments": "{given}"}}}}]')
        for n, given in enumerate((first, second))
        if given
    ]
    replies = [writes(HELLO, delta("", '"stop"'), data("[DONE]")), writes(*pieces, data("[DONE]")), writes(*pieces)]

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await replies.pop(0)(reader, writer)

    async with upstream(peer) as call:
        endings = [(await call())[1] for _ in range(3)]
    assert reasons(endings) == ["stop", DONE_ONLY if whole else "", ""]


async def test_a_word_that_nobody_knows_is_an_end_where_there_never_is_another() -> None:
    async with upstream(writes(HELLO, delta("", '"fin"'), data("[DONE]"))) as call:
        endings = [(await call())[1] for _ in range(3)]
    assert reasons(endings) == ["fin", "[usual] fin", "[usual] fin"]


async def test_a_word_that_nobody_knows_is_none_where_there_are_others() -> None:
    replies = [writes(HELLO, delta("", '"stop"')), *[writes(HELLO, delta("", '"fin"'))] * 3]

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await replies.pop(0)(reader, writer)

    async with upstream(peer) as call:
        endings = [(await call())[1] for _ in range(4)]
    assert reasons(endings) == ["stop", "fin", "fin", "fin"]


@pytest.mark.parametrize(
    "behind", ['{"error": {"message": "boom"}}', "null", "[]", "ok", '{"error": {"message": "usage"}, "usage": null}']
)
@pytest.mark.parametrize("reason", ["stop", "length", "content_filter"])
async def test_what_comes_behind_the_end_of_a_reply_is_no_part_of_it(behind: str, reason: str) -> None:
    async with upstream(writes(HELLO, delta("", f'"{reason}"'), data(behind))) as call:
        _, ending = await call()
    assert isinstance(ending, ReplyFinished)
    assert ending.reason == reason


# ---------------------------------------------------------------------- what is refused once


@asynccontextmanager
async def server(
    answer: Answer, **more: Any
) -> AsyncGenerator[tuple[Callable[..., Awaitable[tuple[list[Event], Any]]], list[dict[str, Any]]]]:
    """A server that answers each request as `answer` says; gives a function that makes one call, and the bodies that came."""
    bodies: list[dict[str, Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(answer(bodies[-1]))
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    endpoint = Endpoint("up", f"http://127.0.0.1:{port}/v1", (Credential("k", "sk-very-secret"),), ("m",), **more)
    client = ModelClient((endpoint,), SystemClock(), Redactor.of(["sk-very-secret"]))

    async def call(
        messages: Sequence[dict[str, Any]] = ({"role": "user", "content": "x"},), **parameters: Any
    ) -> tuple[list[Event], Any]:
        events: list[Event] = []
        request = ModelRequest(
            Route("m", "up", "k"), 1, list(messages), b'[{"type": "function"}]', parameters, first_content_seconds=10, stall_seconds=10,
            offered=frozenset({"read_file", "list"}),
        )  # fmt: skip
        return events, await client.ask(request, events.extend)

    try:
        yield call, bodies
    finally:
        await client.aclose()
        listening.close()


def refused(status: int, message: str) -> bytes:
    body = json.dumps({"error": {"message": message}}).encode()
    return b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (
        status,
        len(body),
        body,
    )


GOOD = HEAD + HELLO + delta("", '"stop"') + data("[DONE]")


async def test_a_refused_field_is_left_out_the_second_time_and_remembered() -> None:
    def answer(body: dict[str, Any]) -> bytes:
        for name in ("stream_options", "temperature", "parallel_tool_calls"):
            if name in body:
                return refused(400, f"Unrecognized request argument supplied: {name}")
        return (
            refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
            if "max_tokens" in body
            else GOOD
        )

    async with server(answer, temperature=0.1, max_output_tokens=50) as (call, bodies):
        events, ending = await call(parallel_tool_calls=False)
        assert isinstance(ending, ReplyFinished)
        assert text_of(events).startswith("Hello")
        assert len(bodies) == 5
        assert bodies[-1]["max_completion_tokens"] == 50
        _, ending = await call(parallel_tool_calls=False)
        assert isinstance(ending, ReplyFinished)
        assert len(bodies) == 6, "what was learnt is not asked again"


async def test_a_server_that_refuses_everything_is_left_in_peace() -> None:
    async with server(
        lambda body: refused(
            400, f"unknown field {next((k for k in body if k not in ('model', 'messages', 'stream')), 'model')}"
        )
    ) as (call, bodies):
        _, ending = await call(temperature=1, top_p=1, top_k=1, seed=1, user="u", store=True, logit_bias={}, n=1)
        assert isinstance(ending, CallBroke)
        assert ending.cause is BreakCause.BAD_REQUEST
        assert len(bodies) <= 7


def turn_with_call(thoughts: dict[str, Any]) -> list[dict[str, Any]]:
    asked = {"id": "c0", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    return [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [asked], **thoughts},
        {"role": "tool", "tool_call_id": "c0", "content": "ok"},
    ]


async def test_a_model_that_wants_thoughts_of_foreign_calls_gets_something_in_their_place() -> None:
    def answer(body: dict[str, Any]) -> bytes:
        missing = [m for m in body["messages"] if m.get("tool_calls") and not m.get("reasoning_content")]
        return (
            refused(400, "Missing `reasoning_content` field in the assistant message at message index 1.")
            if missing
            else GOOD
        )

    foreign = {"_thoughts": {"endpoint": "other", "model": "n", "field": "reasoning_content", "text": "secret"}}
    async with server(answer) as (call, bodies):
        _, ending = await call(turn_with_call(foreign))
        assert isinstance(ending, ReplyFinished)
        assert "secret" not in json.dumps(bodies)
        assert "_thoughts" not in json.dumps(bodies)


async def test_a_signature_that_is_not_accepted_any_more_does_not_end_the_conversation() -> None:
    def answer(body: dict[str, Any]) -> bytes:
        return (
            refused(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
            if "thinking_blocks" in json.dumps(body)
            else GOOD
        )

    own = {
        "_thoughts": {
            "endpoint": "up",
            "model": "m",
            "thinking_blocks": [{"type": "thinking", "thinking": "a", "signature": "old"}],
        }
    }
    async with server(answer) as (call, bodies):
        for _ in range(2):
            _, ending = await call(turn_with_call(own))
            assert isinstance(ending, ReplyFinished)
        assert ["thinking_blocks" in json.dumps(body) for body in bodies] == [True, False, True, False], (
            "only that request goes without"
        )


async def test_a_tool_with_something_before_its_name_is_the_tool() -> None:
    asked = '"tool_calls": [{"index": 0, "id": "c", "function": {"name": "default_api:read_file", "arguments": "{}"}}]'
    async with server(lambda _: HEAD + delta(asked) + delta("", '"stop"') + data("[DONE]")) as (call, _):
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert next(getattr(event, "name", "") for event in events) == "read_file"
