"""Whatever a library raises below the client is a break of the call with a class; what our own code raises stays a mistake of ours."""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

import httpx2
import openai
import pytest
from aiohttp import client_exceptions, http_exceptions
from typing_extensions import override

from agent_core.failures.remedies import CAUSE_TO_FAILURE, Failure
from agent_core.model.client import ASK_AGAIN_SECONDS, ModelClient, ModelRequest, Sink
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.transport import ModelLine
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, Event, ReplyFinished
from tests.agent_core.model.test_client import delta, upstream, writes
from tests.store.support import FakeClock

HI = delta('"content": "Hi"')
BAD_HEADS = {
    "a line that is no header": b"HTTP/1.1 200 OK\r\nthis is no header\r\n\r\n",
    "no status line": b'{"error":"overloaded"}\n',
    "a status of four digits": b"HTTP/1.1 1000 Odd\r\nContent-Length: 0\r\n\r\n",
    "a header that is too long": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    "a TLS alert": b"\x15\x03\x03\x00\x02\x02\x46",
    "redis": b"-ERR unknown command\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
    "HTTP/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "no version": b"HTTP/x.y 200 OK\r\n\r\n",
    "chunks with a length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
    "a length below nothing": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "a length that is no number": b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
    "a bad chunk": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxx",
    "a redirect to nowhere": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://[nowhere\r\nContent-Length: 0\r\n\r\n",
    "bytes that are no text in a header": b"HTTP/1.1 200 OK\r\nX: \xff\xfe\x00\r\n\r\n",
    "an encoding that nobody knows": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
    "a charset that nobody knows": b"HTTP/1.1 502 Bad\r\nContent-Type: text/html; charset=klingon\r\nContent-Length: 2\r\n\r\nno",
    "an error whose body breaks off": b"HTTP/1.1 503 Away\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@pytest.mark.parametrize("answer", BAD_HEADS.values(), ids=BAD_HEADS)
async def test_an_answer_that_is_no_http_is_asked_for_again(answer: bytes):
    async with upstream(writes(head=answer)) as call:
        _, ending = await call()
    assert isinstance(ending, CallBroke)
    assert CAUSE_TO_FAILURE[ending.cause] is Failure.BEFORE_CONTENT


def _libraries() -> list[Exception]:
    """One of each exception that the libraries below the client have, and some that Python has."""
    request = httpx2.Request("POST", "http://x/")
    found: list[Exception] = [
        ssl.SSLError(1, "bad record"), zlib.error("invalid"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), UnicodeError("label too long"),
        ValueError("header"), RuntimeError("Session is closed"), AssertionError(), KeyError("x"), TypeError("x"), AttributeError("x"), EOFError(),
        OSError(5, "Input/output error"), TimeoutError(), ConnectionResetError(), BrokenPipeError(), asyncio.IncompleteReadError(b"", 5), LookupError("klingon"),
        RecursionError(), MemoryError(), openai.OpenAIError("x"), openai.APIConnectionError(request=request), openai.APITimeoutError(request),
        type("Strange", (Exception,), {})("never seen before"),
    ]  # fmt: skip
    for module in (client_exceptions, http_exceptions, httpx2):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning):
                error = kind.__new__(kind)  # some want arguments that say nothing here
                error.args = ("boom",)
                found.append(error)
    return found


class _Pieces:
    """A body: pieces, and then an exception."""

    def __init__(self, error: Exception, pieces: Sequence[bytes]) -> None:
        self._error, self._pieces = error, [*pieces]

    async def readany(self) -> bytes:
        if self._pieces:
            return self._pieces.pop(0)
        raise self._error


class _Answered:
    """What stands for an answer of aiohttp's."""

    status = 200
    headers: ClassVar = {"content-type": "text/event-stream"}
    connection = None

    def __init__(self, error: Exception, pieces: Sequence[bytes]) -> None:
        self.content = _Pieces(error, pieces)

    def leave(self) -> None:
        pass


def _sent(error: Exception, pieces: Sequence[bytes] | None) -> Callable[..., Awaitable[_Answered]]:
    async def sent(*_: object) -> _Answered:
        if pieces is None:
            raise error
        return _Answered(error, pieces)

    return sent


class _Transport(httpx2.AsyncBaseTransport):
    """Of the SDK's client: raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.asked = 0

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        raise self._error


def _client(transport: _Transport) -> Callable[..., httpx2.AsyncClient]:
    def made(**_: object) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=transport)

    return made


async def _asked(
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    pieces: Sequence[bytes] | None,
    sink: Sink = lambda _: None,
) -> ReplyFinished | CallBroke:
    monkeypatch.setattr(ModelLine, "sent", _sent(error, pieces))
    endpoint = Endpoint("up", "http://127.0.0.1:1/v1", (Credential("k", "s"),), ("m",))
    asks = ModelClient((endpoint,), SystemClock(), Redactor())
    try:
        return await asks.ask(ModelRequest(Route("m", "up", "k"), 1, [{"role": "user", "content": "x"}]), sink)
    finally:
        await asks.aclose()


async def _come_to(
    monkeypatch: pytest.MonkeyPatch, pieces: Sequence[bytes] | None
) -> dict[str, ReplyFinished | CallBroke | Exception]:
    """What each of them comes to, by its name."""
    found: dict[str, ReplyFinished | CallBroke | Exception] = {}
    for error in _libraries():
        try:
            found[type(error).__name__] = await _asked(monkeypatch, error, pieces)
        except Exception as raised:  # noqa: BLE001 - that is what is asked
            found[type(error).__name__] = raised
    assert len(found) > 80
    return found


async def test_whatever_a_library_raises_before_the_answer_is_a_break(monkeypatch: pytest.MonkeyPatch):
    found = await _come_to(monkeypatch, None)
    assert [name for name, ending in found.items() if not isinstance(ending, CallBroke)] == []


async def test_whatever_a_library_raises_in_the_text_is_a_break_that_can_be_gone_on_from(
    monkeypatch: pytest.MonkeyPatch,
):
    found = await _come_to(monkeypatch, [HI])
    wrong = [
        name
        for name, ending in found.items()
        if not isinstance(ending, CallBroke) or CAUSE_TO_FAILURE[ending.cause] is not Failure.BEFORE_CONTENT
    ]
    assert wrong == []


async def test_whatever_a_library_raises_behind_the_end_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    found = await _come_to(monkeypatch, [HI, delta("", '"stop"')])
    assert [name for name, ending in found.items() if not isinstance(ending, ReplyFinished)] == []


async def test_what_our_own_code_raises_is_no_break(monkeypatch: pytest.MonkeyPatch):
    def sink(_: Sequence[Event]) -> None:
        raise KeyError("ours")

    with pytest.raises(KeyError, match="ours"):
        await _asked(monkeypatch, OSError("behind it"), [HI, delta("", '"stop"')], sink)


async def test_a_list_of_models_that_is_no_http_is_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch):
    error = client_exceptions.ClientPayloadError("Bad status line")
    monkeypatch.setattr(openai, "DefaultAioHttpClient", _client(_Transport(error)))
    client = ModelClient(
        (Endpoint("up", "http://127.0.0.1:1/v1", (Credential("k", "s"),), ()),), SystemClock(), Redactor()
    )
    try:
        assert await client.model_names() == {"up": "default"}
    finally:
        await client.aclose()


async def test_an_endpoint_that_did_not_list_its_models_is_asked_again_in_a_minute_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
):
    transport, clock = _Transport(OSError("not now")), FakeClock()
    monkeypatch.setattr(openai, "DefaultAioHttpClient", _client(transport))
    client = ModelClient((Endpoint("up", "http://127.0.0.1:1/v1", (Credential("k", "s"),), ()),), clock, Redactor())
    asked: list[int] = []
    for seconds in (0, 0, ASK_AGAIN_SECONDS - 1, 1):
        clock.now += round(seconds * 1000)
        assert await client.model_names() == {"up": "default"}
        asked.append(transport.asked)
    await client.aclose()
    assert asked[0] == asked[1] == asked[2] < asked[3]


async def test_an_address_that_cannot_be_read_is_told_as_one():
    client = ModelClient((Endpoint("up", "http://[half", (Credential("k", "s"),), ("m",)),), SystemClock(), Redactor())
    ending = await client.ask(
        ModelRequest(Route("m", "up", "k"), 1, [{"role": "user", "content": "x"}]), lambda _: None
    )
    assert isinstance(ending, CallBroke)
    await client.aclose()
