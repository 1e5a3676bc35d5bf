"""Words from node to node, by way of the database: that there is something new in a slice.

They go over a connection of their own, many at once, after what they are about is committed: sent within the journal's transactions they would
cost these four times as much. A word may be lost with the connection of whoever should hear it; so who has one anew looks for everything that words
may have said, and by itself now and then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy.exc import SQLAlchemyError

from agent_core.bell import Bell
from agent_core.store.database.lines import postgres_engine
from agent_core.store.database.place import PostgresPlace
from agent_core.store.database.trouble import in_words
from agent_core.store.database.way import by_driver, end_at_once

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

log = structlog.get_logger("storage")

CHANNEL = "outspoken"
LOOK_SECONDS = 5.0
"""How often it is looked whether the connection still is one."""
ANSWER_SECONDS = 4.0
AGAIN_SECONDS = 1.0
MOST_WAITING = 1_000
"""Words that wait for a connection; what is more is not sent, and found by looking."""
MOST_BYTES = 7_999
"""PostgreSQL carries no more in one word."""
LATER_SECONDS = 0.1
"""So long what is not said at once waits for words with which it may go."""
_SEND = "SELECT pg_notify($1, word) FROM unnest($2::TEXT[]) AS word"


class NodeCalls:
    """`run` it in a task; `call` from anywhere."""

    def __init__(self, place: PostgresPlace, heard: Callable[[str], None], missed: Callable[[], None]) -> None:
        """`heard` is told each word of another node; `missed` is called when words may have been said that nobody here has heard."""
        self._place = place
        self._heard, self._missed = heard, missed
        self._words: dict[str, None] = {}
        self._bell = Bell()
        self._later: asyncio.TimerHandle | None = None

    def call(self, word: str, /, *, soon: bool = True) -> None:
        """Have all others hear it, now or with the next word, or in a while."""
        if not self._kept(word):
            return
        if soon:
            self._bell.ring()
        elif self._later is None:
            self._later = asyncio.get_running_loop().call_later(LATER_SECONDS, self._bell.ring)

    def _kept(self, word: str) -> bool:
        if len(self._words) >= MOST_WAITING or not _can_be_carried(word):
            return False
        self._words[word] = None
        return True

    async def run(self) -> None:
        """Until cancelled."""
        engine = postgres_engine(self._place, name="calls", autocommit=True, settings={})
        try:
            while True:
                try:
                    async with engine.connect() as conn:
                        try:
                            await self._serve(conn)
                        finally:
                            await end_at_once(conn)  # whatever it was, this one is not used again
                except (SQLAlchemyError, OSError, TimeoutError) as error:
                    log.warning("storage.calls_lost", database=self._place.shown, error=in_words(error))
                await asyncio.sleep(AGAIN_SECONDS)
        finally:
            self._bell.close()
            if self._later is not None:
                self._later.cancel()
            await engine.dispose()

    async def _serve(self, conn: AsyncConnection) -> None:
        raw: Any = (await conn.get_raw_connection()).driver_connection
        mine = raw.get_server_pid()

        def told(_conn: object, process: int, _channel: str, word: str) -> None:
            if process != mine:
                self._heard(word)

        await by_driver(raw.add_listener(CHANNEL, told))
        self._missed()
        while True:
            await self._say(raw)
            await self._bell.wait(LOOK_SECONDS)

    async def _say(self, raw: Any) -> None:
        """What is called from now on is another word, also if it is the same: it is about something newer."""
        words, self._words = self._words, {}
        if self._later is not None:
            self._later.cancel()
            self._later = None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                if words:
                    await by_driver(raw.fetch(_SEND, CHANNEL, [*words]))
                else:
                    await by_driver(raw.fetch("SELECT 1"))
        except BaseException:
            self._words = words | self._words
            raise


def _can_be_carried(word: str) -> bool:
    """One that cannot would be refused again and again, and all that wait with it. What it is about is found by looking. Pure."""
    try:
        return len(word.encode()) <= MOST_BYTES and "\0" not in word
    except UnicodeEncodeError:
        return False


async def call_once(place: PostgresPlace, word: str) -> None:
    """Have all gateways hear a word, from a process that is none of them. Where that does not succeed, they find what it is about by looking."""
    engine = postgres_engine(place, name="calls", autocommit=True, settings={})
    try:
        with suppress(SQLAlchemyError, OSError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS), engine.connect() as conn:
                raw: Any = (await conn.get_raw_connection()).driver_connection
                await by_driver(raw.fetch(_SEND, CHANNEL, [word]))
    finally:
        await engine.dispose()
