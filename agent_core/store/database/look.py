"""Looks at a database without changing it and without being in the way of whoever has it open."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.database.lines import postgres_engine
from agent_core.store.database.ownership import locked_itself, running_pid
from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.trouble import cannot_open, extended_code, in_words, opening
from agent_core.store.database.upgrade import NEWEST, known_revision
from agent_core.store.errors import CannotOpen
from agent_core.store.inbox.rows import UnreadState

WAIT_SECONDS = 3.0
"""How long a look waits for a lock."""
SOUND_SQLITE = (3, 51, 3)
"""Below it, two connections of one file that write or checkpoint at the same moment can damage it (SQLite's WAL-reset bug).
Here only one connection does either."""
_MAY_MAKE = """SELECT has_schema_privilege(current_schema(), 'CREATE') AND NOT EXISTS (
    SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'alembic_version' AND NOT pg_has_role(tableowner, 'USAGE'))"""


@dataclass(frozen=True, slots=True)
class DatabaseSeen:
    """What a database is."""

    shown: str
    """The place in words, without a password."""
    engine: str
    """Name and version."""
    file: Path | None
    """None for PostgreSQL."""
    revision: str | None = None
    """The revision of its schema; None if it has none yet, or does not exist."""
    unread: int = 0
    """What came and could not be taken in, kept for the next version."""
    keys: tuple[str, ...] = ()
    """What the keys of the API may that were not revoked, as it is stored."""
    newest: str = NEWEST
    """The revision that this program has."""
    exists: bool = True
    may_make: bool = True
    """Whether this user may make tables there, and change those that are there."""

    @property
    def older_sqlite(self) -> bool:
        """The library of this Python has the WAL-reset bug."""
        return self.file is not None and sqlite3.sqlite_version_info < SOUND_SQLITE


async def look(where: str | Path) -> DatabaseSeen:
    """Look at the database. Raises `CannotOpen` in words, also for one that is newer or not ours."""
    place = parse_place(where)
    if isinstance(place, SqlitePlace):
        return await asyncio.to_thread(_sqlite, place)
    return await _postgres(place)


def holder_of(database: Path) -> int | None:
    """The process that has this file open for writing; 0 if nobody has, None if that cannot be found out."""
    try:
        return running_pid(database) or (None if locked_itself(database) else 0)
    except OSError:
        return None


def _sqlite(place: SqlitePlace) -> DatabaseSeen:
    engine = f"SQLite {sqlite3.sqlite_version}"
    if not place.there():
        return DatabaseSeen(place.shown, engine, place.path, exists=False)
    address = f"file:{quote(str(place.path))}?mode=ro"
    maker = create_engine(
        "sqlite+pysqlite://",
        creator=lambda: sqlite3.connect(address, uri=True, timeout=WAIT_SECONDS),
        poolclass=NullPool,
        hide_parameters=True,
    )
    try:
        with maker.connect() as conn:
            revision = known_revision(conn, place.shown)
            unread, keys = _unread(conn, revision), _keys(conn, revision)
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _cannot_open(place.shown, error) from error
    finally:
        maker.dispose()
    return DatabaseSeen(place.shown, engine, place.path, revision, unread, keys)


async def _postgres(place: PostgresPlace) -> DatabaseSeen:
    engine = postgres_engine(place, name="doctor", autocommit=True)

    def all_of_it(conn: Connection) -> DatabaseSeen:
        revision = known_revision(conn, place.shown)
        version = str(conn.exec_driver_sql("SHOW server_version").scalar_one())
        may_make = bool(conn.exec_driver_sql(_MAY_MAKE).scalar())
        unread, keys = _unread(conn, revision), _keys(conn, revision)
        return DatabaseSeen(place.shown, f"PostgreSQL {version}", None, revision, unread, keys, may_make=may_make)

    try:
        with opening(place.shown):
            async with engine.connect() as conn:
                return await conn.run_sync(all_of_it)
    finally:
        await engine.dispose()


def _unread(conn: Connection, revision: str | None) -> int:
    if revision != NEWEST:
        return 0  # the table may not be there
    query = select(func.count()).select_from(t.unread).where(t.unread.c.state != UnreadState.DONE.value)
    return int(conn.execute(query).scalar_one())


def _keys(conn: Connection, revision: str | None) -> tuple[str, ...]:
    if revision != NEWEST:
        return ()
    query = select(t.api_keys.c.terms).where(t.api_keys.c.revoked_at.is_(None))
    return tuple(str(row[0]) for row in conn.execute(query))


def _cannot_open(shown: str, error: Exception) -> CannotOpen:
    if extended_code(error) == sqlite3.SQLITE_IOERR_SHORT_READ:
        return CannotOpen(
            f"The database {shown} cannot be opened: {in_words(error)}. Its log ({shown}-wal) is shorter than its index says: it was removed, "
            f"replaced or cut. A gateway that runs notices that within seconds, and saves what it can: try again then. If none runs, remove {shown}-shm."
        )
    return cannot_open(error, shown)
