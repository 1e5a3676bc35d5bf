"""Where the gateways that a test starts keep what they store: in a file of their home, or, for the tests in `tests/postgres`, on a server.

One place, so that a suite need not be written twice: whoever starts a gateway adds `settings()`, and whoever looks into its database asks
`database_of`, or `rows`.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.databases import connected


class _Here:
    """Of the test that runs in this process just now."""

    url: str = ""


def use(url: str) -> None:
    """Gateways that are started from now on store there; empty: in their homes."""
    _Here.url = url


def settings() -> Mapping[str, str]:
    """What a gateway has to be told."""
    return {"OUTSPOKEN_STORAGE__URL": _Here.url} if _Here.url else {}


def database_of(home: Path) -> str:
    """The file or the address."""
    return _Here.url or str(home / "outspoken.db")


def rows(home: Path, query: str) -> Sequence[Sequence[Any]]:
    """What a gateway has stored, by a query that both engines understand."""
    if not _Here.url:
        with closing(sqlite3.connect(f"file:{home / 'outspoken.db'}?mode=ro", uri=True, timeout=20)) as found:
            return found.execute(query).fetchall()

    async def ask(url: str) -> Sequence[Sequence[Any]]:
        conn = await connected(url)
        try:
            return [tuple(row) for row in await conn.fetch(query)]
        finally:
            await conn.close()

    with ThreadPoolExecutor(1) as thread:  # whoever asks may be on a loop
        return thread.submit(asyncio.run, ask(_Here.url)).result()
