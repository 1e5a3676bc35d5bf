"""Pours a SQLite store into PostgreSQL, table by table, so that both are measured on the same rows. By bulk: no key of another table is looked up,
and indexes are made when the rows are there."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import asyncpg
from sqlalchemy import make_url

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.store import open_store

ROWS = 20_000
_connect = cast("Callable[[str], Awaitable[Any]]", cast("Any", asyncpg).connect)
INDEXES = """
SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()
  AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""
SEQUENCES = """
SELECT table_name, column_name FROM information_schema.columns
 WHERE table_schema = current_schema() AND (column_default LIKE 'nextval%' OR is_identity = 'YES')
"""


def _chunks(database: sqlite3.Connection, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
    named = ", ".join(f'"{one}"' for one in columns)
    cursor = database.execute(f"SELECT {named} FROM {table}")
    while rows := cursor.fetchmany(ROWS):
        yield rows


async def pour(source: Path, url: str) -> float:
    """Make the schema at `url` and fill it with what `source` holds; how many seconds that took."""
    clock = SystemClock()
    began = time.monotonic()
    async with open_store(url, clock=clock, ids=SystemIds(clock), version="bench"):
        pass
    conn: Any = await _connect(url)
    try:
        await conn.execute(
            "SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '512MB'"
        )
        indexes = await conn.fetch(INDEXES)
        for index in indexes:
            await conn.execute(f'DROP INDEX "{index["indexname"]}"')
        found = await conn.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        tables = [name for (name,) in found if name != "alembic_version"]
        await conn.execute(f"TRUNCATE {', '.join(tables)}")  # at once: one by one, each would empty those that name it
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as database:
            for table in tables:
                columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                for rows in _chunks(database, table, columns):
                    await conn.copy_records_to_table(table, records=rows, columns=columns)
        for index in indexes:
            await conn.execute(index["indexdef"])
        for table, column in await conn.fetch(SEQUENCES):
            await conn.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), (SELECT coalesce(max({column}), 0) + 1 FROM {table}))"
            )
        await conn.execute("VACUUM ANALYZE")
    finally:
        await conn.close()
    return time.monotonic() - began


async def poured(source: Path, server: str, name: str) -> str:
    """The URL of a database of this server that holds what `source` does; it is made if there is none of that name."""
    url = make_url(server)
    there: Any = await _connect(server)
    try:
        name = f"outspoken_{name}"
        new = not await there.fetch("SELECT 1 FROM pg_database WHERE datname = $1", name)
        if new:
            await there.execute(f"CREATE DATABASE {name}")
    finally:
        await there.close()
    made = url.set(drivername="postgresql", database=name).render_as_string(hide_password=False)
    if new:
        print(f"{name}: poured in {await pour(source, made):.0f} s", flush=True)
    return made
