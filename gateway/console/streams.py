"""What the console's pages are sent: everything as it is, and one turn.

Streams are level-triggered, as the chat page's are: every event carries whole sections as they are now, so nothing can queue up for
a slow page, and one that reconnects is whole after the first event. Of sections only those are sent that have changed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import orjson

from agent_core.ports import Clock
from agent_core.store.store import StorageUnavailable
from gateway.console.looking import Board
from gateway.console.turns import ConsoleTurn, ConsoleTurns

KEEP_ALIVE_SECONDS = 8.0


class Streams:
    """Each is for one page."""

    def __init__(self, board: Board, turns: ConsoleTurns, clock: Clock) -> None:
        self._board = board
        self._turns = turns
        self._clock = clock

    async def live(self) -> AsyncGenerator[bytes]:
        """For a page that follows everything: sections that have changed, and a sign of life."""
        sent: dict[str, bytes] = {}
        quiet_since, troubled = self._clock.monotonic(), ""
        with self._board.watching() as bell:
            while True:
                now = self._clock.monotonic()
                late = now - quiet_since >= KEEP_ALIVE_SECONDS
                try:
                    found = await self._board.sections()
                except StorageUnavailable as error:
                    trouble = str(error)
                else:
                    trouble = self._board.trouble
                    changed = {name: body for name, body in found.items() if sent.get(name) != body}
                    if changed or late or (troubled and not trouble):
                        yield _event("sections", self._body(changed))
                        sent, quiet_since = {**sent, **changed}, now
                        troubled = ""  # the page takes what it was sent as the end of it
                if trouble and (late or not troubled):
                    yield _event("trouble", orjson.dumps({"words": trouble}))
                    quiet_since = now
                troubled = trouble
                await self._board.stirred(bell)

    def _body(self, changed: dict[str, bytes]) -> bytes:
        """The sections with the time here, so that ages are right where a page's clock is not."""
        parts = [
            b'"now":%d' % self._clock.now_ms(),
            *(b'"%s":%s' % (name.encode(), body) for name, body in changed.items()),
        ]
        return b"{" + b",".join(parts) + b"}"

    async def turn(self, turn: str, first: ConsoleTurn) -> AsyncGenerator[bytes]:
        """For a page that follows one turn; it ends once the turn is forgotten."""
        sight: ConsoleTurn | None = first
        sent, quiet_since = b"", self._clock.monotonic()
        with self._turns.watching(turn) as bell:
            while sight is not None:
                now = self._clock.monotonic()
                body = orjson.dumps(sight.body)
                if body != sent or now - quiet_since >= KEEP_ALIVE_SECONDS:
                    yield _event("turn", body)
                    sent, quiet_since = body, now
                await self._turns.stirred(bell, sight)
                try:
                    sight = await self._turns.look(turn, sight)
                except StorageUnavailable as error:
                    yield _event("trouble", orjson.dumps({"words": str(error)}))


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"
