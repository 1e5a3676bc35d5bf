"""Bodies that never end, or unpack to gigabytes, from the address of a model: the call comes to its end, and memory stays."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import agent_core.model.transport as transport_of
from agent_core.causes import BreakCause
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.stream.bodies import ERROR, BodyLimits, bounded
from agent_core.model.transport import ModelLine, RequestNotTaken
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, Event, ReplyFinished, TextArrived

MEMORY = 30_000_000
MEMORY_OF_WHOLE = 90_000_000
"""The longest reply, its text, and what a library keeps of it when it cannot read it."""
STOPPED_SECONDS = 30.0
"""Far above the limit of a body, far below what reading all of it would take."""


def bomb(megabytes: int = 1500, packed_by: int = 31) -> bytes:
    """So many megabytes of blanks, packed: one again and again, which leads back to nothing before it."""
    way = zlib.compressobj(9, zlib.DEFLATED, packed_by)
    blank = b" " * 1_000_000
    head = way.compress(b" ") + way.flush(zlib.Z_FULL_FLUSH)
    return head + (way.compress(blank) + way.flush(zlib.Z_FULL_FLUSH)) * megabytes


BOMB = bomb()


class Server:
    """Answers every request with one head and a body that may never end; notes when it is hung up on."""

    def __init__(self, head: str, body: Iterator[bytes]) -> None:
        self._head, self._body = head, body
        self.sent = 0
        self.hung_up = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {self._head}\r\n\r\n".encode())
            for piece in self._body:
                writer.write(piece)
                self.sent += len(piece)
                await writer.drain()
                await asyncio.sleep(0.05 if len(piece) == 1 else 0)
            writer.close()
        except ConnectionError:
            pass
        finally:
            self.hung_up.set()
            writer.close()


def endless(piece: bytes = b"x" * 65_536) -> Iterator[bytes]:
    while True:
        yield piece


@asynccontextmanager
async def model(server: Server, models: tuple[str, ...] = ("m",)) -> AsyncGenerator[ModelClient]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    endpoint = Endpoint("up", f"http://127.0.0.1:{port}/v1", (Credential("k", "sk-secret"),), models)
    client = ModelClient((endpoint,), SystemClock(), Redactor.of([]))
    try:
        yield client
    finally:
        await client.aclose()
        listening.close()


async def asked(client: ModelClient, memory: int = MEMORY) -> tuple[list[Event], ReplyFinished | CallBroke]:
    events: list[Event] = []
    request = ModelRequest(Route("m", "up", "k"), 1, [{"role": "user", "content": "x"}], first_content_seconds=60)
    tracemalloc.start()
    began = time.monotonic()
    try:
        ending = await client.ask(request, events.extend)
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    assert time.monotonic() - began < STOPPED_SECONDS
    return events, ending


PACKED = "Content-Encoding: gzip\r\n"
BODIES = {
    "never ends": ("", endless),
    "trickles": ("", lambda: endless(b" ")),
    "unpacks to gigabytes": (PACKED, lambda: iter([BOMB])),
    "never ends, packed": (PACKED, lambda: endless(BOMB)),
    "packed twice": ("Content-Encoding: gzip, gzip\r\n", lambda: iter([gzip.compress(BOMB)])),
    "is not what its head says": (PACKED, endless),
}


@pytest.mark.parametrize(
    ("body", "status"),
    [*((body, "500 Oh") for body in BODIES), ("never ends", "429 Slow"), ("never ends", "302 Found")],
)
async def test_an_error_is_what_its_status_says_however_long_its_body(body: str, status: str):
    headers, pieces = BODIES[body]
    server = Server(f"{status}\r\n{headers}Content-Type: application/json\r\nConnection: close", pieces())
    async with model(server) as client:
        _, ending = await asked(client)
        assert isinstance(ending, CallBroke)
        assert ending.status == int(status[:3])
        async with asyncio.timeout(STOPPED_SECONDS):
            await server.hung_up.wait()
    assert server.sent < 50_000_000


@pytest.mark.parametrize("packed", ["", "gzip", "deflate", "GZIP"])
async def test_what_an_error_says_is_read_also_if_it_is_packed(packed: str):
    said = b'{"error": {"message": "You have no credit left.", "code": "insufficient_quota"}}'
    pack = {"gzip": gzip.compress, "deflate": zlib.compress}.get(packed.lower(), bytes)
    head = "429 Slow\r\nContent-Type: application/json\r\nConnection: close"
    head += f"\r\nContent-Encoding: {packed}" if packed else ""
    async with model(Server(head, iter([pack(said)]))) as client:
        _, ending = await asked(client)
    assert isinstance(ending, CallBroke)
    assert (ending.cause, ending.detail) == (BreakCause.PAYMENT_REQUIRED, "You have no credit left.")


async def test_an_error_whose_body_breaks_off_is_still_that_error():
    head = "503 Busy\r\nContent-Length: 1000\r\nRetry-After: 7"
    async with model(Server(head, iter([b"{"]))) as client:
        _, ending = await asked(client)
    assert isinstance(ending, CallBroke)
    assert (ending.cause, ending.status, ending.retry_after_seconds) == (BreakCause.SERVER_ERROR, 503, 7.0)


@pytest.mark.parametrize("body", [name for name in BODIES if name != "trickles"])
async def test_a_whole_answer_that_is_too_long_is_garbage_or_nothing_but_blanks(body: str):
    headers, pieces = BODIES[body]
    server = Server(f"200 OK\r\n{headers}Content-Type: application/json\r\nConnection: close", pieces())
    async with model(server) as client:
        _, ending = await asked(client, MEMORY_OF_WHOLE)
    assert isinstance(ending, CallBroke)
    assert ending.cause in (BreakCause.GARBAGE, BreakCause.ENDED_EARLY)


async def test_a_stream_that_unpacks_to_gigabytes_is_garbage():
    server = Server(f"200 OK\r\n{PACKED}Content-Type: text/event-stream\r\nConnection: close", iter([BOMB]))
    async with model(server) as client:
        _, ending = await asked(client)
    assert isinstance(ending, CallBroke)
    assert ending.cause is BreakCause.GARBAGE


async def test_a_packed_stream_is_read():
    chunk = b'data: {"choices": [{"index": 0, "delta": {"content": "word %d "}, "finish_reason": null}]}\n\n'
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    whole = gzip.compress(b"".join(chunk % number for number in range(5_000)) + end)
    pieces = iter([whole[at : at + 100] for at in range(0, len(whole), 100)])
    async with model(
        Server(f"200 OK\r\n{PACKED}Content-Type: text/event-stream\r\nConnection: close", pieces)
    ) as client:
        events, ending = await asked(client)
    assert isinstance(ending, ReplyFinished)
    assert "".join(event.text for event in events if isinstance(event, TextArrived)) == "".join(
        f"word {number} " for number in range(5_000)
    )


@pytest.mark.parametrize("status", ["200 OK", "500 Oh"])
@pytest.mark.parametrize("body", [name for name in BODIES if name != "trickles"])
async def test_a_list_of_models_that_never_ends_is_none(body: str, status: str):
    headers, pieces = BODIES[body]
    server = Server(f"{status}\r\n{headers}Content-Type: text/html\r\nConnection: close", pieces())
    async with model(server, ()) as client:
        tracemalloc.start()
        try:
            assert await client.model_names() == {"up": "default"}
            assert tracemalloc.get_traced_memory()[1] < MEMORY_OF_WHOLE
        finally:
            tracemalloc.stop()
    assert server.sent < 50_000_000


def test_the_limits_are_such_that_an_error_costs_no_memory():
    assert ERROR.bytes <= 262_144
    assert ERROR.seconds <= 5


async def test_what_came_of_an_error_while_our_own_loop_was_held_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is a thread: it goes on writing while nobody here can read."""
    monkeypatch.setattr(transport_of, "ERROR", replace(ERROR, seconds=1.5))
    listener = socket.create_server(("127.0.0.1", 0))
    told = threading.Event()
    words = b'{"error": {"message": "The model is not ready", "code": "model_not_ready"}}'

    def serve() -> None:
        peer, _ = listener.accept()
        with peer:
            peer.recv(65_536)
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(words)}\r\n\r\n"
            peer.sendall(head.encode() + words[:10])
            told.wait(20)
            peer.sendall(words[10:])

    def held() -> None:
        told.set()
        time.sleep(3)  # far beyond the limit, which the timer hears of as late as we do

    server = threading.Thread(target=serve)
    server.start()
    line = ModelLine(f"http://127.0.0.1:{listener.getsockname()[1]}/", {})
    asyncio.get_running_loop().call_later(0.5, held)
    try:
        with pytest.raises(RequestNotTaken) as refused:
            async with line.asked(b"{}", 5):
                pass
    finally:
        told.set()
        await line.aclose()
        server.join()
        listener.close()
    assert refused.value.body == {"message": "The model is not ready", "code": "model_not_ready"}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("limit", [1, 99_999, 100_000, 100_001, 250_000])
async def test_no_more_is_given_than_the_limit_even_in_the_midst_of_a_piece(limit: int, packed: bool) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(3):
            yield b"x" * 100_000
        yield b""

    async def together() -> AsyncGenerator[bytes]:
        yield gzip.compress(b"x" * 300_000)
        yield b""

    limits = BodyLimits(bytes=limit)
    given = [piece async for piece in bounded(together() if packed else pieces(), limits, packed=packed)]
    assert b"".join(given) == b"x" * limit
