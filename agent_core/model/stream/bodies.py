"""How much of an answer's body is read. Every answer of a model's address comes through here before anybody reads it.

The body of an error is read whole, and so is one JSON object. A server, or what stands in front of it, may
send one that never ends, or a few kilobytes that unpack to gigabytes. So a body that is read whole ends here at a limit, in bytes
as they came and as they are unpacked, and that of an error at a limit of time too; what was read by then is what there is.
A stream of events has no length that would be wrong: its reader counts what is in it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator

from agent_core.patience import CHANCE_SECONDS, Limit
from agent_core.records import dataclass

PACKED = ("gzip", "x-gzip", "deflate")
"""What is unpacked. Nothing packed is asked for; these are what servers send all the same. Nothing is unpacked twice."""
PIECE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """The most of a body that is read; 0 means no limit."""

    packed_bytes: int = 0
    bytes: int = 0
    seconds: float = 0


ERROR = BodyLimits(65_536, 262_144, 5.0)
"""A refusal is a sentence or a page."""
WHOLE = BodyLimits(4_194_304, 4_194_304)
"""The longest reply that is taken, each of its characters spelt in six; a list of models is shorter."""
STREAM = BodyLimits()


async def bounded(pieces: AsyncIterator[bytes], limits: BodyLimits, *, packed: bool = False) -> AsyncGenerator[bytes]:
    """A body, unpacked, up to its limits. Raises what reading raises, but for an error's body: its status has been said, and one that breaks off
    takes nothing from it."""
    time = _Time(limits.seconds) if limits.seconds else None
    unpacker = _Unpacker() if packed else None
    came = given = 0
    while True:
        try:
            piece = anext(pieces, b"")
            data = await (piece if time is None else time.within(piece))
        except TimeoutError:
            return
        except Exception:
            if limits is ERROR:
                return
            raise
        came += len(data)
        for some in unpacker.feed(data) if unpacker is not None else (data,) if data else ():
            given += len(some)
            beyond = given - limits.bytes if limits.bytes else 0
            yield some[: len(some) - beyond] if beyond > 0 else some
            if beyond >= 0 and limits.bytes:
                return
        if not data or (limits.packed_bytes and came >= limits.packed_bytes):
            return


class _Time:
    """A limit for all pieces together. What had come while our own loop was held is heard: behind the limit, one more piece."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._due = self._loop.time() + seconds
        self._over = False

    async def within(self, piece: Awaitable[bytes]) -> bytes:
        """The next piece. Raises TimeoutError."""
        left = self._due - self._loop.time()
        if left <= 0:
            left = 0.0 if self._over else CHANCE_SECONDS
            self._over = True
        async with Limit(left):
            return await piece


class _Unpacker:
    """Unpacks in small pieces, so that whoever counts can stop. What cannot be unpacked ends the body."""

    def __init__(self) -> None:
        self._way = zlib.decompressobj(wbits=47)  # gzip or zlib, as its first bytes say

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False
        while (data or full) and not self._way.eof:
            try:
                piece = self._way.decompress(data, PIECE_BYTES)
            except zlib.error:
                return
            data, full = self._way.unconsumed_tail, len(piece) == PIECE_BYTES
            if piece:
                yield piece
