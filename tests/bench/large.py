"""What a gateway costs on a store with a million turns and ten million rows, by what it costs on an empty one.

    python -m tests.bench.large --folder FOLDER [--turns 1000000] [--rounds 5] [--postgres SERVER]

The few turns of the other store are played (`tests.bench.played`), and those of the large one are their copies (`tests.bench.grown`); `--postgres` pours them into two databases of a server (`tests.bench.pour`) and measures there. Both stores are served in turn by daemons of their own, and the medians are compared: a machine's
speed wanders. What was read of files is counted beside the time: it tells a scan from chance.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sqlite3
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import aiohttp
from sqlalchemy import text

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.store import open_store
from tests.bench.cases import Figure
from tests.bench.grown import grow
from tests.bench.load import ask
from tests.bench.machine import OTHER_CORE, Measured, process, settle
from tests.bench.played import played
from tests.bench.pour import poured
from tests.ports import free_port

LIMIT = 1.2
IDLE_SECONDS = 20.0
TURNS, LOOKS, ACCEPTS = 40, 15, 100
WARM = 5
ROUNDS = 3
LATEST = 200


class Seen:
    """What was measured of one store: by name milliseconds, those of them that were CPU, and KiB that were read."""

    def __init__(self) -> None:
        self.took: defaultdict[str, list[float]] = defaultdict(list)
        self.used: defaultdict[str, list[float]] = defaultdict(list)
        self.read: defaultdict[str, list[float]] = defaultdict(list)

    async def times(self, what: str, count: int, work: Callable[[], Awaitable[object]], of: Measured | None) -> None:
        """Do it so often."""
        for number in range(WARM + count):
            before, began, used = _read(of), time.monotonic(), _used(of)
            await work()
            took, used = (time.monotonic() - began) * 1000, (_used(of) - used) * 1000
            if number >= WARM:
                self.took[what].append(took)
                self.used[what].append(used)
                self.read[what].append(_read(of) - before)


def _used(of: Measured | None) -> float:
    """Seconds of the processor that a process has had (or this one)."""
    return of.cpu_seconds() if of else time.process_time()


def _read(of: Measured | None) -> float:
    """KiB that a process read of files (or this one)."""
    path = Path(f"/proc/{of.pid if of else 'self'}/io")
    return int(path.read_text().split()[1]) / 1024


async def serve(home: Path, url: str, upstream: int, seen: Seen) -> None:
    """One start, and what is asked of it."""
    port = free_port()
    env = {
        "OUTSPOKEN_HOME": str(home),
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1",
        "OPENAI_API_KEY": "bench",
        "OUTSPOKEN_MODEL__NAME": "bench",
        **({"OUTSPOKEN_STORAGE__URL": url} if url else {}),
    }
    with process(["-m", "gateway", "run"], port, env, log=home / "bench.log") as daemon:
        seen.took["start: until the port answers"].append(daemon.ready_seconds * 1000)
        seen.took["start: CPU"].append(daemon.cpu_seconds() * 1000)
        seen.read["start: CPU"].append(_read(daemon))
        await settle(3.0)
        await seen.times("plain turn", TURNS, lambda: ask(port, "bench tokens=1", stream=False), daemon)
        await seen.times("turn with a tool", TURNS, lambda: ask(port, "bench tokens=1 tools=1", stream=False), daemon)
        await seen.times(
            "turn of a known conversation", TURNS, lambda: ask(port, "bench tokens=1", stream=False, session="known"), daemon
        )  # fmt: skip
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:

            async def got(path: str) -> None:
                async with http.get(path) as response:
                    assert response.status == 200, await response.text()
                    await response.read()

            async def live() -> None:
                async with http.get("/console/api/live") as response:
                    await response.content.readuntil(b"sections")

            await seen.times("/status", LOOKS, lambda: got("/status"), daemon)
            await seen.times("/metrics", LOOKS, lambda: got("/metrics"), daemon)
            began, used = time.monotonic(), daemon.cpu_seconds()
            await live()
            seen.took["console: first look"].append((time.monotonic() - began) * 1000)
            seen.used["console: first look"].append((daemon.cpu_seconds() - used) * 1000)
            await seen.times("console: another look", LOOKS, live, daemon)
            await seen.times("/api/triage of an hour", LOOKS, lambda: got("/api/triage?since=1h"), daemon)
            await seen.times("conversations of a page", LOOKS, lambda: got("/api/conversations"), daemon)
            for what, ids in picked(home).items():
                asked = iter(ids)
                await seen.times(
                    f"explain {what}", LOOKS, lambda asked=asked: got(f"/console/api/explain/{next(asked)}"), daemon
                )
        await settle(3.0)
        used, read = daemon.cpu_seconds(), _read(daemon)
        await settle(IDLE_SECONDS)
        seen.took["idle: CPU of a minute"].append((daemon.cpu_seconds() - used) * 1000 * 60 / IDLE_SECONDS)
        seen.read["idle: CPU of a minute"].append((_read(daemon) - read) * 60 / IDLE_SECONDS)
        seen.took["memory, MiB"].append(daemon.resident_mib())


def picked(home: Path) -> dict[str, list[str]]:
    """Ids of anything that was said, from all of the time."""
    with closing(sqlite3.connect(f"file:{home / 'outspoken.db'}?mode=ro", uri=True)) as conn:
        dice = random.Random(3)
        (last,) = conn.execute("SELECT max(id) FROM inbox").fetchone()
        rows: list[tuple[int, str, str]] = []
        while len(rows) < WARM + LOOKS:
            where = "id >= ? AND turn IS NOT NULL ORDER BY id"
            at = dice.randint(1, last)
            row = conn.execute(f"SELECT id, turn, session FROM inbox WHERE {where} LIMIT 1", (at,)).fetchone()
            rows += [row] if row is not None else []
        return {
            "a message": [str(one) for one, _, _ in rows], "a turn": [turn for _, turn, _ in rows], "a conversation": [session for _, _, session in rows],
        }  # fmt: skip


def since_latest(home: Path) -> int:
    """Since when as many turns have ended as are looked at: a day of the large store has more of them than one of the empty one."""
    with closing(sqlite3.connect(f"file:{home / 'outspoken.db'}?mode=ro", uri=True)) as conn:
        query = "SELECT closed_at FROM turns WHERE closed_at IS NOT NULL ORDER BY closed_at DESC LIMIT 1 OFFSET ?"
        return int(conn.execute(query, (LATEST,)).fetchone()[0])


async def alone(home: Path, url: str, seen: Seen) -> None:
    """What the store does without a gateway around it: an accept, and what `triage` asks of the latest turns."""
    clock = SystemClock()
    async with open_store(url or home / "outspoken.db", clock=clock, ids=SystemIds(clock), version="bench") as store:
        mark, since = clock.now_ms(), since_latest(home)
        number = iter(range(1_000_000))

        async def accept() -> None:
            one = f"x{mark}-{next(number)}"
            await store.inbox.accept(NewMessage("api", one, "api/1", "normal", b"{}", clock.now_ms(), None, f"s_{one}"))

        async def triage() -> None:
            await store.troubles.failures(since, ["answered"])
            await store.deliveries.failed_parts(since)
            await store.inbox.dropped(since)
            await store.turns.count_closed(since)

        await seen.times(f"triage of {LATEST} turns", LOOKS, triage, None)
        await seen.times("accept", ACCEPTS, accept, None)
        nobodys = text("DELETE FROM inbox WHERE platform_key LIKE :which").bindparams(which=f"x{mark}-%")
        await store.writer.alone(lambda conn: conn.execute(nobodys) and None)  # nobody is to answer these


def table(large: Seen, empty: Seen) -> list[str]:
    """The figures, one line each."""
    lines = [f"{'':32} {'ms: large':>9} {'empty':>9} {'CPU':>9} {'':>9} {'ratio':>6} {'KiB read':>9}"]
    for what in large.took:
        pairs = [(large.took, empty.took), (large.used, empty.used), (large.read, empty.read)]
        told = [f"{statistics.median(one.get(what) or [0]):9.2f}" for pair in pairs for one in pair]
        ratio = by_each_other(large, empty, what)
        told.insert(4, f"{ratio:6.2f}")
        lines.append(f"{what:32} {' '.join(told)}{'' if ratio <= LIMIT else '  NOT KEPT'}")
    return lines


async def measured(folder: Path, turns: int, rounds: int, server: str = "") -> tuple[Seen, Seen]:
    """Make what is missing, then one after the other, and the other way round: what was seen of the large one, and of the empty one."""
    full, empty = folder / "full", folder / "empty"
    if not full.exists():
        empty.mkdir(parents=True)
        await played(empty)
        shutil.copytree(empty, full)  # what was sent lies in the first folder for both
        await asyncio.to_thread(grow, full / "outspoken.db", turns)
    urls = {home: await poured(home / "outspoken.db", server, home.name) if server else "" for home in (full, empty)}
    found = {full: Seen(), empty: Seen()}
    up = free_port()
    with process(["-m", "tests.bench.upstream", str(up)], up, core=OTHER_CORE, log=folder / "upstream.log"):
        for number in range(rounds):
            for home in (full, empty) if number % 2 else (empty, full):
                await serve(home, urls[home], up, found[home])
                await alone(home, urls[home], found[home])
            print(*table(found[full], found[empty]), "", sep="\n", flush=True)
    return found[full], found[empty]


def by_each_other(large: Seen, empty: Seen, what: str) -> float:
    """What it costs of the processor on the large store by what it does on the empty one; by the clock where that is not known."""
    of, by = (one.used if large.used.get(what) and empty.used.get(what) else one.took for one in (large, empty))
    return statistics.median(of[what]) / (statistics.median(by[what]) or 1)


async def large(folder: Path, turns: int) -> list[Figure]:
    """What each costs on the large store by what it costs on the empty one."""
    seen, empty = await measured(folder / "large", turns, ROUNDS)
    what = f"{turns:_} turns in the store: ".replace("_", " ")
    return [Figure(f"{what}{one}, by an empty one", by_each_other(seen, empty, one), "×", LIMIT) for one in seen.took]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--postgres", default="", metavar="SERVER", help="postgresql://…: its databases are made where they are missing"
    )
    given = parser.parse_args()
    asyncio.run(measured(given.folder, given.turns, given.rounds, given.postgres))


if __name__ == "__main__":
    main()
