"""What is read when somebody else's server is looked at has an end."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable

import pytest

from adapters.checks.probe import MAX_BYTES, Answering, Probe, Question, ServerReply, answering_at, health

BODY = {"": b"x" * 65_536, "gzip": gzip.compress(b" " * 100_000_000)}


async def asked(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> ServerReply:
    """What is made of the answer of such a server."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        reply = await Probe("it").ask("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", {}, seconds=60)
    finally:
        server.close()
    assert isinstance(reply, ServerReply)
    return reply


@pytest.mark.parametrize("packed", BODY)
@pytest.mark.parametrize("status", [200, 500])
async def test_a_body_that_never_ends_is_an_answer_without_one(packed: str, status: int):
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} So\r\nConnection: close\r\n" + (f"Content-Encoding: {packed}\r\n" if packed else "")
        writer.write(f"{head}\r\n".encode())
        try:
            while sent < MAX_BYTES * 100:
                writer.write(BODY[packed])
                sent += len(BODY[packed])
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    reply = await asked(serve)
    assert (reply.status, reply.body) == (status, None)
    assert sent < MAX_BYTES * 10


async def test_a_body_of_the_usual_size_is_read_whole():
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n")
        for byte in gzip.compress(b'{"data": "' + b"word " * 200_000 + b'"}'):
            writer.write(bytes((byte,)))
        await writer.drain()
        writer.close()

    reply = await asked(serve)
    assert reply.table["data"] == "word " * 200_000


async def test_a_gateways_answer_is_read_whole_though_it_comes_in_pieces() -> None:
    """A proxy passes on head and body as they come: half of an answer is not taken for somebody else's."""
    body, left = b'{"status": "ok", "program": "outspoken"}', asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body[:9], body[9:]):
            await asyncio.sleep(0.02)
            writer.write(piece)
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await answering_at(url) is Answering.GATEWAY
        await left.wait()
        left.clear()
        assert (await health(url, Question.ALIVE, None, 5)).yes
        await left.wait()
    finally:
        server.close()
