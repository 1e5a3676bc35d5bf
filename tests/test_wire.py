"""The network of the tests tells what a real one tells."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from tests.wire import wire


@pytest.mark.parametrize("how", ["in order", "at once"])
async def test_who_waits_for_an_answer_is_told_that_the_other_side_has_ended(how: str) -> None:
    async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if how == "at once":
            made: socket.socket = writer.get_extra_info("socket")
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()

    async with await asyncio.start_server(ends, "127.0.0.1", 0) as server:
        with wire(server.sockets[0].getsockname()[1]) as between:
            reader, writer = await asyncio.open_connection("127.0.0.1", between.port)
            writer.write(b"?")
            async with asyncio.timeout(30):
                try:
                    assert await reader.read() == b""
                except ConnectionResetError:
                    assert how == "at once"
            writer.close()
