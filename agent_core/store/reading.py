"""The store opened for reading only, beside a running gateway or without one: takes no lock, upgrades nothing, writes nothing.

SQLite's file is opened with ``mode=ro``: such a connection neither writes nor checkpoints, also when it is the last one to
close. It may leave an empty ``-wal`` and a ``-shm`` beside the file, which the next start uses.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import assert_never

from agent_core.store.database.asks import StoreAsks
from agent_core.store.database.lines import postgres_engine, sqlite_readers
from agent_core.store.database.place import Place, PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.readers import PostgresReaders, Readers
from agent_core.store.database.trouble import opening
from agent_core.store.database.upgrade import NEWEST, known_revision
from agent_core.store.database.way import Way
from agent_core.store.errors import CannotOpen
from agent_core.store.reads import Reads, reads_of


@asynccontextmanager
async def open_reads(url_or_path: str | Path) -> AsyncGenerator[Reads]:
    """What can be asked of the store at a path or URL, for the block.

    Raises CannotOpen (or CannotOpenNow, DatabaseTooNew, NotOurDatabase): if there is none, it cannot be read, or its schema is not this program's.
    """
    place = parse_place(url_or_path)
    readers = _readers(place)
    try:
        await _check(readers, place)
        yield reads_of(StoreAsks(readers, place.shown))
    finally:
        await readers.dispose()


def _readers(place: Place) -> Readers:
    match place:
        case SqlitePlace(path=path):
            if not place.there():
                raise CannotOpen(f"There is no database at {path}: no gateway has run with this configuration yet.")
            return sqlite_readers(path, looking=True)
        case PostgresPlace():
            settings = {"default_transaction_read_only": "on"}
            engine = postgres_engine(place, name="looking", autocommit=True, settings=settings)
            return PostgresReaders(engine, Way(place.shown))
        case _:
            assert_never(place)


async def _check(readers: Readers, place: Place) -> None:
    with opening(place.shown):
        found = await readers.run(lambda conn: known_revision(conn, place.shown))
    if found != NEWEST:
        raise CannotOpen(
            f"The database {place.shown} has an older schema than this program. Start the gateway once: it upgrades it."
        )
