"""A model server of ours that misbehaves to order, byte by byte, on a raw socket.

A scenario is a list of replies, one an attempt; the last is repeated. A reply is a list of steps: bytes are written as they are,
`Wait` holds the line open, `HANG` does so for ever, `RESET` breaks the connection. The person's words choose the scenario:
``scenario: NAME``. The server is strict about what it gets: an invalid conversation is noted in `violations`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from agent_core.messages import said_by_the_person
from agent_core.turn.transcript import problems
from tests.agent_core.strict import objections


class Act(Enum):
    HANG = auto()
    PINGS = auto()
    RESET = auto()


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Drip:
    """The same piece again and again, until nobody listens any more."""

    piece: bytes


Step: TypeAlias = bytes | Wait | Act | Drip
Reply: TypeAlias = Sequence[Step]
Rule: TypeAlias = Callable[[dict[str, Any]], bytes | None]
"""What is answered to a request that cannot be taken; None if it can."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def status(code: int, body: str = "", *headers: str, kind: str = "application/json") -> bytes:
    lines = [
        f"HTTP/1.1 {code} X",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body.encode())}",
        "Connection: close",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def event(value: Any) -> bytes:
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


def delta(finish: str | None = None, **inner: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": inner, "finish_reason": finish}]})


def text(words: str) -> bytes:
    return delta(content=words)


def call(name: str, arguments: str, index: int = 0, call_id: str = "call_x") -> bytes:
    return delta(
        tool_calls=[
            {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        ]
    )


def end(reason: str = "stop") -> bytes:
    return delta(reason) + event(b"[DONE]")


@dataclass
class Upstream:
    scenarios: Mapping[str, Sequence[Reply]]
    rules: Mapping[str, Rule] = field(default_factory=dict[str, Rule])
    """Of scenarios whose server refuses some requests."""
    url: str = ""
    violations: list[str] = field(default_factory=list[str])
    asked: Counter[str] = field(default_factory=Counter[str])
    latest: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """The messages of the last request of each scenario."""
    hung_up: int = 0
    talks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, until it is over or the server is closed."""
        task: asyncio.Task[None] = asyncio.ensure_future(self.serve(reader, writer))
        self.talks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        finally:
            self.talks.discard(task)
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [line.lower() for line in head.split(b"\r\n")]
            length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0)
            body = json.loads(await reader.readexactly(length) or b"{}")
            name = self._scenario(body.get("messages", []))
            self.latest[name] = body.get("messages", [])
            refusal = self.rules[name](body) if name in self.rules else None
            replies = self.scenarios[name] if refusal is None else ((refusal,),)
            number = self.asked[name]
            self.asked[name] += refusal is None
            await self._perform(replies[min(number, len(replies) - 1)], reader, writer)

    def _scenario(self, messages: list[dict[str, Any]]) -> str:
        self.violations += problems(messages) or objections(messages)
        for message in messages:
            content = message.get("content")
            if isinstance(content, str) and message.get("role") == "user" and "scenario: " in content:
                return said_by_the_person(content).rpartition("scenario: ")[2]
        return "unnamed"

    async def _perform(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for step in reply:
            match step:
                case bytes():
                    writer.write(step)
                    await writer.drain()
                    await asyncio.sleep(0.002)
                case Wait():
                    await asyncio.sleep(step.seconds)
                case Act.HANG:
                    await reader.read()
                    self.hung_up += 1
                case Act.PINGS:
                    while not reader.at_eof():
                        writer.write(b": ping\n\n" + delta())
                        await writer.drain()
                        await asyncio.sleep(0.1)
                    self.hung_up += 1
                case Drip():
                    while not reader.at_eof():
                        writer.write(step.piece)
                        await writer.drain()
                        await asyncio.sleep(0.1)
                    self.hung_up += 1
                case Act.RESET:
                    raw: socket.socket = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()


@asynccontextmanager
async def upstream(
    scenarios: Mapping[str, Sequence[Reply]], rules: Mapping[str, Rule] | None = None
) -> AsyncGenerator[Upstream]:
    made = Upstream(scenarios, rules or {})
    server = await asyncio.start_server(made.talk, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield made
    finally:
        server.close()
        for task in tuple(made.talks):
            task.cancel()
        await asyncio.sleep(0)  # what was told to stop closes its connection
        await asyncio.sleep(0)
