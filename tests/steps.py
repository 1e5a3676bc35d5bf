"""What a question costs SQLite, counted: how many steps its machine takes for each statement. They are the same on any machine, however busy it is."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from tests.statements import told_of

STEPS = 10
"""They are counted by so many."""


class Counted:
    """`steps` once the block is over."""

    steps: int = 0
    dearest: str = ""
    """The statement that took most of them."""


def steps_of(database: Path, statement: str, values: Any) -> int:
    """How many steps one statement takes that only reads."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as conn:
        taken = 0

        def count() -> None:
            nonlocal taken
            taken += STEPS

        conn.set_progress_handler(count, STEPS)
        conn.execute(statement, values).fetchall()
        return taken


@asynccontextmanager
async def counted(database: Path) -> AsyncGenerator[Counted]:
    """What is asked of a database in the block; what is written is not counted."""
    found, asked = Counted(), list[tuple[str, Any]]()
    with told_of(lambda statement, values: asked.append((statement, values))):
        yield found
    reads = [one for one in asked if one[0].lstrip().upper().startswith(("SELECT", "WITH"))]
    each = sorted((steps_of(database, *one), one[0]) for one in reads)
    found.steps, found.dearest = sum(steps for steps, _ in each), each[-1][1] if each else ""


def fill(database: Path, table: str, rows: Sequence[dict[str, object]]) -> None:
    """Put rows into a table, as they are, by their columns."""
    with closing(sqlite3.connect(database)) as conn, conn:
        names = ", ".join(f'"{one}"' for one in rows[0])
        marks = ", ".join(f":{one}" for one in rows[0])
        conn.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
