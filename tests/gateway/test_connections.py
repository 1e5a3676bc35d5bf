"""Connections: who is cut when (pure), and real sockets that are half-sent, slow, many, or do not read."""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from functools import partial
from pathlib import Path
from typing import cast

import orjson
import pytest
from aiohttp.compression_utils import ZLibDecompressor
from hypothesis import given
from hypothesis import strategies as st

from gateway.http.connections import Doorkeeper
from gateway.http.entry import ServersLog
from gateway.limits.patience import ConnectionStage, ConnectionStanding, CutOff, DoorLimits, overdue
from gateway.succession.closeddoor import ClosedDoor
from tests.ports import free_port
from tests.serving import served

LIMITS = DoorLimits(header_seconds=5, body_seconds=50, stalled_seconds=10, idle_seconds=20)
times = st.floats(0, 200)


@given(st.sampled_from(ConnectionStage), times, times, st.sampled_from([0, 5]), times, times)
def test_a_connection_is_cut_for_what_it_owes_and_nobody_owes_for_ever(
    stage: ConnectionStage, since: float, moved: float, unread: int, unread_since: float, now: float
) -> None:
    standing = ConnectionStanding(stage, since, moved, unread, unread_since)
    cut = overdue(standing, now, LIMITS)
    if unread and now - unread_since > LIMITS.stalled_seconds:
        assert cut is CutOff.READER
    elif stage is ConnectionStage.SERVED:
        assert cut is None, "then it waits for us"
    else:
        most = {
            ConnectionStage.IDLE: 20,
            ConnectionStage.HEADERS: 5,
            ConnectionStage.BODY: 50,
            ConnectionStage.REFUSED: 2,
        }[stage]
        if now - since > most:
            assert cut is not None
        elif stage is not ConnectionStage.BODY or now - moved <= LIMITS.stalled_seconds:
            assert cut is None


QUICK = {
    "OUTSPOKEN_SERVER__HEADER_SECONDS": "1",
    "OUTSPOKEN_SERVER__BODY_SECONDS": "4",
    "OUTSPOKEN_SERVER__STALLED_SECONDS": "1.5",
    "OUTSPOKEN_SERVER__IDLE_SECONDS": "2",
}


async def answer_to(port: int, *pieces: bytes, pause: float = 0.0) -> bytes:
    """All that comes until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(pause)
        async with asyncio.timeout(60):
            return await reader.read()
    finally:
        writer.close()


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"


async def test_headers_bodies_and_silence_have_their_time(tmp_path: Path) -> None:
    async with served(tmp_path, QUICK) as up:
        port = int(up.url.rsplit(":", 1)[1])
        headers, body, idle = await asyncio.gather(
            answer_to(port, b"GET /healthz HTTP/1.1\r\nHost: 127"),
            answer_to(port, HEAD + b'{"messages"'),
            answer_to(port),
        )
        assert headers.startswith(b"HTTP/1.1 408 ")
        assert body.startswith(b"HTTP/1.1 408 ")
        assert b"did not come in time" in body
        assert idle == b"", "who has asked nothing is told nothing"


async def test_a_body_that_drips_is_too_slow_as_a_whole(tmp_path: Path) -> None:
    async with served(tmp_path, QUICK) as up:
        port = int(up.url.rsplit(":", 1)[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD)
        answer = asyncio.create_task(reader.readuntil(b"\r\n\r\n"))
        async with asyncio.timeout(60):
            while not answer.done():
                writer.write(b" ")
                await asyncio.sleep(0.5)
        assert (await answer).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_half_sent_requests_do_not_make_the_gateway_deaf(tmp_path: Path) -> None:
    bounds = {"OUTSPOKEN_SERVER__MAX_CONNECTIONS": "200", "OUTSPOKEN_SERVER__HEADER_SECONDS": "600"}
    async with served(tmp_path, bounds) as up:
        port = int(up.url.rsplit(":", 1)[1])
        half: list[asyncio.StreamWriter] = []
        try:
            for _ in range(250):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                half.append(writer)
                writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127")
            whole = b"GET /api/about HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            async with asyncio.timeout(60):
                # Who came within the last second need not make place: until then it may say that it is full.
                while b"200 OK" not in (answer := await answer_to(port, whole)):
                    assert not answer or answer.startswith(b"HTTP/1.1 503 ")
                    await asyncio.sleep(0.2)
        finally:
            for writer in half:
                writer.close()


async def test_one_connection_too_many_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path, {"OUTSPOKEN_SERVER__MAX_CONNECTIONS": "16"}) as up:
        port = int(up.url.rsplit(":", 1)[1])
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(16)]
        for asked in (b"/v1/models", b"/readyz"):
            answer = await answer_to(port, b"GET " + asked + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"Retry-After" in answer
        lives = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        for first, says in ((lives, b"200"), (lives.replace(b"\r\n\r\n", b"\r\nOrigin: nothing\r\n\r\n"), b"400")):
            answer = await answer_to(port, first + lives.replace(b"healthz", b"v1/models"))
            assert answer.startswith(b"HTTP/1.1 " + says), "who watches over it would kill it"
            assert answer.count(b"HTTP/1.1 ") == 1, "and no more than that"
        for _, writer in held:
            writer.close()
        async with asyncio.timeout(60):
            while b"200 OK" not in await answer_to(
                port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            ):
                await asyncio.sleep(0.05)


async def test_who_does_not_read_is_cut_and_harms_nobody() -> None:
    told: list[object] = []
    keeper = Doorkeeper(DoorLimits(stalled_seconds=1), told.append)

    class Talker(asyncio.Protocol):
        """Writes without end, as far as it is let."""

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            cast("asyncio.Transport", transport).write(b"x" * 30_000_000)  # uvloop's is none by name

    loop = asyncio.get_running_loop()
    async with keeper.looking():
        server = await loop.create_server(partial(keeper.door, Talker), "127.0.0.1", 0)
        deaf = socket.create_connection(server.sockets[0].getsockname())
        async with asyncio.timeout(60):
            while keeper.count or not told:
                await asyncio.sleep(0.05)
        deaf.close()
        server.close()
    assert [getattr(one, "why", "") for one in told] == ["reads_too_slowly"]


async def test_one_peer_has_a_bound_and_a_trusted_proxy_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Doorkeeper(DoorLimits(per_peer=2), lambda _: None)

    class Wire(asyncio.Transport):
        def __init__(self, peer: str) -> None:
            super().__init__({"peername": (peer, 1)})
            self.written = b""

        def write(self, data: bytes | bytearray | memoryview) -> None:
            self.written += bytes(data)

        def is_closing(self) -> bool:
            return False

        def can_write_eof(self) -> bool:
            return False

    def comes(peer: str) -> bytes:
        wire = Wire(peer)
        door = keeper.door()
        door.connection_made(wire)
        if door.inner is None:
            door.data_received(b"GET / HTTP/1.1")
        return wire.written

    assert [comes("6.6.6.6")[:12] for _ in range(3)] == [b"", b"", b"HTTP/1.1 429"]
    assert comes("7.7.7.7") == b""
    assert [comes("::ffff:6.6.6.6")[:12]] == [b"HTTP/1.1 429"], "the same address in other clothes"
    assert [comes("127.0.0.1") for _ in range(5)] == [b""] * 5


def test_the_server_says_what_is_our_doing_in_the_log_and_nothing_of_who_has_gone(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    said = ServersLog()
    said.exception("Error handling request from %s", "127.0.0.1", exc_info=ConnectionResetError("closing transport"))
    assert caplog.records == []
    said.exception("Error handling request from %s", "127.0.0.1", exc_info=ZeroDivisionError())
    assert [one.getMessage() for one in caplog.records] == ["Error handling request from 127.0.0.1"]
    assert capfd.readouterr().err == ""


async def test_requests_one_behind_the_other_and_bodies_in_pieces_come_in_their_order(tmp_path: Path) -> None:
    words = ["one", "two " * 20_000, "three"]
    bodies = [orjson.dumps({"messages": [{"role": "user", "content": f"say {word}"}]}) for word in words]
    requests = [
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        + (b"Connection: close\r\n" if body is bodies[-1] else b"")
        + b"X-Request-Id: n%d\r\nContent-Length: %d\r\n\r\n" % (number, len(body))
        + body
        for number, body in enumerate(bodies)
    ]
    whole = b"".join(requests)
    async with served(tmp_path) as up:
        port = int(up.url.rsplit(":", 1)[1])
        pieces = [whole[at : at + 7_001] for at in range(0, len(whole), 7_001)]
        for answer in await asyncio.gather(answer_to(port, whole), answer_to(port, *pieces, pause=0.001)):
            assert re.findall(rb"x-request-id: (n\d)", answer) == [b"n0", b"n1", b"n2"]
            assert answer.count(b"HTTP/1.1 200 OK") == 3


def packed(size: int) -> bytes:
    """So many spaces, as gzip has them: a thousandth of it."""
    packing = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packing.compress(b" " * 10_000_000) for _ in range(size // 10_000_000)) + packing.flush()


@pytest.mark.parametrize(
    ("line", "says", "most"),
    [
        (b"POST /v1/chat/completions", b" 401 ", 1_000_000),
        (b"GET /healthz", b" 200 ", 1_000_000),
        (b"POST /v1/chat/completions", b" 413 ", 20_000_000),
    ],
)
async def test_what_is_not_read_of_a_packed_body_is_not_unpacked(
    line: bytes, says: bytes, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = counting(monkeypatch)
    key = {"OUTSPOKEN_SERVER__API_KEY": "a-key-of-somebody"} if b"401" in says else {}
    async with served(tmp_path, key) as up:
        answer = await head_of(int(up.url.rsplit(":", 1)[1]), in_gzip(line, packed(30_000_000)))
    assert says in answer.split(b"\r\n", 1)[0]
    assert b"Connection: close" in answer
    assert sum(unpacked) < most


async def test_a_gateway_that_does_not_serve_yet_unpacks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unpacked = counting(monkeypatch)
    door = ClosedDoor("127.0.0.1", port := free_port())
    await door.show("standing_by", "Another one serves.")
    try:
        answer = await head_of(port, in_gzip(b"POST /v1/chat/completions", packed(30_000_000)))
    finally:
        await door.away()
    assert b" 503 " in answer
    assert not unpacked


async def head_of(port: int, request: bytes) -> bytes:
    """The head of the answer; half a second later the client leaves."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(0.5)
    writer.close()
    return head


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much the server unpacks, in bytes."""
    unpacked: list[int] = []
    real = ZLibDecompressor.decompress_sync

    def counted(self: ZLibDecompressor, data: bytes, max_length: int = 0) -> bytes:
        out = real(self, data, max_length)
        unpacked.append(len(out))
        return out

    monkeypatch.setattr(ZLibDecompressor, "decompress_sync", counted)
    return unpacked


def in_gzip(line: bytes, body: bytes) -> bytes:
    head = b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n"
    return line + head + b"Content-Length: %d\r\n\r\n" % len(body) + body
