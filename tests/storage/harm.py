"""Harm to a database's file, as bad disks, bad copies and people do it."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

JUNK = b"\xff\x00junk" * 400


def database_of(home: Path) -> Path:
    (found,) = home.rglob("*.db")
    return found


@contextmanager
def own_disk(at: Path, size: str) -> Generator[None]:
    """A file system of its own, of so much (``64k``, ``48m``)."""
    at.mkdir(exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", str(at)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can make a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def leaves(database: Path, name: str, holding: str = "") -> list[int]:
    """The leaf pages of a table or an index; only those that hold the words, if any are named."""
    with closing(sqlite3.connect(database)) as conn:
        conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = conn.execute("PRAGMA page_size").fetchone()
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY pageno"
        pages = [int(row[0]) for row in conn.execute(query, (name,))]
    content = database.read_bytes()
    return [page for page in pages if holding.encode() in content[(page - 1) * size : page * size]]


def damage(database: Path, name: str, holding: str = "") -> int:
    """Overwrite those pages; how many they are. No process may have the file open."""
    pages = leaves(database, name, holding)
    with closing(sqlite3.connect(database)) as conn:
        (size,) = conn.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        for page in pages:
            file.seek((page - 1) * size)
            file.write(JUNK[:size])
    return len(pages)


def asked(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=20)) as conn:
        return conn.execute(query).fetchall()


def changed(database: Path, query: str, *values: object) -> int:
    """Change rows by hand; how many were."""
    with closing(sqlite3.connect(database)) as conn:
        count = conn.execute(query, values).rowcount
        conn.commit()
    return count
