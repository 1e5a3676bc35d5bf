"""Who may write: the proof that a node lives, and the question which other nodes are dead.

Two drivers. On SQLite a `flock` on ``<database>.lock`` for the life of the process; whoever holds it is the only node alive.
On PostgreSQL the pulse: one connection that holds an advisory lock on the node's number and asks a trivial question every
second; the server ends a connection that stays silent for 4 s, so a *stopped* process loses its lock as a dead one does.
What else a stopped process has open, the server ends as well, but for a statement of which it has heard one half: asyncpg sends a new one in two,
and for what comes between them PostgreSQL has no limit. So whoever has a pulse looks for such connections and ends them (`_STOPPED`).

A server that is away for a while is no reason to begin anew: nobody else could take anything meanwhile. So a lost lock is taken again. Who takes what a
dead node had, writes into that node's row, in the same transaction, that it is dead (`dead`); who has its lock again looks there, and if it was
taken for dead it is (`lost`).

Who has no number yet (its database is just being upgraded) has the locks again in the same way: nobody could take it for dead.

Laws: a lost lock counts only from the moment on at which it was had again and nobody had taken this node for dead; until then every door is shut.
`lease_ok` is judged by a clock that also runs while the machine sleeps, from the moment *before* the last good ping was sent, and ends a second
before the server's patience.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import itertools
import math
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import structlog
from sqlalchemy import ARRAY, BigInteger, Connection, CursorResult, Float, TextClause, bindparam, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_core.ports import CommonClock
from agent_core.records import dataclass
from agent_core.retry import PULSE_AGAIN
from agent_core.store.database.lines import postgres_engine
from agent_core.store.database.place import PostgresPlace, no_file
from agent_core.store.database.trouble import NO_POOLER, in_words, opening
from agent_core.store.database.way import Backend, ServerAway, Way, end_at_once
from agent_core.store.errors import AlreadyRunning, CannotOpen, StorageUnavailable

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

log = structlog.get_logger("storage")

LEASE_SECONDS = 4.0
"""How long the server lets a silent pulse live."""
MARGIN_SECONDS = 1.0
PING_SECONDS = 1.0
SEEING_SECONDS = 0.1
"""So long an answer that is there already takes at most to be seen by a loop that goes on."""
GRACE_SECONDS, SILENT_GRACE_SECONDS = 2.0, 4.0
"""For so long after it has its own locks again, a node takes nobody for dead who may have lost them as well: whose connection was ended, and each try
to have another refused, tries again at once; who hears nothing finds only after seconds that the way is open again."""
HEARD_SECONDS = 2 * PING_SECONDS
"""Whose pulse was heard so short a time ago was not cut off for as long as a lock needs to be lost in silence."""
AGAIN_SECONDS = 15.0
"""How long one try may take to have the locks again: connecting, and what the server needs to let those of the old connection go."""
LOCK = ".lock"
LOCK_TRIES = 10
LOCK_TRY_SECONDS = 0.03
"""`running_pid` holds the lock for an instant; a start must not take that for a running process."""
LOCK_SPACE = 0x6F757473 << 32
"""Keeps our advisory locks apart from those of other programs in the same database; the node's number is added."""

GATEWAY = 0
"""No node has this number: whoever serves holds it, alone or with others that know of each other. One that does not share would store messages
of another node's conversations, which that node does not look for."""


class Serves(Enum):
    """As what a store is opened."""

    NOT = "not"
    """By a command, beside a gateway or without one."""
    ALONE = "alone"
    """By the one gateway of its database."""
    SHARED = "shared"
    """By one of several gateways, all of which share. On PostgreSQL alone."""


def boottime() -> float:
    """Seconds since the machine started, time asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


Waits: TypeAlias = Callable[[AlreadyRunning], Awaitable[None]]
"""Asked each time that another process is found to have the database: it returns when that may be tried again, or raises."""
Dead: TypeAlias = Callable[[Connection, Collection[int]], frozenset[int]]
"""Which of these nodes are dead, as seen (and, on PostgreSQL, held) by the current transaction."""


@dataclass(frozen=True, slots=True)
class Who:
    """This node, and how to tell which others are dead."""

    node: int
    dead: Dead


class Ownership(Protocol):
    """That this node lives, and which do not."""

    @property
    def way(self) -> Way | None:
        """The way to the server; None if there is none."""
        ...

    @property
    def lost(self) -> asyncio.Event:
        """Set once this node may count as dead elsewhere: stop claiming, cancel drivers, send nothing."""
        ...

    def lease_left(self) -> float:
        """Seconds for which this node is still certain to count as alive; infinite where the lock cannot be lost."""
        ...

    def lease_ok(self) -> bool:
        """Whether something may be sent to a platform right now. Ask immediately before each send."""
        ...

    def may_return(self) -> bool:
        """It is not known just now whether this node still counts as alive, and may be found that it does: who stands before a door waits."""
        ...

    def dead(self, conn: Connection, nodes: Collection[int]) -> frozenset[int]:
        """Which of `nodes` are dead, and stay so from here on; until the end of the transaction no other node gets the same answer."""
        ...

    def seem_dead(self, conn: Connection, nodes: Collection[int]) -> frozenset[int]:
        """Which of `nodes` seem to be dead just now. Nothing follows from it for them."""
        ...


class FileLock:
    """The lock file beside a SQLite database, which holds our process id for people; and a lock on the database itself.

    The second is there because people remove lock files: two processes would then lock two different files and write one database.
    Its handle is open before SQLite's and closed after them: closing any handle of a file ends SQLite's own locks on it.
    """

    def __init__(self, *handles: int) -> None:
        self._handles = handles

    @classmethod
    async def acquire(cls, database: Path, waits: Waits | None = None) -> FileLock:
        """Take the lock for the life of the process. Raises `AlreadyRunning` (after 0.3 s, without `waits`), `CannotOpen` and OSError."""
        while True:
            try:
                return await cls._taken(database)
            except AlreadyRunning as running:
                if waits is None:
                    raise
                await waits(running)

    @classmethod
    async def _taken(cls, database: Path) -> FileLock:
        no_file(
            database,
            LOCK,
            "It is locked while a gateway runs. Stop the gateway, if one runs, and remove it: the next start makes it.",
        )
        with ExitStack() as stack:
            beside = os.open(lock_path(database), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            stack.callback(os.close, beside)
            if not await _locked(beside):
                pid = _read_pid(beside)
                raise _already_running(database, "Another process" if pid is None else f"Process {pid}", pid)
            itself = os.open(database, os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, itself)
            if not await _locked(itself):
                raise _already_running(database, "Another process, whose lock file was removed,", None)
            os.ftruncate(beside, 0)
            os.pwrite(beside, f"{os.getpid()}\n".encode(), 0)
            stack.pop_all()
            return cls(beside, itself)

    def release(self) -> None:
        """Give the lock up. The file stays: removing it would let two processes lock two different files."""
        handles, self._handles = self._handles, ()
        for handle in handles[:1]:
            # On a disk that is read-only by now; what it says is heeded only while the lock is held
            with suppress(OSError):
                os.ftruncate(handle, 0)
        for handle in handles:
            os.close(handle)


def _already_running(database: Path, who: str, pid: int | None) -> AlreadyRunning:
    words = f"{who} has {database} open already. Stop it first, or use another state directory: OUTSPOKEN_HOME=/some/directory"
    return AlreadyRunning(words, pid)


async def _locked(handle: int) -> bool:
    """Whether the lock could be had within 0.3 s."""
    for _ in range(LOCK_TRIES):
        if _try_lock(handle, fcntl.LOCK_EX):
            return True
        await asyncio.sleep(LOCK_TRY_SECONDS)
    return False


def lock_path(database: Path) -> Path:
    """The lock file that belongs to a SQLite database."""
    return database.with_name(f"{database.name}{LOCK}")


def running_pid(database: Path) -> int | None:
    """The process that has this SQLite database open, or None if nobody has (or its number cannot be read)."""
    try:
        handle = os.open(lock_path(database), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(handle, fcntl.LOCK_SH) else _read_pid(handle)
    finally:
        os.close(handle)


def locked_itself(database: Path) -> bool:
    """Whether a process has the database locked, also if the lock file was removed. Not for the process that has it open: closing the handle
    would end SQLite's own locks."""
    try:
        handle = os.open(database, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True


def _read_pid(handle: int) -> int | None:
    content = os.pread(handle, 32, 0).strip()
    return int(content) if content.isdigit() else None


class FileOwnership:
    """`Ownership` under a held `FileLock`: whoever is not this node is dead."""

    way: Way | None = None

    def __init__(self) -> None:
        self.lost = asyncio.Event()

    def lease_left(self) -> float:
        return float("inf")

    def lease_ok(self) -> bool:
        return True

    def may_return(self) -> bool:
        return False

    def dead(self, conn: Connection, nodes: Collection[int]) -> frozenset[int]:
        _ = conn
        return frozenset(nodes)

    seem_dead = dead


_FREE = "SELECT node FROM unnest(:nodes) AS node WHERE pg_try_advisory_xact_lock(:space + node)"
_NODES = (bindparam("nodes", type_=ARRAY(BigInteger)), bindparam("space", LOCK_SPACE, type_=BigInteger))
_SEEM_DEAD = text(_FREE).bindparams(*_NODES)
_TAKEN = text(
    f"WITH free AS MATERIALIZED ({_FREE}), told AS (UPDATE nodes SET taken_by = :me FROM free "  # noqa: S608
    "WHERE nodes.node = free.node AND nodes.taken_by IS NULL) SELECT node FROM free"
).bindparams(*_NODES, bindparam("me", type_=BigInteger))
"""Those whose lock is free are dead from here on, whatever they think themselves: it is written in the transaction that takes what they had."""
_SILENCE = text("SELECT setting FROM pg_settings WHERE name = 'idle_session_timeout'")
_STANDS = text("SELECT taken_by FROM nodes WHERE node = :me").bindparams(bindparam("me", type_=BigInteger))
_END_OLD = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = :pid AND usename = current_user AND application_name = :name"
)
_BACKEND = text(
    "SELECT state <> 'active' OR wait_event = 'ClientRead', state_change FROM pg_stat_activity WHERE pid = :pid"
)
_PING = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
"""That it answers is what is asked; what it says is what time it is there."""
LIVES = text(
    "nodes.taken_by IS NULL AND nodes.node IN (SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND classid = :class AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
).bindparams(bindparam("class", LOCK_SPACE >> 32, type_=BigInteger))
"""The lock on a node's number is held. Who has lost it may have it again, unless somebody has taken it for dead (`dead`): who takes what it had does."""
SERVING = text(
    "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = :class AND objid::bigint > :gateway "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
).bindparams(bindparam("class", LOCK_SPACE >> 32, type_=BigInteger), bindparam("gateway", GATEWAY, type_=BigInteger))
"""How many have the number of a node, whatever tables there are: who has none yet does not hold rows of the schema."""
_HEARD = text(
    "SELECT objid::bigint FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
    "AND classid = :class AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND clock_timestamp() - state_change < :seconds * interval '1 second'"
).bindparams(bindparam("class", LOCK_SPACE >> 32, type_=BigInteger), bindparam("seconds", HEARD_SECONDS, type_=Float))
_LOCK = text("SELECT pg_try_advisory_lock(:key)").bindparams(bindparam("key", type_=BigInteger))
_SHARED = text("SELECT pg_try_advisory_lock_shared(:key)").bindparams(bindparam("key", type_=BigInteger))
_NUMBER = text("SELECT pg_try_advisory_lock(:key) FROM set_config('application_name', :name, false)").bindparams(
    bindparam("key", type_=BigInteger)
)
_STOPPED = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user "
    "AND application_name LIKE 'outspoken %' AND pid <> pg_backend_pid() AND state = 'active' AND wait_event = 'ClientRead' "
    "AND clock_timestamp() - state_change > :seconds * interval '1 second'"
).bindparams(bindparam("seconds", type_=Float))
"""Ends those connections of ours whose server has waited too long for the rest of a statement; whatever they hold is let go."""


class PulseLock:
    """`Ownership` on PostgreSQL. Made by `pulse`."""

    def __init__(
        self, place: PostgresPlace, engine: AsyncEngine, clock: Callable[[], float], common: CommonClock | None = None
    ) -> None:
        self.lost = asyncio.Event()
        self.common = common
        """Is told what time it is at the server."""
        self.way = Way(place.shown)
        self.way.witness = self._backend
        self.resumed = 0
        """How often the lock was lost, and had again before anybody had taken this node for dead."""
        self._place, self._engine, self._clock = place, engine, clock
        self._conn: AsyncConnection | None = None
        self._pid = 0
        """The server's process behind it, or behind the last one that there was."""
        self._using = asyncio.Lock()
        """A connection does one thing at a time."""
        self._ended = asyncio.Event()
        """The connection is gone, and that was told."""
        self._keys: list[tuple[TextClause, int]] = []
        """The locks that it holds, or held, each with how it is asked for."""
        self._node = 0
        self._good = clock()
        self._patient_until = -math.inf
        """Others, who may have lost theirs as well, have so long to have their locks again, as we had."""
        self._heard = frozenset[int]()
        """Whose pulses the server heard when we had ours."""
        self._unheard = False
        """An answer was waited for in vain, before the locks were had again."""

    def lease_left(self) -> float:
        if self.lost.is_set():
            return 0.0
        return LEASE_SECONDS - (self._clock() - self._good) - MARGIN_SECONDS

    def lease_ok(self) -> bool:
        return self.lease_left() > 0

    def may_return(self) -> bool:
        return not self.lost.is_set() and not self.lease_ok()

    def dead(self, conn: Connection, nodes: Collection[int]) -> frozenset[int]:
        if self._clock() < self._patient_until:
            # What has taken our lock from us will have taken theirs: they have time to have it again, as we had, unless they had it then.
            nodes = self._heard.intersection(nodes)
        return self._asked(conn, nodes, _TAKEN, {"me": self._node})

    def seem_dead(self, conn: Connection, nodes: Collection[int]) -> frozenset[int]:
        return self._asked(conn, nodes, _SEEM_DEAD, {})

    def _asked(
        self, conn: Connection, nodes: Collection[int], query: TextClause, more: Mapping[str, int]
    ) -> frozenset[int]:
        others = sorted(node for node in nodes if node != self._node)
        return frozenset(conn.execute(query, {"nodes": others, **more}).scalars()) if others else frozenset()

    # ------------------------------------------------------------------ its connection

    async def connect(self) -> None:
        """Have a connection. Raises what the driver raises."""
        self._conn = conn = await self._engine.connect()
        self._ended.clear()
        sync = conn.sync_connection
        assert sync is not None
        driver: Any = sync.connection.driver_connection
        self._pid = int(driver.get_server_pid())
        driver.add_termination_listener(partial(self._gone, conn))

    async def ends_if_silent(self, limit: str) -> None:
        """Raises CannotOpen if the server does not know after which silence it has to end this connection: then nobody else could ever take over."""
        if (found := (await self._ask(_SILENCE)).scalar()) != limit:
            said = f"The database {self._place.shown} cannot be used: its idle_session_timeout is {found} ms, where the gateway asked for {limit} ms."
            raise CannotOpen(f"{said} {NO_POOLER}")

    async def disconnect(self) -> None:
        """End the connection, and with it the locks: others may take over at once."""
        conn, self._conn = self._conn, None
        if conn is not None:
            await end_at_once(conn)

    def _cut(self) -> None:
        """What was asked fails now. To give it up in order, the driver would ask the server, which does not answer."""
        self._unheard = True
        sync = self._conn.sync_connection if self._conn is not None else None
        if sync is not None and not sync.invalidated:
            driver: Any = sync.connection.driver_connection
            if driver is not None:
                driver.terminate()

    def _gone(self, conn: AsyncConnection, _driver: object) -> None:
        """The server lets the locks go as soon as it learns of it, which may be before we do: nothing is sure any more."""
        if conn is self._conn:
            self._good = -math.inf
            self._ended.set()

    async def _ask(self, query: TextClause, **values: object) -> CursorResult[Any]:
        if self._conn is None:
            raise ServerAway("there is no connection")
        return await self._conn.execute(query, values)

    async def ping(self) -> float:
        """Ask something trivial; when it was asked."""
        asked = self._clock()
        said = int((await self._ask(_PING)).scalar_one())
        common, passed = self.common, self._clock() - asked
        if common is not None and common.told(said, round(passed * 1000)):
            seconds = round(common.ahead / 1000, 1)
            (log.warning if seconds else log.info)("storage.clock_differs", database=self._place.shown, seconds=seconds)
        return asked

    async def _backend(self, pid: int) -> Backend | None:
        async with self._using:
            found = (await self._ask(_BACKEND, pid=pid)).first()
        return Backend(*found) if found is not None else None

    # ------------------------------------------------------------------ its locks

    async def serve(self, waits: Waits | None, *, shared: bool) -> None:
        """Be the one gateway of this database, or one of several, as long as this connection. Raises AlreadyRunning once whoever is in the way has
        had time to be dead, or what `waits` raises then."""
        lock = _SHARED if shared else _LOCK
        until, looked = self._clock() + LEASE_SECONDS + MARGIN_SECONDS, self._clock()
        while True:
            self._good = self._clock()
            if (await self._ask(lock, key=LOCK_SPACE + GATEWAY)).scalar_one():
                self._keys.append((lock, LOCK_SPACE + GATEWAY))
                return
            if self._good >= looked:
                looked = self._good + LOCK_TRY_SECONDS * LOCK_TRIES
                await self._end_stopped()
            if self._good <= until:
                await asyncio.sleep(LOCK_TRY_SECONDS)
                continue
            words = _alone_words(self._place.shown, shared=shared)
            taken = AlreadyRunning(words, None)
            if waits is None:
                raise taken
            await waits(taken)

    async def be(self, node: int) -> None:
        """From now on others see by a lock that the node of this number lives; where the connection was just lost, as soon as it is had again. Raises
        StorageUnavailable if the number is taken, which no healthy server does, or the connection is lost for good."""
        until = self._clock() + AGAIN_SECONDS
        while True:
            try:
                async with self._using:
                    if self._good > -math.inf:  # else the other locks are not ours just now
                        await self._take_number(node)
                        return
            except (SQLAlchemyError, OSError, TimeoutError) as error:
                log.debug("storage.pulse_still_lost", node=node, error=in_words(error))
            if self.lost.is_set() or self._clock() > until:
                raise StorageUnavailable(
                    f"The connection to {self._place.shown} that shows that this process lives was lost."
                )
            await asyncio.sleep(PULSE_AGAIN.first)

    async def _take_number(self, node: int) -> None:
        asked = self._clock()
        if not (await self._ask(_NUMBER, key=LOCK_SPACE + node, name=_name(node))).scalar_one():
            raise StorageUnavailable(f"The number {node} of this node is locked already in {self._place.shown}.")
        self._keys.append((_NUMBER, LOCK_SPACE + node))
        self._node, self._good = node, max(self._good, asked)

    async def beat(self) -> None:
        """Ping; where the lock may be lost, have it again, as long as nobody has taken this node for dead. Then set `lost` and return."""
        try:
            while True:
                await self._hold()
                if not await self._again():
                    return
        finally:
            self.lost.set()

    async def _hold(self) -> None:
        """Ping until the lock is lost. An answer on the same connection proves that it never was, however late it comes: the server lets go of it
        with the connection alone."""
        looked = self._clock() - LEASE_SECONDS
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(PING_SECONDS if self.lease_ok() else 0.0):
                        await self._ended.wait()
                    raise ServerAway("the connection was ended")
                with self._impatient(max(PING_SECONDS, self.lease_left())):
                    async with self._using:
                        asked = await self.ping()
                        if asked - looked >= LEASE_SECONDS:
                            looked = asked
                            await self._end_stopped()
                if not self.lease_ok():
                    log.warning("storage.pulse_late", node=self._node)
                self._good = max(self._good, asked)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            log.warning("storage.pulse_lost", node=self._node, database=self._place.shown, error=in_words(error))

    @contextmanager
    def _impatient(self, seconds: float) -> Generator[None]:
        """What is asked in the block is cut after so long. A loop that stood still meanwhile has had no time to see its answer: it gets some."""
        loop = asyncio.get_running_loop()
        timers: list[asyncio.TimerHandle] = []
        timers.append(loop.call_later(seconds, lambda: timers.append(loop.call_later(SEEING_SECONDS, self._cut))))
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()

    async def _again(self) -> bool:
        """Have the locks again, however long that takes; False if this node counts as dead. Meanwhile all doors stay shut, and nothing is given up."""
        began, self._good = self._clock(), -math.inf
        for attempt in itertools.count(1):
            self.way.broke()
            try:
                async with asyncio.timeout(AGAIN_SECONDS):
                    old = self._pid
                    await self.disconnect()
                    await self.connect()
                    self.way.mended()
                    await self._ask(_END_OLD, pid=old, name=_name(self._node))
                    alive = await self._retaken()
            except (SQLAlchemyError, OSError, TimeoutError) as error:
                log.debug("storage.pulse_still_lost", node=self._node, error=in_words(error))
                self._unheard = self._unheard or isinstance(error, TimeoutError)
                await asyncio.sleep(PULSE_AGAIN.seconds(attempt))
                continue
            self._patient_until = self._clock() + (SILENT_GRACE_SECONDS if self._unheard else GRACE_SECONDS)
            self._unheard = False
            seconds = round(self._clock() - began, 1)
            if alive:
                self.resumed += 1
                log.warning("storage.pulse_back", node=self._node, seconds=seconds)
            else:
                log.warning("storage.taken_for_dead", node=self._node, seconds=seconds)
            return alive
        raise AssertionError("counting has no end")

    async def _retaken(self) -> bool:
        """On a new connection. The locks come first: whoever has taken this node for dead held one of them then, and has written it down since."""
        until = self._clock() + LEASE_SECONDS + MARGIN_SECONDS
        async with self._using:
            for lock, key in self._keys:
                named = {"name": _name(self._node)} if lock is _NUMBER else {}
                while True:
                    asked = self._clock()
                    if (await self._ask(lock, key=key, **named)).scalar_one():
                        break
                    if asked > until:
                        return False  # somebody else has it for good
                    await asyncio.sleep(LOCK_TRY_SECONDS)
            asked = self._clock()
            found = (await self._ask(_STANDS, me=self._node)).first() if self._node else (None,)
            self._heard = frozenset((await self._ask(_HEARD)).scalars())
        if found is None or found[0] is not None:
            return False
        self._good = asked
        return True

    async def _end_stopped(self) -> None:
        """A server that refuses this costs nothing but what is held meanwhile."""
        try:
            ended = len((await self._ask(_STOPPED, seconds=LEASE_SECONDS)).all())
        except DBAPIError as error:
            if error.connection_invalidated:
                raise
            return
        if ended:
            log.warning("storage.stopped_ended", database=self._place.shown, count=ended)


def _name(node: int) -> str:
    return f"outspoken pulse {node}"


def _alone_words(shown: str, *, shared: bool) -> str:
    if shared:
        return (
            f"Another gateway has {shown} open already, and shares it with none: several serve one database if each of them is started with "
            "[storage] several = true. Stop the other one and start it so, too."
        )
    return (
        f"Another gateway has {shown} open already. Stop it first, give this one a database of its own ([storage] url), have it wait for the "
        "other's end ([storage] standby = true), or have all of them share it ([storage] several = true)."
    )


@asynccontextmanager
async def pulse(
    place: PostgresPlace,
    clock: Callable[[], float] = boottime,
    *,
    serves: Serves = Serves.NOT,
    waits: Waits | None = None,
    common: CommonClock | None = None,
) -> AsyncGenerator[PulseLock]:
    """A connection for the block that the server ends after 4 s of silence, and with it all locks: that of the gateways of this database, for
    which `waits` may wait; and that on our number, once we have one (`PulseLock.be`). `common` is told the server's time, now and with each ping.
    Raises CannotOpenNow, AlreadyRunning."""
    limit = f"{LEASE_SECONDS * 1000:.0f}"
    settings = {"idle_session_timeout": limit, "tcp_user_timeout": limit}
    engine = postgres_engine(place, name="pulse", autocommit=True, settings=settings)
    owner = PulseLock(place, engine, clock, common)
    try:
        with opening(place.shown):
            await owner.connect()
            await owner.ping()
            if serves is not Serves.NOT:
                await owner.ends_if_silent(limit)
                await owner.serve(waits, shared=serves is Serves.SHARED)
        beating = asyncio.create_task(owner.beat(), name="store-pulse")
        try:
            yield owner
        finally:
            beating.cancel()
            await asyncio.wait([beating])
    finally:
        await owner.disconnect()
        await engine.dispose()
