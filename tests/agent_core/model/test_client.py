"""The model client against a raw socket: what counts as life, what counts as an end, and that leaving hangs up."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from agent_core.causes import BreakCause
from agent_core.model.client import _HEADERS, PART_BYTES, ModelClient, ModelRequest, _headers
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.stream.alike import BodyReader
from agent_core.model.stream.arriving import MAX_CALLS
from agent_core.model.transport import proxy_of
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import (
    CallBroke,
    Event,
    ReplyFinished,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
)

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def data(text: str) -> bytes:
    return f"data: {text}\n\n".encode()


def delta(inner: str, finish: str = "null") -> bytes:
    return data(f'{{"choices": [{{"index": 0, "delta": {{{inner}}}, "finish_reason": {finish}}}]}}')


@asynccontextmanager
async def upstream(
    peer: Peer,
) -> AsyncGenerator[Callable[..., Awaitable[tuple[list[Event], ReplyFinished | CallBroke]]]]:
    """A server that reads a request and then does what `peer` says; gives a function that makes one call."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    endpoint = Endpoint("up", f"http://127.0.0.1:{port}/v1", (Credential("k", "sk-very-secret"),), ("m",))
    client = ModelClient((endpoint,), SystemClock(), Redactor.of(["sk-very-secret"]))

    async def call(
        stall: float = 10.0, heard: list[Event] | None = None
    ) -> tuple[list[Event], ReplyFinished | CallBroke]:
        events = list[Event]() if heard is None else heard

        def sink(more: Sequence[Event]) -> None:
            events.extend(more)

        request = ModelRequest(
            Route("m", "up", "k"),
            1,
            [{"role": "user", "content": "x"}],
            first_content_seconds=max(stall, 10.0),  # the first call of a process makes the client
            stall_seconds=stall,
        )
        return events, await client.ask(request, sink)

    try:
        yield call
    finally:
        await client.aclose()
        server.close()


def writes(*pieces: bytes, head: bytes = HEAD) -> Peer:
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in (head, *pieces):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return peer


def text_of(events: Sequence[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextArrived))


async def test_text_comes_and_the_finish_reason_ends_it():
    async with upstream(writes(delta('"content": "Hi"'), delta("", '"stop"'), data("[DONE]"))) as call:
        events, ending = await call()
        assert text_of(events) == "Hi"
        assert isinstance(ending, ReplyFinished)
        assert ending.reason == "stop"


@pytest.mark.parametrize(
    ("pieces", "cause"),
    [
        ((), BreakCause.ENDED_EARLY),
        ((delta('"content": "Hi"'),), BreakCause.ENDED_EARLY),
        ((delta('"content": "Hi"'), data("[DONE]")), BreakCause.ENDED_EARLY),
        ((delta('"content": "Hi"'), data("{nonsense")), BreakCause.BAD_PIECE),
        ((data("{nonsense"),), BreakCause.GARBAGE),
        ((data("[DONE]"),), BreakCause.ENDED_EARLY),
        ((b"<html>oops</html>",), BreakCause.GARBAGE),
        ((data('{"error": {"message": "slow down", "code": 429}}'),), BreakCause.RATE_LIMITED),
        ((data('{"error": {"message": "boom sk-very-secret"}}'),), BreakCause.ERROR_IN_STREAM),
    ],
)
async def test_what_is_no_proper_end_is_a_break(pieces: tuple[bytes, ...], cause: BreakCause):
    async with upstream(writes(*pieces)) as call:
        _, ending = await call()
        assert isinstance(ending, CallBroke)
        assert ending.cause is cause
        assert "sk-very-secret" not in ending.detail


async def test_of_much_that_comes_at_once_others_have_their_turn_in_between(monkeypatch: pytest.MonkeyPatch):
    turns, fed, feed = 0, list[tuple[int, int]](), BodyReader.feed

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def noted(self: BodyReader, data: bytes, at: int) -> list[Event]:
        fed.append((len(data), turns))
        return feed(self, data, at)

    monkeypatch.setattr(BodyReader, "feed", noted)
    words = [f"word{number} " for number in range(4_000)]
    body = b"".join(delta(f'"content": "{word}"') for word in words) + delta("", '"stop"') + data("[DONE]")
    beside = asyncio.create_task(other())
    try:
        async with upstream(writes(body)) as call:
            events, ending = await call()
    finally:
        beside.cancel()
    assert isinstance(ending, ReplyFinished)
    assert text_of(events) == "".join(words)
    assert len(body) > 10 * PART_BYTES
    assert max(size for size, _ in fed) <= PART_BYTES
    assert len({turn for _, turn in fed}) == len(fed)


@pytest.mark.parametrize("life", [b": ping\n\n", delta(""), delta('"content": ""'), b"\n"])
async def test_pings_and_empty_deltas_are_no_life(life: bytes):
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + delta('"content": "Hi"'))
        while True:
            writer.write(life)
            await writer.drain()
            await asyncio.sleep(0.05)

    async with upstream(peer) as call:
        async with asyncio.timeout(60):
            _, ending = await call(stall=0.4)
        assert isinstance(ending, CallBroke)
        assert ending.cause is BreakCause.STALLED
        assert 0.3 < ending.waited_seconds < 8, "not the time that a first word has"


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_model_that_only_repeats_its_thoughts_is_told_so_and_one_that_falls_silent_then_as_silent(
    *, goes_on: bool
):
    thought = delta('"reasoning_content": "I should look at that once more, and then again from the beginning. "')

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for number in itertools.count():
            if not goes_on and number == 5:
                await reader.read()
            writer.write(thought)
            await writer.drain()
            await asyncio.sleep(0.02)

    async with upstream(peer) as call, asyncio.timeout(60):
        _, ending = await call(stall=0.4)
        assert isinstance(ending, CallBroke)
        assert ending.cause is (BreakCause.REPEATING if goes_on else BreakCause.STALLED)


@pytest.mark.parametrize(("begins", "cause"), [(b"data: {", BreakCause.BAD_PIECE), (b"PK", BreakCause.GARBAGE)])
async def test_a_piece_without_an_end_is_blamed_on_the_address_only_where_it_is_none_of_a_stream(
    begins: bytes, cause: BreakCause
):
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + begins)
        for piece in [b"x" * 2**20] * 18:
            writer.write(piece)
            await writer.drain()

    async with upstream(peer) as call, asyncio.timeout(60):
        _, ending = await call()
        assert isinstance(ending, CallBroke)
        assert ending.cause is cause


async def test_slow_content_is_life():
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for number in range(8):
            writer.write(delta(f'"content": "{number}"'))
            await writer.drain()
            await asyncio.sleep(0.25)
        writer.write(delta("", '"stop"'))

    async with upstream(peer) as call:
        events, ending = await call(stall=1.0)
        assert text_of(events) == "01234567"
        assert isinstance(ending, ReplyFinished)


async def test_cancelling_hangs_up_at_once():
    begun, gone = asyncio.Event(), asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + delta('"content": "Hi"'))
        await writer.drain()
        begun.set()
        assert await reader.read() == b""
        gone.set()

    async with upstream(peer) as call:
        task = asyncio.ensure_future(call(stall=300))
        await begun.wait()
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait_for(gone.wait(), 60)  # of the 300 that the silence may last
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_finish_reason_without_an_end_of_the_stream_is_not_waited_for_long():
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + delta('"content": "Hi"', '"stop"'))
        await reader.read()

    async with upstream(peer) as call, asyncio.timeout(60):
        _, ending = await call(stall=300)
        assert isinstance(ending, ReplyFinished)


@pytest.mark.parametrize(
    ("status", "body", "cause", "wait"),
    [
        (b"429 Too Many\r\nRetry-After: 7", b'{"error": {"message": "wait"}}', BreakCause.RATE_LIMITED, 7),
        (b"500 Oops", b"<html>", BreakCause.SERVER_ERROR, 0),
        (b"401 No", b'{"error": {"message": "key sk-very-secret"}}', BreakCause.UNAUTHORISED, 0),
        (b"302 Found", b"", BreakCause.GARBAGE, 0),
        (b"302 Found\r\nLocation: https://login.example.org/?next=sk-very-secret", b"", BreakCause.BY_PROXY, 0),
        (b"308 Permanent Redirect\r\nLocation: /v1/chat/completions/", b"", BreakCause.NO_ROUTE, 0),
        (b"301 Moved\r\nLocation: https://127.0.0.1/v1/chat/completions", b"", BreakCause.WANTS_TLS, 0),
    ],
)
async def test_refusals_come_with_their_cause_and_without_the_key(
    status: bytes, body: bytes, cause: BreakCause, wait: float
):
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with upstream(writes(body, head=head)) as call:
        _, ending = await call()
        assert isinstance(ending, CallBroke)
        assert (ending.cause, ending.retry_after_seconds) == (cause, wait)
        assert "sk-very-secret" not in repr(ending)


async def test_what_is_asked_otherwise_after_a_refusal_goes_by_a_connection_of_its_own():
    """Servers hang up after a refusal without saying so; the same request once more would be lost with that connection, each time."""
    asked = 0

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        words = b'{"error": {"message": "Unrecognized request argument supplied: stream_options"}}'
        if asked == 1:
            writer.write(b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n%b" % (len(words), words))
        else:
            writer.write(HEAD + delta('"content": "Hi"', '"stop"'))

    async with upstream(peer) as call:
        _, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert asked == 2


def calls_of(events: Sequence[Event]) -> list[tuple[str, str]]:
    names = {e.index: e.name for e in events if isinstance(e, ToolCallNamed)}
    return [
        (name, "".join(e.text for e in events if isinstance(e, ToolArgumentsArrived) and e.index == index))
        for index, name in sorted(names.items())
    ]


def piece(inner: str) -> bytes:
    return delta(f'"tool_calls": [{inner}]')


FORMS: dict[str, tuple[bytes, ...]] = {
    "in pieces": (
        piece('{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}'),
        piece('{"index": 0, "function": {"arguments": "{\\"x\\""}}'),
        piece('{"index": 0, "function": {"arguments": ": 1}"}}'),
        piece('{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}'),
    ),
    "several in one delta": (
        piece(
            '{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\\"x\\": 1}"}}, {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}'
        ),
    ),
    "interleaved, out of order": (
        piece('{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}'),
        piece('{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\\"x\\": 1}"}}'),
        piece('{"index": 1, "function": {"arguments": "}"}}'),
    ),
    "never an index": (
        piece('{"id": "a", "function": {"name": "f", "arguments": "{\\"x\\": "}}'),
        piece('{"function": {"arguments": "1}"}}'),
        piece('{"id": "b", "function": {"name": "g", "arguments": "{}"}}'),
    ),
    "always index 0": (
        piece('{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\\"x\\": 1}"}}'),
        piece('{"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}}'),
    ),
    "arguments before the name": (
        piece('{"index": 0, "id": "a", "function": {"arguments": "{\\"x\\": 1}"}}'),
        piece('{"index": 0, "id": "a", "function": {"name": "f"}}'),
        piece('{"index": 1, "id": "b", "function": {"name": "g", "arguments": {}}}'),
    ),
    "id and name repeated": (
        piece('{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\\"x\\": "}}'),
        piece('{"index": 0, "id": "a", "function": {"name": "f", "arguments": "1}"}}'),
        piece('{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}'),
    ),
    "as text": (
        delta('"content": "<tool_"'),
        delta('"content": "call>{\\"name\\": \\"f\\", \\"arguments\\": {\\"x\\": 1}}</tool_call>"'),
        delta('"content": "<tool_call>{\\"name\\": \\"g\\"}</tool_call>"'),
    ),
}


@pytest.mark.parametrize("form", list(FORMS))
async def test_tool_calls_are_understood_in_every_grouping(form: str):
    async with upstream(writes(*FORMS[form], delta("", '"tool_calls"'), data("[DONE]"))) as call:
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert [(name, arguments.replace(" ", "")) for name, arguments in calls_of(events)] == [
            ("f", '{"x":1}'),
            ("g", "{}"),
        ]
        assert text_of(events).strip() == ""
        assert not any(isinstance(event, ToolCallCut) for event in events)


async def test_a_character_cut_between_two_writes_or_two_chunks_is_whole():
    whole = delta('"content": "é😀"')
    cut = whole.index("😀".encode()) + 2
    halves = (delta('"content": "\\ud83d"'), delta('"content": "\\ude00"'))
    async with upstream(writes(whole[:cut], whole[cut:], *halves, delta("", '"stop"'))) as call:
        events, _ = await call()
        assert text_of(events) == "é😀😀"


async def test_an_answer_that_is_not_streamed_is_taken_as_well():
    body = b'{"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with upstream(writes(body, head=head)) as call:
        events, ending = await call()
        assert text_of(events) == "whole"
        assert isinstance(ending, ReplyFinished)


def many_calls(count: int, arguments: str = "{}") -> bytes:
    return b"".join(
        delta(
            f'"tool_calls": [{{"index": {at}, "id": "i{at}", "function": {{"name": "t", "arguments": "{arguments}"}}}}]'
        )
        for at in range(count)
    )


@pytest.mark.parametrize("named", [True, False])
async def test_a_reply_that_never_stops_asking_for_calls_is_cut(named: bool):
    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        at = 0
        while True:
            name = '"name": "t"' if named else '"arguments": ""'
            writer.write(delta(f'"tool_calls": [{{"index": {at}, "function": {{{name}}}}}]'))
            await writer.drain()
            await asyncio.sleep(0)
            at += 1

    async with upstream(peer) as call:
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert ending.reason == "length"
        assert len([e for e in events if isinstance(e, ToolCallNamed | ToolCallCut)]) == MAX_CALLS


async def test_a_reply_with_as_many_calls_as_are_taken_is_whole():
    async with upstream(writes(many_calls(MAX_CALLS), delta("", '"tool_calls"'), data("[DONE]"))) as call:
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert ending.reason == "tool_calls"
        assert len([e for e in events if isinstance(e, ToolCallNamed)]) == MAX_CALLS


@pytest.mark.parametrize("whole", [True, False])
async def test_one_chunk_with_too_many_calls_is_cut_too(whole: bool):
    calls = ",".join(
        f'{{"id": "i{at}", "function": {{"name": "t", "arguments": "{{}}"}}}}' for at in range(MAX_CALLS + 1)
    )
    kind = "message" if whole else "delta"
    body = f'{{"choices": [{{"index": 0, "{kind}": {{"tool_calls": [{calls}]}}, "finish_reason": "tool_calls"}}]}}'
    head = HEAD.replace(b"text/event-stream", b"application/json") if whole else HEAD
    async with upstream(writes(body.encode() if whole else data(body), head=head)) as call:
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert ending.reason == "length"
        assert len([e for e in events if isinstance(e, ToolCallNamed)]) == MAX_CALLS


async def test_calls_in_the_text_form_are_cut_at_the_same_number():
    one = '<tool_call>{\\"name\\": \\"t\\", \\"arguments\\": {}}</tool_call>'
    pieces = [delta(f'"content": "{one * 64}"') for _ in range(MAX_CALLS // 64 + 2)]
    async with upstream(writes(*pieces, delta("", '"stop"'), data("[DONE]"))) as call:
        events, ending = await call()
        assert isinstance(ending, ReplyFinished)
        assert ending.reason == "length"
        assert len([e for e in events if isinstance(e, ToolCallNamed)]) == MAX_CALLS


async def test_a_model_whose_template_opens_its_thoughts_is_known_after_one_reply_and_forgotten_after_another() -> None:
    replies = [
        ["Hm, four.", "\n</think>\n\n", "Four."],
        ["Hm, five.", "</think>", "Five."],
        ["Six."],
        ["Seven", "."],
    ]

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces = replies.pop(0)
        writer.write(
            HEAD + b"".join(delta(f'"content": {json.dumps(piece)}') for piece in pieces) + delta("", '"stop"')
        )
        writer.write(data("[DONE]"))
        await writer.drain()

    found: list[list[tuple[str, str]]] = []
    async with upstream(peer) as call:
        for _ in range(4):
            events, _ending = await call()
            found.append([(type(event).__name__, getattr(event, "text", "").strip()) for event in events])
    assert found == [
        [("TextArrived", "Hm, four."), ("TextTakenBack", ""), ("TextArrived", "Four.")],
        [("ReasoningArrived", "Hm, five."), ("TextArrived", "Five.")],
        [("ReasoningArrived", "Six."), ("TextArrived", "Six.")],
        [("TextArrived", "Seven.")],
    ]


async def test_where_nothing_is_streamed_the_whole_answer_is_asked_for():
    calls = 0

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        status, body = (
            (
                b"400 Bad Request",
                b'{"error": {"message": "Streaming is not supported for this model.", "param": "stream"}}',
            )
            if calls == 1
            else (
                b"200 OK",
                b'{"choices": [{"message": {"role": "assistant", "content": "All."}, "finish_reason": "stop"}]}',
            )
        )
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()

    async with upstream(peer) as call:
        for made in (2, 3):
            events, ending = await call()
            assert isinstance(ending, ReplyFinished)
            assert [event.text for event in events if isinstance(event, TextArrived)] == ["All."]
            assert calls == made, "it is remembered"


async def test_what_came_while_our_own_loop_was_held_is_heard_before_a_stall_is_judged():
    """The server is a thread: it goes on writing while nobody here can read."""
    listener = socket.create_server(("127.0.0.1", 0))
    told = threading.Event()

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(65_536)
            peer.sendall(HEAD + delta('"content": "one"'))
            told.wait(20)
            peer.sendall(delta('"content": " two"') + delta("", '"stop"') + data("[DONE]"))

    server = threading.Thread(target=serve)
    server.start()
    endpoint = Endpoint("up", f"http://127.0.0.1:{listener.getsockname()[1]}/v1", (Credential("k", "sk-x"),), ("m",))
    client = ModelClient((endpoint,), SystemClock(), Redactor.of(()))
    events: list[Event] = []

    def held() -> None:
        told.set()
        time.sleep(3)  # far beyond the limit, which the timer hears of as late as we do

    def sink(more: Sequence[Event]) -> None:
        if not events:
            asyncio.get_running_loop().call_later(0.1, held)
        events.extend(more)

    asked = ModelRequest(
        Route("m", "up", "k"), 1, [{"role": "user", "content": "x"}], first_content_seconds=20, stall_seconds=1.5
    )
    try:
        ending = await client.ask(asked, sink)
    finally:
        told.set()
        await client.aclose()
        server.join()
        listener.close()
    assert isinstance(ending, ReplyFinished)
    assert text_of(events) == "one two"


@pytest.mark.parametrize(
    ("said", "kept"), [("one ", "one "), ("One.\\n\\n", "One.\n\n"), ("One.\\n\\n\\n", "One.\n\n")]
)
async def test_the_blank_behind_the_last_word_is_passed_on_while_the_stream_is_silent(said: str, kept: str):
    """Who is killed then has stored it, and whoever goes on may begin with a word."""
    go_on = asyncio.Event()

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + delta(f'"content": "{said}"'))
        await go_on.wait()
        writer.write(delta('"content": "two"') + delta("", '"stop"') + data("[DONE]"))
        await writer.drain()

    async with upstream(peer) as call:
        asked = asyncio.ensure_future(call(20.0, heard := list[Event]()))
        async with asyncio.timeout(20):
            while text_of(heard) != kept:
                await asyncio.sleep(0.01)
        go_on.set()
        await asked
        assert text_of(heard) == json.loads(f'"{said}two"')


async def test_the_lines_of_all_credentials_are_made_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials = (Credential("a", "one"), Credential("b", "two"))
    none = Endpoint("none", "http://[", (Credential("c", "three"),), ("m",))
    client = ModelClient(
        (none, Endpoint("up", "http://127.0.0.1:9/v1", credentials, ("m",))), SystemClock(), Redactor.of(())
    )
    await client.warm()
    made: list[str] = []
    monkeypatch.setattr("agent_core.model.transport.proxy_of", made.append)
    for credential in credentials:
        request = ModelRequest(Route("m", "up", credential.id), 1, [{"role": "user", "content": "x"}])
        ended = await client.ask(request, lambda _: None)
        assert isinstance(ended, CallBroke)
        assert ended.cause is BreakCause.CONNECTION_REFUSED
    assert not made
    await client.aclose()


async def test_a_call_goes_out_with_its_own_key_and_no_other() -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        heard.extend(line.rpartition(b" ")[2] for line in lines if line.lower().startswith(b"authorization:"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        credentials = (Credential("a", "sk-one"), Credential("b", "sk-two"))
        client = ModelClient((Endpoint("up", address, credentials, ("m",)),), SystemClock(), Redactor())
        for credential in ("a", "b", "a"):
            request = ModelRequest(Route("m", "up", credential), 1, [{"role": "user", "content": "x"}])
            ended = await client.ask(request, lambda _: None)
            assert isinstance(ended, CallBroke)
            assert ended.cause is BreakCause.UNAUTHORISED
        await client.aclose()
    assert heard == [b"sk-one", b"sk-two", b"sk-one"]


@pytest.mark.parametrize("named", ["http://", "http://:3128", "://"])
def test_a_proxy_without_a_host_is_none(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", named)
    assert proxy_of("https://models.example/v1") == (None, None)
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    proxy, _ = proxy_of("https://models.example/v1")
    assert str(proxy) == "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("url", "named", "proxied"),
    [
        ("http://models.example/v1", "", True),
        ("http://models.example/v1", "models.example", False),
        ("http://eu.models.example/v1", ".models.example", False),
        ("http://models.example/v1", "other.example", True),
        ("http://models.example/v1", "*", False),
    ],
)
def test_who_is_to_be_reached_without_the_proxy_is(
    url: str, named: str, proxied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", named)
    assert (proxy_of(url)[0] is not None) is proxied


@pytest.mark.parametrize(("size", "cause"), [(2_000, BreakCause.GARBAGE), (900, None)])
async def test_an_answer_that_comes_as_a_whole_has_a_bound(
    size: int, cause: BreakCause | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.model.client.LIMIT_BYTES", 1_500)
    said = '{"choices": [{"index": 0, "message": {"content": "%s"}, "finish_reason": "stop"}]}' % ("x" * size)

    async with upstream(writes(said[:300].encode(), said[300:].encode())) as call:
        events, ending = await call()
    assert (ending.cause if isinstance(ending, CallBroke) else None) is cause
    assert bool(events) is (cause is None)


@pytest.mark.parametrize("name", ["Authorization", "authorization", "User-Agent", "USER-AGENT", "X-Else"])
def test_a_header_of_the_operator_wins_over_ours_however_it_is_spelt(name: str) -> None:
    made = _headers("sk-very-secret", {name: "theirs"})
    assert [value for key, value in made.items() if key.lower() == name.lower()] == ["theirs"]
    for own in ("authorization", "user-agent"):
        assert [key.lower() for key in made].count(own) == 1


@pytest.mark.parametrize("name", [*_HEADERS, *(one.upper() for one in _HEADERS)])
def test_how_an_answer_is_read_is_said_by_us_alone(name: str) -> None:
    made = _headers("sk-very-secret", {name: "theirs"})
    assert {key: value for key, value in made.items() if key.lower() == name.lower()} == {
        key: value for key, value in _HEADERS.items() if key.lower() == name.lower()
    }


@pytest.mark.parametrize("wrong", [data('{"error": {"message": "boom"}}'), data("{no json")])
async def test_what_goes_wrong_behind_the_end_of_a_reply_is_not_about_it(wrong: bytes) -> None:
    async with upstream(writes(delta('"content": "Hi"') + delta("", '"stop"') + wrong)) as call:
        events, ending = await call()
    assert (text_of(events), type(ending)) == ("Hi", ReplyFinished)
    async with upstream(writes(delta('"content": "Hi"') + wrong + delta("", '"stop"'))) as call:
        _, ending = await call()
    assert isinstance(ending, CallBroke)
