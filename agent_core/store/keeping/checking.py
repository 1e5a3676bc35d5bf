"""Whether a database is sound: looked at on a connection of its own, in a thread of its own, beside whoever works with it.

Law: nothing is written, and no other is held up: each table is looked at in a read of its own, so that SQLite's log can be copied
into the file between two of them, and a look that is cancelled ends at once.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, assert_never
from urllib.parse import quote

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from agent_core.records import dataclass
from agent_core.store.database.lines import BUSY_MS, WORK_SECONDS, postgres_engine
from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.trouble import in_words
from agent_core.store.errors import CannotOpen

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

MOST = 100
"""Complaints that are kept."""
NO_AMCHECK = (
    "PostgreSQL was not looked at page by page: its extension amcheck is not installed in this database, or this user may not use it "
    "(CREATE EXTENSION amcheck, as a superuser; ALTER EXTENSION amcheck UPDATE, if it is of an older version)."
)


@dataclass(frozen=True, slots=True)
class Soundness:
    """What a look has found."""

    complaints: tuple[str, ...] = ()
    """What is damaged, each in a line; the table is named."""
    not_looked: str = ""
    """What was not looked at, and why; empty if everything was."""
    tables: int = 0
    broken: tuple[str, ...] = field(default=())
    """The tables with complaints."""


async def check(where: str | Path, *, thorough: bool = False) -> Soundness:
    """Look at the whole database; `thorough` also compares indexes with tables, and looks for rows that name what is not there.

    Raises CannotOpen.
    """
    place = parse_place(where)
    match place:
        case SqlitePlace(path=path):
            await asyncio.to_thread(place.there)
            return await _in_thread(_SqliteLook(path, thorough=thorough))
        case PostgresPlace():
            return await _postgres(place)
        case _:
            assert_never(place)


async def _in_thread(look: _SqliteLook) -> Soundness:
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-check") as thread:
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, look.run)
        finally:
            look.stop()


class _SqliteLook:
    def __init__(self, path: Path, *, thorough: bool) -> None:
        self._path = path
        self._pragma = "integrity_check" if thorough else "quick_check"
        self._thorough = thorough
        self._conn: sqlite3.Connection | None = None
        self._stopped = False

    def stop(self) -> None:
        """From any thread: end soon."""
        self._stopped = True
        conn = self._conn
        if conn is not None:
            with suppress(sqlite3.ProgrammingError):  # it is closed already
                conn.interrupt()

    def run(self) -> Soundness:
        address = f"file:{quote(str(self._path))}?mode=ro"
        try:
            with closing(
                sqlite3.connect(
                    address, uri=True, timeout=BUSY_MS / 1000, check_same_thread=False, isolation_level=None
                )
            ) as self._conn:
                return self._look(self._conn)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
                return Soundness((f"the list of tables: {error}",), broken=("sqlite_master",))
            raise CannotOpen(f"The database {self._path} cannot be looked at: {error}.") from error
        finally:
            self._conn = None

    def _look(self, conn: sqlite3.Connection) -> Soundness:
        names = [
            str(row[0]) for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        found: list[str] = []
        broken: list[str] = []
        for name in names:
            if self._stopped:
                return Soundness(tuple(found[:MOST]), "It was stopped before the end.", len(names), tuple(broken))
            quoted = '"' + name.replace('"', '""') + '"'
            complaints = _lines(lambda quoted=quoted: conn.execute(f"PRAGMA {self._pragma}({quoted})").fetchall())
            if self._thorough:
                complaints += _lines(lambda quoted=quoted: _orphans(conn, quoted))
            if complaints:
                broken.append(name)
                found += [f"{name}: {words}" for words in complaints]
        return Soundness(tuple(found[:MOST]), "", len(names), tuple(broken))


def _orphans(conn: sqlite3.Connection, quoted: str) -> list[tuple[str]]:
    rows = conn.execute(f"PRAGMA foreign_key_check({quoted})").fetchmany(MOST)
    return [(f"{len(rows)} rows name what is not there",)] if rows else []


def _lines(ask: Callable[[], list[tuple[str]]]) -> list[str]:
    """What SQLite complains of, a line each; that it cannot even look is a complaint."""
    try:
        rows = ask()
    except sqlite3.Error as error:
        return [str(error)]
    lines = [line for row in rows for line in str(row[0]).splitlines()]
    return [line for line in lines if line != "ok" and not line.startswith("***")]


_INDEXES = (
    "SELECT x.indrelid::regclass::text, c.oid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_am a ON a.oid = c.relam "
    "WHERE a.amname = 'btree' AND c.relkind = 'i' AND x.indisvalid AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)
_TABLES = "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname"
_AMCHECK = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE extname = 'amcheck'"
"""In which schema it is."""
_CANNOT = ("42501", "42883")
"""What PostgreSQL calls it that this user may not, and that there is no such function: of a server that was upgraded, amcheck may be older."""
_OTHER_KIND = "0A000"
"""A table of another program that keeps it in a way of its own."""
_DAMAGE = ("XX", "58")
"""Classes of what a look at damaged pages raises. Whatever else is raised says nothing of them: a table that is held, a connection that is lost."""


async def _postgres(place: PostgresPlace) -> Soundness:
    settings = {"default_transaction_read_only": "on"}
    engine = postgres_engine(place, name="check", autocommit=True, settings=settings, patience=WORK_SECONDS)
    try:
        async with engine.connect() as conn:
            return await _amcheck(conn)
    except (SQLAlchemyError, OSError) as error:
        raise CannotOpen(f"The database {place.shown} cannot be looked at: {in_words(error)}.") from error
    finally:
        await engine.dispose()


async def _amcheck(conn: AsyncConnection) -> Soundness:
    schema = (await conn.exec_driver_sql(_AMCHECK)).scalar()
    if schema is None:
        return Soundness(not_looked=NO_AMCHECK)
    found: list[str] = []
    broken: list[str] = []
    tables = [(str(name), int(oid)) for name, oid in map(tuple, (await conn.exec_driver_sql(_TABLES)).all())]
    indexes = [(str(name), int(oid)) for name, oid in map(tuple, (await conn.exec_driver_sql(_INDEXES)).all())]
    heap = f"SELECT msg FROM {schema}.verify_heapam($1::oid::regclass)"  # noqa: S608 - PostgreSQL has quoted it
    looks = [(name, oid, heap) for name, oid in tables]
    looks += [(table, oid, f"SELECT {schema}.bt_index_check($1::oid::regclass)::text") for table, oid in indexes]
    for table, oid, query in looks:
        try:
            complaints = [str(row[0]) for row in (await conn.exec_driver_sql(query, (oid,))).all() if row[0]]
        except DBAPIError as error:
            state = str(getattr(error.orig, "sqlstate", None) or "")
            if state in _CANNOT:
                return Soundness(tuple(found), NO_AMCHECK, len(tables), tuple(broken))
            if state == _OTHER_KIND:
                continue
            if not state.startswith(_DAMAGE):
                raise
            complaints = [in_words(error)]
        if complaints:
            broken.append(table)
            found += [f"{table}: {words}" for words in complaints]
    return Soundness(tuple(found[:MOST]), "", len(tables), tuple(dict.fromkeys(broken)))
