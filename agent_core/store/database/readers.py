"""Connections that only read. A question is a synchronous body, as the writer's transactions are; where it runs is the engine's affair.

On SQLite it runs in one of a few threads, begun when they are first needed: a hand-over a question, and not four a statement. On
PostgreSQL it runs on asyncpg through `AsyncConnection.run_sync`; that half of SQLAlchemy is loaded for it alone. What is always asked in the same
words (`direct.found`) goes to the driver itself there, which takes a third of the processor's time.

Laws: at most `CONNECTIONS` questions are under way; who waits longer than `WAIT_SECONDS` for its turn is told so; a question whose asker
has gone keeps its place until it has ended.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Select, event
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.util import await_only

from agent_core.store.database import direct
from agent_core.store.database.trouble import Blame, blame
from agent_core.store.database.way import ServerAway, Way, by_driver, end_at_once

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry
    from sqlalchemy.sql.dml import UpdateBase

R = TypeVar("R")
CONNECTIONS = 4
WAIT_SECONDS = 30.0


class Readers(Protocol):
    """What the store needs of them."""

    @property
    def dialect(self) -> str:
        """SQLAlchemy's name of it."""
        ...

    async def run(self, ask: Callable[[Connection], R]) -> R:
        """What `ask` gives for a connection; each statement is committed by itself. Raises TimeoutError if all stay busy."""
        ...

    async def dispose(self) -> None:
        """Close all connections; one that is in use is not used again."""
        ...


class SqliteReaders:
    """Those of a file."""

    dialect = "sqlite"

    def __init__(self, engine: Engine) -> None:
        """`engine` allows a connection to be used by one thread after another."""
        self.engine = engine
        self._resting: list[Connection] = []
        """Those that nobody asks just now. The engine's pool would do, and takes seventy calls of Python a question for it."""
        self._threads = ThreadPoolExecutor(CONNECTIONS, "store-reader")
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def run(self, ask: Callable[[Connection], R]) -> R:
        if self._places.locked():
            async with asyncio.timeout(WAIT_SECONDS):
                await self._places.acquire()
        else:
            await self._places.acquire()  # at once: nothing has to watch over that
        context, resting = contextvars.copy_context(), self._resting
        try:
            asked = asyncio.get_running_loop().run_in_executor(
                self._threads, lambda: context.run(self._ask, ask, resting)
            )
        except BaseException:
            self._places.release()
            raise
        asked.add_done_callback(self._done)
        return await asyncio.shield(asked)

    def _ask(self, ask: Callable[[Connection], R], resting: list[Connection]) -> R:
        """`resting`: as it was when the question came. Its thread may come to it when they have been disposed of."""
        try:
            conn = resting.pop()
        except IndexError:
            conn = self.engine.connect()
        try:
            found = ask(conn)
            if conn.in_transaction():
                conn.rollback()  # SQLAlchemy's own: each statement is committed by itself
        except BaseException:
            conn.close()
            raise
        resting.append(conn)
        if resting is not self._resting:  # they were disposed of meanwhile
            _close(resting)
        return found

    def _done(self, asked: asyncio.Future[R]) -> None:
        self._places.release()
        if not asked.cancelled():
            asked.exception()  # whoever asked may be gone

    async def dispose(self) -> None:
        resting, self._resting = self._resting, []
        _close(resting)
        self.engine.dispose()


def _close(resting: list[Connection]) -> None:
    """From any thread."""
    with suppress(IndexError):
        while True:
            resting.pop().close()


class PostgresReaders:
    """Those of a server."""

    dialect = "postgresql"

    def __init__(self, engine: AsyncEngine, way: Way) -> None:
        self._engine = engine
        self._way = way
        event.listen(engine.sync_engine, "connect", self._made)

    async def run(self, ask: Callable[[Connection], R]) -> R:
        """Asked once more on another connection if this one is gone: that costs nothing where a question before each would cost its way there and back."""
        try:
            return await self._once(ask)
        except (SQLAlchemyError, OSError) as error:
            if blame(error) is not Blame.STORAGE or isinstance(error, ServerAway):
                raise
        return await self._once(ask)

    async def _once(self, ask: Callable[[Connection], R]) -> R:
        conn = await self._way.connection(self._engine)
        try:
            async with self._way.watched(conn):
                return await conn.run_sync(ask)
        except (SQLAlchemyError, OSError) as error:
            if blame(error) is Blame.STORAGE:
                await end_at_once(conn)
            raise
        finally:
            await conn.close()

    def _made(self, made: Any, entry: ConnectionPoolEntry) -> None:
        """A connection is new."""
        entry.info[direct.ELSEWHERE] = _Driver(made.driver_connection, self._engine.dialect)

    async def dispose(self) -> None:
        await self._engine.dispose()


class _Driver:
    """That of one connection, asked by itself. Implements `direct.StandIn`, where only is read."""

    def __init__(self, driver: Any, dialect: Dialect) -> None:
        self._driver = driver
        self._dialect = dialect

    def found(
        self, query: Select[*tuple[Any, ...]], keys: Sequence[Any], named: Mapping[str, object] | None = None
    ) -> Sequence[tuple[Any, ...]]:
        sql, values = direct.asked(query, keys, self._dialect, named)
        return [tuple(row) for row in await_only(by_driver(self._driver.fetch(sql, *values)))]

    def do(self, statement: UpdateBase, rows: Sequence[Mapping[str, object]]) -> None:
        raise NotImplementedError

    def numbers(self, count: int) -> list[int]:
        raise NotImplementedError
