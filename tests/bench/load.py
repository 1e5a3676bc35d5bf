"""The client of the measurements: opens streams on raw sockets and notes when what came. Cheap, so that it is not what is measured."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import orjson


@dataclass(slots=True)
class Stream:
    """One streamed answer, as its client saw it."""

    status: int = 0
    asked_at: float = 0.0
    """Seconds (monotonic)."""
    first_at: float = 0.0
    """When the first content came."""
    over_at: float = 0.0
    tokens: int = 0
    content: int = 0
    """Bytes in all."""
    whole: bool = False
    """``[DONE]`` came after a finish reason of ``stop``."""
    tail: bytes = field(default=b"", repr=False)
    longest_gap: float = 0.0
    """The longest time between two reads with content in them, in seconds."""
    latest_at: float = 0.0

    @property
    def first_seconds(self) -> float:
        return self.first_at - self.asked_at

    @property
    def seconds(self) -> float:
        return self.over_at - self.asked_at

    def take(self, data: bytes) -> None:
        """Note what came."""
        self.content += len(data)
        found = (self.tail[-4:] + data).count(b"pling")  # one may be cut
        if found:
            now = time.monotonic()
            self.first_at = self.first_at or now
            self.longest_gap = max(self.longest_gap, now - (self.latest_at or now))
            self.latest_at = now
        self.tokens += found
        self.tail = (self.tail + data)[-2_000:]


def request_bytes(port: int, words: str, *, stream: bool = True, session: str = "", more: str = "") -> bytes:
    """The request of one turn, stateless or of a named session; `more` are lines of its head."""
    body = orjson.dumps({"model": "bench", "stream": stream, "messages": [{"role": "user", "content": words}]})
    named = f"X-Outspoken-Session: {session}\r\n{more}" if session else more
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{named}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def ask(port: int, words: str, *, stream: bool = True, session: str = "") -> Stream:
    """Ask once, read to the end."""
    return await exchange(port, request_bytes(port, words, stream=stream, session=session), stream=stream)


async def exchange(port: int, request: bytes, *, stream: bool) -> Stream:
    """Send the request, read its answer to the end."""
    seen = Stream()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        seen.asked_at = time.monotonic()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        seen.status = int(head.split(b" ", 2)[1])
        while data := await reader.read(65_536):
            seen.take(data)
            if data.endswith(b"0\r\n\r\n"):
                break
        seen.over_at = time.monotonic()
        seen.whole = b'"stop"' in seen.tail and (not stream or b"[DONE]" in seen.tail)
    finally:
        writer.close()
    return seen


async def ask_many(port: int, words: str, count: int) -> list[Stream]:
    """`count` streams at once."""
    return list(await asyncio.gather(*(ask(port, words) for _ in range(count))))
