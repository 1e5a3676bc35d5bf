"""How long ``outspoken explain`` takes when ten million rows of the journal are stored.

A gateway serves some conversations over Telegram; what it stored is then copied as if it had gone on like that for a long time: the
same turns, later, of other people.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from pathlib import Path

from agent_core.ports import SystemClock, time_mark
from agent_core.store.reading import open_reads
from agent_core.store.tables import metadata, row_id
from gateway.explain.ids import time_in
from gateway.explain.story import Explainer
from tests.bench.cases import Figure
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import telegram_harness

PEOPLE, SAID = 20, ("say hello", "write a.txt: some words", "long 300", "say goodbye")
COPIED = ("sessions", "inbox", "turns", "journal", "tool_calls", "deliveries")
TIMES = {"at", "received_at", "opened_at", "closed_at", "deadline", "created_at", "last_at", "since", "sending_at", "retry_at"}  # fmt: skip
NUMBERS = {
    ("inbox", "id"),
    ("inbox", "arrival"),
    ("turns", "first_message"),
    ("turns", "last_message"),
    ("deliveries", "id"),
    ("deliveries", "place"),
}
NAMES = {"session", "key", "platform_key", "turn", "origin", "surface"}
"""Columns with ids in them."""
APART = 1_000_000
"""Between a number and that of its copy, in steps; more than the first conversations have."""
ASKED = 200
LIMIT_MS = 300.0
COMMANDS = 5
KINDS = {
    "turn": ("turns", "turn"),
    "session": ("deliveries", "session"),
    "message": ("inbox", "id"),
    "platform message": ("inbox", "platform_key"),
    "answer": ("deliveries", "platform_id"),
    "delivery": ("deliveries", "key"),
    "chat and time": ("inbox", "platform_key, received_at"),
}
"""What is asked for, and where ids of it stand."""

Value = str | bytes | int | None


@dataclass(frozen=True)
class Copier:
    """Makes the rows of the copy with the number `k`. `chats`: the ids of the chats; `span_ms`: how long the first conversations took."""

    chats: frozenset[str]
    span_ms: int
    width: int

    def row(self, table: str, columns: list[str], row: tuple[Value, ...], k: int) -> tuple[Value, ...]:
        return tuple(self._value(table, column, value, k) for column, value in zip(columns, row, strict=True))

    def _value(self, table: str, column: str, value: Value, k: int) -> Value:
        match value:
            case int() if (table, column) == ("journal", "id"):
                return value + row_id(k * self.width, 0)
            case int() if (table, column) in NUMBERS:
                return value + k * self.width
            case int() if column in TIMES:
                return value + k * self.span_ms
            case str() if column in NAMES:
                return self._text(value, k)
            case bytes() if table == "inbox":
                return self._text(value.decode(), k).encode()
            case _:
                return value

    def _text(self, text: str, k: int) -> str:
        return re.sub(
            r"\b(?:(?P<ours>[a-z]+_[0-9a-z]{20})|inbox:(?P<number>\d+)|(?P<digits>\d+))\b", partial(self._id, k), text
        )

    def _id(self, k: int, found: re.Match[str]) -> str:
        if found["ours"]:
            head, _, mark = found["ours"].partition("_")
            at = time_in(found["ours"]) or 0
            return f"{head}_{time_mark(at + k * self.span_ms)}{mark[10:]}"
        if found["number"]:
            return f"inbox:{int(found['number']) + k * self.width}"
        digits = found["digits"]
        return str(int(digits) + k * APART) if digits in self.chats else digits


async def explaining(folder: Path, rows: int) -> list[Figure]:
    """The figures, with at least so many rows in the journal."""
    home = folder / "explaining"
    home.mkdir()
    chats = await _conversations(home)
    return await asyncio.to_thread(_grown, home, chats, rows) + await _asked(home)


async def _conversations(home: Path) -> frozenset[str]:
    async with telegram_harness(home) as telegram, running(telegram):
        places = [(person, telegram.private(person)) for person in (telegram.person(f"P{n}") for n in range(PEOPLE))]
        for words in SAID:
            for person, place in places:
                telegram.say(place, person, words)
            for _, place in places:
                await answer(
                    telegram,
                    place,
                    {"write a.txt: some words": "a.txt", "long 300": "word299"}.get(words, words[4:]),
                    60,
                )
        return frozenset(telegram.chat_of(place) for _, place in places)


def _grown(home: Path, chats: frozenset[str], rows: int) -> list[Figure]:
    """Copy what is stored until the journal has so many rows."""
    (path,) = home.rglob("*.db")
    began = time.monotonic()
    with closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("PRAGMA journal_mode=delete")
        conn.execute("PRAGMA synchronous=off")
        conn.execute("PRAGMA cache_size=-1000000")
        first: dict[str, tuple[list[str], list[tuple[Value, ...]]]] = {}
        for name in COPIED:
            columns = [column.name for column in metadata.tables[name].columns]
            first[name] = columns, conn.execute(f"SELECT {', '.join(map(_quoted, columns))} FROM {name}").fetchall()
        (begin, end) = conn.execute("SELECT min(opened_at), max(closed_at) FROM turns").fetchone()
        (width,) = conn.execute(
            "SELECT max((SELECT max(id) FROM inbox), (SELECT max(id) FROM deliveries), (SELECT max(place) FROM deliveries))"
        ).fetchone()
        copier = Copier(chats, end - begin + 1000, width + 1)
        copies = rows // len(first["journal"][1]) + 1
        for name, (columns, stored) in first.items():
            statement = (
                f"INSERT INTO {name} ({', '.join(map(_quoted, columns))}) VALUES ({', '.join('?' * len(columns))})"
            )
            conn.executemany(statement, _copies(copier, name, columns, stored, copies))
            print(f"  {name}: {len(stored)} × {copies}", file=sys.stderr, flush=True)
        conn.commit()
        (count,) = conn.execute("SELECT count(*) FROM journal").fetchone()
        conn.execute("PRAGMA journal_mode=wal")
    return [
        Figure("explain: rows in the journal", count, ""),
        Figure("explain: the database has", path.stat().st_size / 2**20, "MiB"),
        Figure("explain: it was made in", time.monotonic() - began, "s"),
    ]


def _quoted(name: str) -> str:
    return f'"{name}"'


def _copies(
    copier: Copier, name: str, columns: list[str], stored: list[tuple[Value, ...]], copies: int
) -> Iterator[tuple[Value, ...]]:
    return (copier.row(name, columns, row, k) for k in range(1, copies) for row in stored)


async def _asked(home: Path) -> list[Figure]:
    """Any ids of each kind, one after the other; and the whole command."""
    (path,) = home.rglob("*.db")
    chance = random.Random(1)
    with closing(sqlite3.connect(path)) as conn, conn:
        picked = {kind: [_any(conn, chance, *where) for _ in range(ASKED)] for kind, where in KINDS.items()}
    figures: list[Figure] = []
    async with open_reads(path) as reads:
        explainer = Explainer(reads, SystemClock().now_ms)
        for kind, rows in picked.items():
            took = [await _timed(explainer, row) for row in rows]
            figures.append(Figure(f"explain {kind}: median of {ASKED}", sorted(took)[ASKED // 2], "ms"))
            figures.append(Figure(f"explain {kind}: at most", max(took), "ms", limit=LIMIT_MS))
    command = [await asyncio.to_thread(_command, home, str(row[0])) for row in picked["turn"][:COMMANDS]]
    return [*figures, Figure("outspoken explain TURN, the whole process: median", sorted(command)[COMMANDS // 2], "ms")]


def _any(conn: sqlite3.Connection, chance: random.Random, table: str, columns: str) -> tuple[str | int, ...]:
    """The columns of any row."""
    (last,) = conn.execute(f"SELECT max(rowid) FROM {table}").fetchone()
    at = chance.randint(1, last)
    return conn.execute(f"SELECT {columns} FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 1", (at,)).fetchone()


async def _timed(explainer: Explainer, row: tuple[str | int, ...]) -> float:
    """Milliseconds until its story is told; it has to have one."""
    began = time.monotonic()
    if len(row) == 1:
        told = await explainer.of(str(row[0]))
    else:
        told = await explainer.chat_at(f"telegram/{str(row[0]).partition(':')[0]}", int(row[1]))
    took = (time.monotonic() - began) * 1000
    assert told.found, told.text(UTC)
    return took


def _command(home: Path, id_: str) -> float:
    began = time.monotonic()
    env = {**os.environ, "OUTSPOKEN_HOME": str(home)}
    subprocess.run([sys.executable, "-m", "gateway", "explain", id_], env=env, check=True, stdout=subprocess.DEVNULL)
    return (time.monotonic() - began) * 1000
