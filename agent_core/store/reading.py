"""The store opened for reading only, beside a running gateway or without one: takes no lock, upgrades nothing, writes nothing.

SQLite's file is opened with ``mode=ro``: such a connection neither writes nor checkpoints, also when it is the last one to
close. It may leave an empty ``-wal`` and a ``-shm`` beside the file, which the next start uses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_never
from urllib.parse import quote

from sqlalchemy import URL
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from agent_core.store.database.asks import StoreAsks
from agent_core.store.database.lines import BUSY_MS, postgres_engine
from agent_core.store.database.place import Place, PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.trouble import in_words
from agent_core.store.database.upgrade import NEWEST, known_revision
from agent_core.store.errors import CannotOpen
from agent_core.store.reads import Reads, reads_of


@asynccontextmanager
async def open_reads(url_or_path: str | Path) -> AsyncGenerator[Reads]:
    """What can be asked of the store at a path or URL, for the block.

    Raises CannotOpen (or DatabaseTooNew, NotOurDatabase): if there is none, it cannot be read, or its schema is not this program's.
    """
    place = parse_place(url_or_path)
    engine = _engine(place)
    try:
        await _check(engine, place)
        yield reads_of(StoreAsks(engine, place.shown))
    finally:
        await engine.dispose()


def _engine(place: Place) -> AsyncEngine:
    match place:
        case SqlitePlace(path=path):
            if not place.there():
                raise CannotOpen(f"There is no database at {path}: no gateway has run with this configuration yet.")
            url = URL.create(
                "sqlite+aiosqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}
            )
            return create_async_engine(
                url,
                isolation_level="AUTOCOMMIT",
                hide_parameters=True,
                pool_size=1,
                pool_reset_on_return=None,  # each statement is committed by itself
                connect_args={"timeout": BUSY_MS / 1000},
            )
        case PostgresPlace():
            return postgres_engine(
                place, name="looking", autocommit=True, settings={"default_transaction_read_only": "on"}
            )
        case _:
            assert_never(place)


async def _check(engine: AsyncEngine, place: Place) -> None:
    try:
        async with engine.connect() as conn:
            found = await conn.run_sync(lambda sync: known_revision(sync, place.shown))
    except (SQLAlchemyError, PoolTimeout, OSError, TimeoutError) as error:
        raise CannotOpen(f"The database {place.shown} cannot be read: {in_words(error)}.") from error
    if found != NEWEST:
        raise CannotOpen(
            f"The database {place.shown} has an older schema than this program. Start the gateway once: it upgrades it."
        )
