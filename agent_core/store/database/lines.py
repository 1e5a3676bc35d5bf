"""The writer's line to the database: one connection, on which a synchronous body runs inside one transaction.

Two drivers. On SQLite the body runs in one thread of its own, because there every statement through an asyncio driver costs four
hand-overs between threads (measured 0.5 ms a statement against 0.04 ms), and a batch has several; on PostgreSQL it runs on
asyncpg through `AsyncConnection.run_sync`. Readers have connections of their own (`readers`) on both.

Laws: only the line's connection writes or checkpoints a SQLite file; every SQLite commit is synced (`synchronous=FULL`); after
an error of the storage the same handle is never used again (`reopen`), but to save a log that nobody else can read any more. Who
reopens asks nothing that takes longer the larger the file is: a full disk would otherwise be answered by reading all of it, again
and again. Nothing is written into files that are not those that others see (`beside`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

import structlog
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from agent_core.store.database import direct
from agent_core.store.database.beside import (
    COMPANIONS,
    LOG,
    LOG_CUT,
    NOT_SAVED,
    REMOVED,
    REPLACED,
    Beside,
    File,
    FileState,
    after,
    beside,
    clear,
    companion,
    judged,
    log_alone,
)
from agent_core.store.database.place import PostgresPlace, SqlitePlace
from agent_core.store.database.readers import SqliteReaders
from agent_core.store.database.trouble import in_words
from agent_core.store.database.way import Way, connected, end_at_once
from agent_core.store.errors import CannotOpen
from agent_core.workers.hand import WorkerThread

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

T = TypeVar("T")
log = structlog.get_logger("storage")

PAGE_BYTES = 512
"""A commit writes whole pages, and a turn touches some thirty: the smaller they are, the less it writes. Large messages and long answers are
written and read as quickly as with larger ones. A file that is there keeps the pages that it has."""
CHECKPOINT_BYTES = 4 * 1024 * 1024
"""The log is copied into the file when it has grown by so much."""
LOG_LIMIT_BYTES = 16 * 1024 * 1024
COPIES = 2
"""So many copies of itself a file needs room for while it is written anew: one beside it, and one in its log."""
CACHE_KIB = 2 * 1024
"""Of each connection. What a turn reads again is in it; four times as much made no turn cheaper, and took 9 MiB after two thousand turns."""
BUSY_MS = 5_000
RENEW_SECONDS = 5.0
"""So long after the log's index was to be made anew that is not tried again: whoever still reads has the old one open."""
STATEMENT_SECONDS = 20
"""No statement of ours takes longer on a healthy PostgreSQL; one that does is given up."""
UNHEARD_SECONDS = STATEMENT_SECONDS + 5.0
"""So long an answer is waited for at most, whatever the server does meanwhile."""
WORK_SECONDS = 24 * 3600.0
"""The same of what takes the longer the larger a database is: an upgrade, a look through all of it."""
CONNECT_SECONDS = 4
"""Who cannot be reached within this time is away."""
IDLE_IN_TRANSACTION_MS = 4_000
"""PostgreSQL ends a transaction whose process has stopped, so that it holds no row locks."""

BEGIN = "BEGIN IMMEDIATE"
"""So facts that are read inside are still true when they are acted on."""
NO_VALUES: Sequence[tuple[object, ...]] = ((),)

WRITER_PRAGMAS = (
    f"PRAGMA page_size = {PAGE_BYTES}",  # only a file that is still empty takes it
    "PRAGMA auto_vacuum = INCREMENTAL",  # the same: what is removed gives its room back to the disk
    "PRAGMA secure_delete = ON",  # what is removed is overwritten
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    f"PRAGMA busy_timeout = {BUSY_MS}",
    f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
)
READER_PRAGMAS = (
    "PRAGMA query_only = ON",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA trusted_schema = OFF",
    f"PRAGMA busy_timeout = {BUSY_MS}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
)


class Line(Protocol):
    """What the writer needs of a database."""

    @property
    def shown(self) -> str:
        """The place in words, without a password."""
        ...

    async def open(self) -> None: ...

    async def transact(self, body: Callable[[Connection], T]) -> T:
        """Run `body` in a transaction and commit; on any exception roll back and pass it on."""
        ...

    async def at_length(self, body: Callable[[Connection], T]) -> T:
        """The same, of what may take hours."""
        ...

    async def briefly(self, body: Callable[[Connection], bool]) -> bool:
        """Run `body` without a transaction: it may write by one statement. What it answers; False if that is not possible here."""
        ...

    async def reopen(self) -> None:
        """Throw the connection away and make a new one, checked as far as the engine allows."""
        ...

    async def close(self) -> None: ...


class _LogTaken(Exception):
    """The log, or its index, is not where others look for it: it has to be copied into the file, and made anew."""


class SqliteLine:
    """One connection to a SQLite file, used by one thread."""

    def __init__(self, place: SqlitePlace) -> None:
        self._place = place
        self._name = str(place.path)
        self._hand = WorkerThread("store-writer")
        self._engine = _sqlite_engine(place.path)
        self._conn: Connection | None = None
        self._file: File | None = None
        """Which file it is; known from the first opening on."""
        self._noted: Beside | None = None
        """What lay beside it after the last transaction on this handle."""
        self._cut = False
        self._renewed_at = -RENEW_SECONDS
        self.saved = 0
        """How often a log that was taken away was copied into the file."""
        self.release_readers: Callable[[], Awaitable[None]] | None = None
        """Closes the connections that read; one that is in use is not used again."""

    @property
    def shown(self) -> str:
        return self._place.shown

    @property
    def dialect(self) -> Dialect:
        return self._engine.dialect

    async def open(self) -> None:
        await self._run(self._open)

    async def transact(self, body: Callable[[Connection], T]) -> T:
        work = partial(self._transact, body)
        try:
            return await self._run(work)
        except _LogTaken:
            await self._renew()
            return await self._run(work)

    async def at_length(self, body: Callable[[Connection], T]) -> T:
        return await self.transact(body)

    async def briefly(self, body: Callable[[Connection], bool]) -> bool:
        _ = body
        return False  # a transaction costs no way

    async def reopen(self) -> None:
        try:
            await self._run(self._must_be_as_noted)
        except _LogTaken:
            await self._renew()
        await self._run(self._reopen)

    def astray(self) -> bool:
        """Whether what others see is not what is written here, as far as a look at names tells. From any thread."""
        try:
            self._must_be_the_same_file()
            return judged(self._noted, beside(self._name)) is not FileState.SAME
        except OSError:
            return True

    async def backup(self, to: Path) -> None:
        """Copy the whole database to `to`, which appears only once it is complete. Raises sqlite3.Error, OSError."""
        await self._run(lambda: _copy(self._place.path, to))

    async def emptied_log(self) -> bool:
        """Copy the log into the file and cut it to nothing. False if somebody still reads from it."""
        return await self._run(self._emptied_log)

    async def rewrite(self) -> None:
        """Write the whole file anew, so that nothing of what was removed is left between its rows. Nobody else writes meanwhile. Raises sqlite3.Error;
        OSError, before anything is written, if there is no room: a disk that is filled by it would hold up everybody."""
        await self._run(self._rewrite)

    async def close(self) -> None:
        await self._run(self._close)
        self._hand.end()  # its last piece of work is over, so nothing is waited for

    def _run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return self._hand.run(work)

    def _open(self) -> None:
        self._must_be_the_same_file()  # first: SQLite would make a new one
        self._conn = self._engine.connect()

    def _must_be_the_same_file(self) -> None:
        """What is written into a file that was removed or replaced is written nowhere."""
        try:
            found = os.stat(self._name)  # noqa: PTH116 - asked with each commit, so without making a `Path`
        except FileNotFoundError:
            if self._file is None:
                return  # a new one
            raise OSError(REMOVED) from None
        file = (found.st_dev, found.st_ino)
        if self._file not in (None, file):
            raise OSError(REPLACED)
        self._file = file

    def _must_be_as_noted(self) -> None:
        """File, log and index are those that others see. Raises OSError; _LogTaken if that can be mended."""
        self._must_be_the_same_file()
        if self._conn is None:
            return
        match judged(self._noted, beside(self._name)):
            case FileState.SAME:
                self._cut = False
            case FileState.TAKEN:
                raise _LogTaken
            case FileState.UNINDEXED:
                if time.monotonic() - self._renewed_at >= RENEW_SECONDS:
                    raise _LogTaken
            case FileState.EMPTIED if self._checkpointed():
                self._note()
            case FileState.EMPTIED | FileState.CUT:
                self._cut = True
                raise OSError(LOG_CUT.format(log=companion(self._place.path, LOG)))

    def _checkpointed(self) -> bool:
        """All of the log is in the file. Of an empty log nothing can be copied by halves: its first page fails."""
        try:
            return self._outside("PRAGMA wal_checkpoint(TRUNCATE)")[0][0] == 0
        except sqlite3.Error:
            return False

    def _note(self) -> None:
        look = beside if self._noted is None else log_alone  # of the index nothing is noted but which it was at first
        self._noted = after(self._noted, look(self._name))

    async def _renew(self) -> None:
        """Copy all of a log that was taken away into the file, by the handle that still has it, and begin a new one. Raises OSError."""
        await self._run(self._save)
        if self.release_readers is not None:
            await self.release_readers()
        await self._run(self._reopen)
        log.warning("storage.log_renewed", database=self.shown)

    def _save(self) -> None:
        try:
            busy = self._outside("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        except sqlite3.Error as error:
            raise OSError(NOT_SAVED.format(log=companion(self._place.path, LOG), why=error)) from error
        if busy:
            raise OSError(NOT_SAVED.format(log=companion(self._place.path, LOG), why="somebody still reads from it"))
        now, noted = beside(self._name), self._noted or Beside()
        for end, there, ours in zip(COMPANIONS, (now.log, now.index), (noted.log, noted.index), strict=True):
            if there is not None and there != ours:  # SQLite would take a stranger's for its own
                clear(companion(self._place.path, end))
        self.saved += now.log != noted.log
        self._renewed_at = time.monotonic()

    def _transact(self, body: Callable[[Connection], T]) -> T:
        if self._conn is None:
            self._open()
        else:
            self._must_be_as_noted()
        assert self._conn is not None
        done = _whole(self._conn, body)
        self._note()
        return done

    def _emptied_log(self) -> bool:
        if self._conn is not None:
            self._must_be_as_noted()
        done = int(self._outside("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]) == 0
        self._note()
        return done

    def _rewrite(self) -> None:
        folder, size = self._place.path.parent, os.stat(self._name).st_size  # noqa: PTH116
        if shutil.disk_usage(folder).free < COPIES * size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._outside("VACUUM")
        self._emptied_log()

    def _outside(self, statement: str) -> list[tuple[Any, ...]]:
        """What cannot be done inside a transaction."""
        if self._conn is None:
            self._open()
        assert self._conn is not None
        cursor = self._conn.connection.cursor()
        try:
            cursor.execute(statement)
            return list(cursor.fetchall())
        finally:
            cursor.close()

    def _close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is None:
            return
        noted, self._noted = self._noted, None
        if self._cut or _was_cut(noted, self._name):
            # The last handle that is closed copies the log into the file: a cut one by halves. It stays open until the process ends.
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(conn))
            return
        conn.close()

    def _reopen(self) -> None:
        self._must_be_the_same_file()  # first: what was not copied yet is lost with the handle
        try:
            self._close()
        except (DBAPIError, sqlite3.Error):  # a handle that failed may fail to close; it is not used again either way
            self._conn = None
        self._open()
        assert self._conn is not None
        # That it can be read at all. Whether all of it is sound would hold up everybody for as long as it is large: see `checking`.
        self._conn.exec_driver_sql("SELECT count(*) FROM sqlite_master").all()
        self._conn.rollback()


class PostgresLine:
    """One connection to a PostgreSQL server, through asyncpg."""

    def __init__(self, place: PostgresPlace, engine: AsyncEngine, way: Way, made: Sequence[str] = ()) -> None:
        """`made` is what each connection makes for itself when it is new."""
        self._place = place
        self._engine = engine
        self._way = way
        self._made = made
        self._able = False
        """It could be made."""
        self._conn: AsyncConnection | None = None

    @property
    def shown(self) -> str:
        return self._place.shown

    async def open(self) -> None:
        self._conn = await self._new()

    async def _new(self) -> AsyncConnection:
        fresh = await self._way.connection(self._engine)
        async with self._way.watched(fresh):
            try:
                for statement in self._made or ("SELECT 1",):
                    await fresh.exec_driver_sql(statement)
                await fresh.commit()
                self._able = bool(self._made)
            except DBAPIError as error:
                if error.connection_invalidated or not self._made:
                    raise
                await fresh.rollback()
                self._able = False
                log.warning("storage.not_made", database=self._place.shown, error=in_words(error))
        return fresh

    async def briefly(self, body: Callable[[Connection], bool]) -> bool:
        if self._conn is None:
            await self.open()
        assert self._conn is not None
        if not self._able:
            return False
        async with self._way.watched(self._conn):
            return await self._conn.run_sync(body)

    async def transact(self, body: Callable[[Connection], T]) -> T:
        if self._conn is None:
            await self.open()
        assert self._conn is not None
        async with self._way.watched(self._conn), self._conn.begin():
            return await self._conn.run_sync(body)

    async def at_length(self, body: Callable[[Connection], T]) -> T:
        """On a connection of its own, which is waited for as long as the pulse sees the server work on it."""
        engine = postgres_engine(self._place, name="upgrade", autocommit=False, patience=WORK_SECONDS)
        try:
            async with asyncio.timeout(UNHEARD_SECONDS):
                conn = await self._way.connection(engine)
            try:
                async with self._way.watched(conn), conn.begin():
                    return await conn.run_sync(body)
            finally:
                await end_at_once(conn)
        finally:
            await engine.dispose()

    async def reopen(self) -> None:
        await self.close()
        self._conn = await self._new()

    async def close(self) -> None:
        """At once: a server that does not answer is not waited for."""
        conn, self._conn = self._conn, None
        if conn is not None:
            await end_at_once(conn)


def _whole(conn: Connection, body: Callable[[Connection], T]) -> T:
    """Run `body` in a transaction. It is the driver's: what SQLAlchemy does around one is a tenth of what a commit calls. Its own begins beside it
    once it is asked something itself, and is over with it."""
    direct.say(conn, BEGIN)
    try:
        done = body(conn)
        if conn.in_transaction():
            conn.commit()
        else:
            direct.say(conn, "COMMIT")
    except BaseException:
        conn.rollback()
        if direct.driver_of(conn).in_transaction:
            direct.ask(conn, "ROLLBACK", NO_VALUES)
        raise
    return done


def _sqlite_engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite+pysqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,  # errors must not carry what people wrote
        connect_args={"check_same_thread": True, "timeout": BUSY_MS / 1000},
    )

    def prepare(conn: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        conn.isolation_level = None  # transactions are begun by `begin` below and by nobody else
        _run_pragmas(conn, WRITER_PRAGMAS)
        cursor = conn.cursor()
        (page,) = cursor.execute("PRAGMA page_size").fetchone()
        cursor.execute(f"PRAGMA wal_autocheckpoint = {max(1, CHECKPOINT_BYTES // int(page))}")
        cursor.close()

    def begin(conn: Connection) -> None:
        if not direct.driver_of(conn).in_transaction:
            direct.ask(conn, BEGIN, NO_VALUES)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine


def sqlite_readers(path: Path, *, looking: bool = False) -> SqliteReaders:
    """Connections that can only read; they neither write nor checkpoint. Who is only `looking` cannot, whatever is asked of the connection."""
    return SqliteReaders(_reading_engine(path, looking=looking))


def _reading_engine(path: Path, *, looking: bool) -> Engine:
    url = URL.create("sqlite+pysqlite", database=str(path))
    if looking:
        url = url.set(database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        poolclass=NullPool,  # what `SqliteReaders` closes is closed; the pool of an engine that was disposed of leaves that to the collector
        pool_reset_on_return=None,  # each statement is committed by itself
        connect_args={"check_same_thread": False, "timeout": BUSY_MS / 1000},
    )

    def prepare(conn: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        _run_pragmas(conn, READER_PRAGMAS)

    event.listen(engine, "connect", prepare)
    return engine


def postgres_engine(
    place: PostgresPlace,
    *,
    name: str,
    autocommit: bool,
    settings: dict[str, str] | None = None,
    patience: float | None = None,
) -> AsyncEngine:
    """An engine for `place`. Raises `CannotOpen` if asyncpg is not installed.

    `settings` replaces the server-side limits that every connection but the pulse has, `patience` the seconds for which an answer is waited for.
    """
    limits = {
        "statement_timeout": f"{STATEMENT_SECONDS * 1000}",
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_MS}",
        "tcp_user_timeout": f"{IDLE_IN_TRANSACTION_MS}",
    }
    from sqlalchemy.ext.asyncio import create_async_engine

    try:
        return create_async_engine(
            place.url,
            hide_parameters=True,
            pool_size=4,
            max_overflow=0,
            pool_use_lifo=True,  # the one that knows the statements
            isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED",
            connect_args={
                "async_creator_fn": connected,
                "timeout": CONNECT_SECONDS,
                "command_timeout": UNHEARD_SECONDS if patience is None else patience,
                "server_settings": {"application_name": f"outspoken {name}"}
                | (limits if settings is None else settings),
            },
        )
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise CannotOpen(
            "PostgreSQL needs the extra 'postgres': install it with pip install 'outspoken[postgres]'."
        ) from None


def prepare_file(path: Path) -> None:
    """Make the database's folder (0700, with its parents) and an empty file (0600) where there is none."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _was_cut(noted: Beside | None, path: str) -> bool:
    try:
        return judged(noted, beside(path)) is FileState.CUT
    except OSError:
        return False


def _run_pragmas(conn: DBAPIConnection, pragmas: tuple[str, ...]) -> None:
    cursor = conn.cursor()
    for pragma in pragmas:
        cursor.execute(pragma)
    cursor.close()


def _copy(source: Path, to: Path) -> None:
    part = to.with_name(f"{to.name}.part")
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    reading = sqlite3.connect(source)
    writing = sqlite3.connect(part)
    try:
        reading.backup(writing)
    finally:
        writing.close()
        reading.close()
    handle = os.open(part, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    part.replace(to)
