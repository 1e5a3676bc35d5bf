"""What a request costs in a conversation of ten thousand items, by what it costs in an empty one: counted, and timed on the loop's thread.

    python -m tests.bench.longtalk [--tools 0]

The long conversation is made of one turn that a real gateway ran, put into the database again and again while none runs. Each way to go on is counted:
by `conversation`, and by `previous_response_id`. With `--tools` each of its turns has so many calls of tools, and there are fewer of them.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp

from agent_core.store.turns.rows import ROWS_A_TURN
from agent_core.text.redaction import Redactor
from gateway.config.types import LogFormat, LogLevel
from gateway.observe.logging import configure
from tests.bench.counting import Outside, counted, install
from tests.journalrows import OF_TURN
from tests.serving import served

ITEMS = 10_000
ASKED = 12


class Asking:
    """Somebody who goes on, each time from the latest response."""

    def __init__(self, outside: Outside, url: str) -> None:
        self._outside, self._door = outside, f"{url.rstrip('/')}/v1/responses"
        self.latest = ""

    async def ask(self, words: str = "bench tokens=1", **more: Any) -> None:
        body = {"model": "bench", "input": words, **more}
        self.latest = await self._outside.run(self._posted(body))

    async def go_on(self) -> None:
        await self.ask(previous_response_id=self.latest)

    async def _posted(self, body: dict[str, Any]) -> str:
        async with aiohttp.ClientSession() as http, http.post(self._door, json=body) as response:
            found = await response.json()
            if found.get("status") != "completed":
                raise RuntimeError(f"a turn did not come to its end: {found}")
            return str(found["id"])


FAR = 1_000_000
"""Where the numbers of messages begin that these turns would answer: no other message gets there."""


def lengthen(database: Path, session: str, turns: int) -> None:
    """Have the session's first turn so often, one behind the other."""
    with closing(sqlite3.connect(database)) as made, made:
        first, _ = made.execute(
            "SELECT turn, number FROM turns WHERE session = ? ORDER BY number", (session,)
        ).fetchone()
        last = made.execute("SELECT max(number) FROM turns WHERE session = ?", (session,)).fetchone()[0]
        again: dict[str, str] = {}
        for table, its in (("turns", "t.turn = ?1"), ("journal", f"t.{OF_TURN}")):
            names = [row[1] for row in made.execute(f"PRAGMA table_info({table})")]
            message = f"({FAR} + n.value)"
            own = (
                {
                    "turn": "?1||'_'||n.value",
                    "number": f"{last}+n.value",
                    "first_message": message,
                    "last_message": message,
                }
                if table == "turns"
                else {"id": f"{message} * {ROWS_A_TURN} + t.id % {ROWS_A_TURN}"}
            )
            again[table] = (
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(own.get(name, f't.{name}') for name in names)} "
                f"FROM {table} t, json_each(?2) n WHERE {its} ORDER BY n.value"
            )
        each = json.dumps(list(range(1, turns + 1)))
        for table in ("turns", "journal"):
            made.execute(again[table], (first, each))


async def _timed(asking: Asking, **more: Any) -> float:
    """Processor time of the loop's thread for a request, in ms: the least of some."""
    took: list[float] = []
    for _ in range(ASKED):
        before = time.thread_time()
        await asking.ask(**more)
        await asyncio.sleep(0.02)
        took.append((time.thread_time() - before) * 1000)
    return min(took)


async def measured(folder: Path, outside: Outside, tools: int) -> dict[str, Any]:
    env = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{outside.port}/v1", "OPENAI_API_KEY": "bench", "OUTSPOKEN_MODEL__NAME": "bench",
        "OUTSPOKEN_MODEL__MAX_STEPS": "100",
    }  # fmt: skip
    words = f"bench tokens=1 tools={tools}" if tools else "bench tokens=1"
    async with served(folder, env, patient=True) as up:
        asking = Asking(outside, up.url)
        await asking.ask(words, conversation="long")
        session = asking.latest.removeprefix("resp_").rpartition("_")[0]
    lengthen(next(folder.glob("**/outspoken.db")), session, ITEMS // (2 + 2 * tools))
    found: dict[str, Any] = {}
    async with served(folder, env, patient=True) as up:
        asking = Asking(outside, up.url)
        began = time.thread_time()
        await asking.ask(conversation="long")
        found["the first after a start, ms"] = round((time.thread_time() - began) * 1000, 1)
        for name in ("empty", "long"):
            begun = iter(range(1_000))

            async def once(name: str = name, begun: Any = begun) -> None:
                await asking.ask(conversation="long" if name == "long" else f"empty{next(begun)}")

            counts = await counted(once, ASKED)
            chain = await counted(asking.go_on, 2 if name == "empty" else ASKED, 1)
            ms = await _timed(asking, **({"conversation": "long"} if name == "long" else {}))
            found[name] = dataclasses.asdict(counts) | {"chained": dataclasses.asdict(chain), "ms": round(ms, 2)}
    return found


def main() -> None:
    """Entry point."""
    importlib.import_module("gateway.daemon")
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tools", type=int, default=0)
    given = asked.parse_args()
    outside = Outside()
    install()
    try:
        with tempfile.TemporaryDirectory(prefix="outspoken-long-") as name, Path(name, "log").open("w") as lines:
            configure(LogLevel.INFO, LogFormat.JSON, Redactor(()), lines)
            found = asyncio.run(measured(Path(name), outside, given.tools))
    finally:
        sys.setprofile(None)
        outside.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
