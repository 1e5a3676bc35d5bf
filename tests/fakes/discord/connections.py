"""Websocket connections of the gateway, and what frames can meet instead of their answers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

from tests.fakes.common import Json
from tests.fakes.discord.sessions import CloseCode, Session

MAX_FRAMES_A_MINUTE = 120


@dataclass(frozen=True, slots=True)
class Close:
    """Close the connection with this code."""

    code: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Cut:
    """End the connection without a word: by a TCP reset, or in good order. Clients see it as 1006."""

    clean: bool = False


@dataclass(frozen=True, slots=True)
class Ignore:
    """Do as if the frame had not come."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Say "invalid session", which may be resumable."""

    resumable: bool = False


Reaction: TypeAlias = Close | Cut | Ignore | Invalid | None
"""What a frame meets instead of its answer; None: its answer."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a client."""

    at: float
    """Monotonic seconds."""
    connection: int
    op: int
    data: Json


@dataclass(slots=True, eq=False)
class Connection:
    """A websocket of a client."""

    number: int
    """1 for the first."""
    path: str
    ws: web.WebSocketResponse
    transport: asyncio.Transport | asyncio.BaseTransport | None
    opened_at: float
    session: Session | None = None
    deaf: bool = False
    """Nothing is sent any more, and nothing is acknowledged."""
    acks: bool = True
    """Whether heartbeats are acknowledged."""
    beats: list[float] = field(default_factory=list[float])
    """When heartbeats came."""
    closed_at: float | None = None
    close_code: int | None = None
    """The code by which it ended, whoever closed it; 1006 for none."""
    outbox: asyncio.Queue[str | Close] = field(default_factory=asyncio.Queue["str | Close"])
    arrivals: deque[float] = field(default_factory=deque[float])
    closing: Close | None = None

    @property
    def is_open(self) -> bool:
        """Whether it stands."""
        return self.closed_at is None

    def send(self, text: str) -> None:
        """Put a frame into its way."""
        if not self.deaf and self.closing is None:
            self.outbox.put_nowait(text)

    def close(self, close: Close) -> None:
        """Close it, after what is in its way."""
        if self.closing is None:
            self.closing = close
            self.outbox.put_nowait(close)


async def write_frames(connection: Connection) -> None:
    """Send what is in its way, until the connection ends."""
    while True:
        item = await connection.outbox.get()
        try:
            if isinstance(item, Close):
                await connection.ws.close(code=item.code, message=item.reason.encode())
                return
            await connection.ws.send_str(item)
        except (ConnectionError, RuntimeError):
            # The client has gone, or is going.
            return


def crowding(connection: Connection) -> Close | None:
    """Count a frame of a client; what is to be done if it says too much."""
    now = time.monotonic()
    connection.arrivals.append(now)
    while connection.arrivals[0] < now - 60:
        connection.arrivals.popleft()
    if len(connection.arrivals) > MAX_FRAMES_A_MINUTE:
        return Close(CloseCode.RATE_LIMITED, "You are being rate limited.")
    return None
