"""A model server for measuring: as little work a token as can be, on a raw protocol. ``python -m tests.bench.upstream PORT``.

The person's words are the order: ``bench tokens=300 pace=0.02 tools=1`` gives one tool call first, then 300 tokens, one each
20 ms; without ``pace`` all tokens are written at once. ``wait=5`` says nothing at all for five seconds.
"""

from __future__ import annotations

import asyncio
import re
import sys
from functools import lru_cache

import orjson

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


@lru_cache(65_536)
def token(number: int) -> bytes:
    """No two are alike: who says the same again and again is a loop, and is not measured here."""
    return _event({"content": f"pling{number} "})


@lru_cache
def call(number: int) -> bytes:
    """A call that only reads. Each asks for something else, as calls do: who asks for the same again and again is stopped by the gateway."""
    function = {"name": "list_files", "arguments": f'{{"path":".{"/." * number}"}}'}
    return _event({"tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]})


def framed(data: bytes) -> bytes:
    """`data` as one chunk of HTTP's chunked transfer coding."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def order_of(messages: list[dict[str, object]]) -> tuple[int, float, int, float]:
    """(tokens, seconds between them, tool calls still to be asked for, seconds before the first), from the latest order."""
    found, returned = "", 0
    for message in messages:
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, str) and content.startswith("bench "):
            found, returned = content, 0
        returned += message.get("role") == "tool"
    words = dict(re.findall(r"(\w+)=([\d.]+)", found))
    tools = int(words.get("tools", 0)) - returned
    return int(words.get("tokens", 1)), float(words.get("pace", 0)), tools, float(words.get("wait", 0))


class Conversation(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, rest = bytes(self._data).partition(b"\r\n\r\n")
        if not found:
            return
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if len(rest) < size:
            return
        self._data = bytearray(rest[size:])
        self._answer(head, rest[:size])

    def _answer(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        if head.startswith(b"GET"):
            listed = b'{"object":"list","data":[{"id":"bench","object":"model"}]}'
            kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self._transport.write(kind % len(listed) + listed)
            return
        tokens, pace, tools, wait = order_of(orjson.loads(body)["messages"])
        if tools > 0:
            self._transport.write(HEAD + framed(call(tools) + self._end("tool_calls")) + b"0\r\n\r\n")
        elif pace:
            self._task = asyncio.create_task(self._paced(tokens, pace, wait))
        else:
            self._transport.write(HEAD + framed(b"".join(map(token, range(tokens))) + self._end("stop")) + b"0\r\n\r\n")

    @staticmethod
    def _end(reason: str) -> bytes:
        return _event({}, reason) + b"data: [DONE]\n\n"

    async def _paced(self, tokens: int, pace: float, wait: float) -> None:
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        await asyncio.sleep(wait)
        began = loop.time()
        self._transport.write(HEAD)
        for number in range(tokens):
            self._transport.write(framed(token(number)))
            await asyncio.sleep(max(0.0, began + (number + 1) * pace - loop.time()))
        self._transport.write(framed(self._end("stop")) + b"0\r\n\r\n")


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Conversation, "127.0.0.1", port, backlog=2048)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
