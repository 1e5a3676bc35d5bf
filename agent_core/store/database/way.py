"""The way to a PostgreSQL server: whether it is known to be there, and whether it works on what it was asked.

Theory. A connection that is cut says so. One into which nothing goes any more (a machine without power, a firewall that forgot it, a switch) says
nothing, for minutes, and no limit on a statement can tell that from a server that is busy. So one connection, the pulse, asks something
trivial every second. Whoever waits for long has the pulse look what the server does for him: while it works on it, he waits on; if it waits for
him, or does not know of him, his connection is ended, and what was asked is asked once more on a new one. And while the pulse itself gets
no answer, nobody else tries: each try would last as long as its patience.

Laws (tests/storage/test_stumbles.py): nobody waits longer than some seconds for a server that is away, however that came; a server that works on
something for long is left to it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import structlog
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_core.records import dataclass

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
log = structlog.get_logger("storage")

SUSPECT_SECONDS = 1.5
"""Who has waited so long for an answer has it looked what the server does."""
LOOK_SECONDS = 0.5
BACK_SECONDS = 2.0
"""So long after it was lost one waits for the server to be back, before one says that it is away."""


@dataclass(frozen=True, slots=True)
class Backend:
    """What the server does for a connection."""

    waits: bool
    """For us."""
    since: object


Witness: TypeAlias = Callable[[int], Awaitable[Backend | None]]
"""What the server does for the connection of this process of its own; None if it does not know of it. Raises what the driver raises."""


class ServerAway(OSError):
    """It is known that the server cannot be reached; nobody needs to try."""


class Way:
    """One for each server and store. Without a witness nothing is known, and whoever asks has his own patience."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._there = asyncio.Event()
        self._there.set()
        self._broke_at = 0.0
        self.witness: Witness | None = None
        self.cut = 0
        """How many connections were ended for their silence."""
        self.breaks = 0
        """How often the server was lost."""

    @property
    def away_seconds(self) -> float:
        """For how long the server has been away; 0 if it is not."""
        return 0.0 if self._there.is_set() else time.monotonic() - self._broke_at

    def broke(self) -> None:
        """The pulse gets no answer."""
        if self._there.is_set():
            self._there.clear()
            self._broke_at = time.monotonic()
            self.breaks += 1

    def mended(self) -> None:
        """It has got one."""
        self._there.set()

    async def there(self) -> None:
        """Come back when the server may be asked. Raises ServerAway if it has been away for a while."""
        left = BACK_SECONDS - self.away_seconds
        if not self._there.is_set() and left > 0:
            try:
                async with asyncio.timeout(left):
                    await self._there.wait()
            except TimeoutError:
                pass
        if not self._there.is_set():
            raise ServerAway(f"the server has not answered for {self.away_seconds:.0f} s")

    async def connection(self, engine: AsyncEngine) -> AsyncConnection:
        """A connection that answers as far as is known. Raises what the driver raises; ServerAway."""
        await self.there()
        return await engine.connect()

    @asynccontextmanager
    async def watched(self, conn: AsyncConnection) -> AsyncGenerator[None]:
        """What is asked in the block is not waited for if the server does not work on it: then the driver raises as for any that is cut."""
        loop, looking = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        def begin() -> None:
            looking.append(loop.create_task(self._look(conn), name="store-suspicion"))

        timer = loop.call_later(SUSPECT_SECONDS, begin)
        try:
            yield
        finally:
            timer.cancel()
            for task in looking:
                task.cancel()
            if looking:
                await asyncio.wait(looking)

    async def _look(self, conn: AsyncConnection) -> None:
        """Until the server is seen not to work on it: end it."""
        sync = conn.sync_connection
        driver: Any = sync.connection.driver_connection if sync is not None and not sync.invalidated else None
        if driver is None or self.witness is None:
            return
        before: Backend | None = None
        while self._there.is_set():
            try:
                found = await self.witness(driver.get_server_pid())
            except (SQLAlchemyError, OSError, TimeoutError):
                found = before = None  # the pulse has trouble of its own, and says so itself
            else:
                if found is None or (found.waits and found == before):
                    break
                before = found
            await asyncio.sleep(LOOK_SECONDS)
        self.cut += 1
        log.warning("storage.silent", database=self._shown)
        driver.terminate()


async def by_driver(work: Awaitable[T]) -> T:
    """What the driver of a connection answers, asked without SQLAlchemy, which takes two thirds of a question's processor time. Raises what
    SQLAlchemy does."""
    try:
        return await work
    except Exception as error:
        if isinstance(error, OSError | TimeoutError):
            raise
        raise DBAPIError(None, None, error, hide_parameters=True) from error


async def end_at_once(conn: AsyncConnection) -> None:
    """End a connection instead of pooling it, without a word to the server: it may be one that does not answer."""
    with suppress(SQLAlchemyError, OSError, TimeoutError):
        sync = conn.sync_connection
        if sync is not None and not sync.invalidated:
            driver: Any = sync.connection.driver_connection
            if driver is not None:  # it is gone while it is being given up
                driver.terminate()
            await conn.invalidate()
    with suppress(SQLAlchemyError, OSError, TimeoutError):
        await conn.close()


_used: dict[tuple[str, ...], int] = {}
"""Of several servers, the one to which the last connection was made."""


async def connected(**how: Any) -> Any:
    """A connection of the driver's; of several servers to the one that takes writes. Each gets the whole patience: the first may be a machine without
    power, and the driver's own limit would hold for all of them together."""
    asyncpg: Any = import_module("asyncpg")
    hosts, ports = how.get("host"), how.get("port")
    if not isinstance(hosts, list):
        return await asyncpg.connect(**how)
    servers = list(zip(cast("list[str]", hosts), cast("list[int]", ports), strict=True))
    names = tuple(f"{host}:{port}" for host, port in servers)
    first = _used.get(names, 0)
    failed: Exception | None = None
    for number in (*range(first, len(servers)), *range(first)):
        host, port = servers[number]
        try:
            made = await asyncpg.connect(**{"target_session_attrs": "primary", **how, "host": host, "port": port})
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            # The last is also what it says of a server that takes no writes.
            failed = failed or error
        else:
            _used[names] = number
            return made
    assert failed is not None
    raise failed
