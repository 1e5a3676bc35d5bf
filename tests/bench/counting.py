"""Counts what work costs, instead of timing it: statements of SQL, commits, bytes written, Python calls. What is counted does not wander
with the machine.

A whole gateway serves in this process, as the daemon does; the model server and the client are in a thread that is not counted.
``python -m tests.bench.counting`` prints the counts as JSON; `tests.bench.budgets` compares them.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import gc
import importlib
import itertools
import json
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low
from types import FrameType
from typing import Any, TypeVar

from agent_core.text.redaction import Redactor
from gateway.config.types import LogFormat, LogLevel
from gateway.daemon import Serving
from gateway.observe.logging import configure
from tests.bench.load import ask, ask_many
from tests.bench.plants import PLANTS, plant
from tests.bench.upstream import Conversation
from tests.ports import free_port

LOG_HEAD, FRAME_HEAD = 32, 24
"""Of SQLite's write-ahead log."""
T = TypeVar("T")

TURNS = 12
"""How many turns are counted of each kind."""
WARM = 3
"""How many come before: what is made once is not a turn's."""
STARTS = 8
"""How many starts are counted: each opens as many connections to the database as happen to be asked of at once."""
WRITING = 48
"""How many turns are asked for the bytes that they write: pages fill and are divided every few turns."""
STREAMS, STREAM_SECONDS = 40, 12.0
"""How many streams are open, and for how long, while it is counted what they hold."""
LATE = 30
"""How many turns a conversation has between its early and its late ones."""


@dataclass(slots=True)
class Tally:
    """What has been counted so far, in every thread but those that began before `install`."""

    on: bool = False
    statements: int = 0
    commits: int = 0
    calls: int = 0
    said: list[str] = field(default_factory=list[str])
    """The statements, one after the other."""

    def traced(self, statement: str) -> None:
        """SQLite runs a statement."""
        if not self.on or statement.startswith("--"):
            return
        if statement.startswith("COMMIT"):
            self.commits += 1
        else:
            self.statements += 1
        self.said.append(" ".join(statement.split()))

    def profiled(self, _frame: FrameType, event: str, _argument: object) -> None:
        """Python calls something."""
        if event in ("call", "c_call"):
            self.calls += self.on


TALLY = Tally()


def install() -> None:
    """From here on every connection and every thread is counted."""
    connect = sqlite3.connect

    def counted(*arguments: Any, **more: Any) -> sqlite3.Connection:
        made = connect(*arguments, **more)
        made.set_trace_callback(TALLY.traced)
        return made

    modules: tuple[Any, ...] = (sqlite3, importlib.import_module("sqlite3.dbapi2"))
    for module in modules:
        module.connect = counted
    threading.setprofile(TALLY.profiled)
    sys.setprofile(TALLY.profiled)


@dataclass(frozen=True, slots=True)
class Counts:
    """What one piece of work cost, the least of several: what the gateway does beside it from time to time comes on top."""

    statements: float
    commits: float
    calls: float


class Outside:
    """The model server, and whoever asks, in a thread of their own."""

    def __init__(self) -> None:
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._loop.create_server(Conversation, "127.0.0.1", self.port))
        ready.set()
        self._loop.run_forever()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done outside, and wait for what comes of it."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def ask(self, port: int, words: str, **more: Any) -> None:
        """Ask the gateway once, and wait for all of the answer."""
        seen = await self.run(ask(port, words, stream=False, **more))
        if seen.status != 200 or not seen.whole:
            raise RuntimeError(f"a turn did not come to its end: {seen}")

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def counted(work: Callable[[], Awaitable[None]], turns: int = TURNS, warm: int = WARM) -> Counts:
    """What `work` costs; what it leaves to be done behind it counts for it, too."""
    for _ in range(warm):
        await work()
        await asyncio.sleep(0.02)
    found: list[tuple[int, int, int]] = []
    for _ in range(turns):
        before = TALLY.statements, TALLY.commits, TALLY.calls
        TALLY.on = True
        TALLY.said.clear()
        await work()
        await asyncio.sleep(0.02)
        TALLY.on = False
        found.append((TALLY.statements - before[0], TALLY.commits - before[1], TALLY.calls - before[2]))
    statements, commits, calls = zip(*found, strict=True)
    return Counts(min(statements), min(commits), min(calls))


async def bytes_written(work: Callable[[], Awaitable[None]], folder: Path, turns: int = WRITING) -> float:
    """What a turn writes in all: into the database's log, from there into the file (each page once, however often it is in the log), and as
    lines of the daemon's own log."""
    (database,) = folder.rglob("*.db")
    lines = folder / "log"
    before, said = len(_frames(database)[1]), lines.stat().st_size
    for _ in range(turns):
        await work()
    page, frames = _frames(database)
    new = frames[before:]
    said = lines.stat().st_size - said
    return (len(new) * (page + FRAME_HEAD) + len(set(new)) * page + said) // turns


def _frames(database: Path) -> tuple[int, list[int]]:
    """The size of a page, and the number of the page in each frame of the database's log."""
    log = database.with_name(f"{database.name}-wal").read_bytes()
    page, salt = int.from_bytes(log[8:12]), log[16:24]
    heads = (log[at : at + FRAME_HEAD] for at in range(LOG_HEAD, len(log), page + FRAME_HEAD))
    mine = itertools.takewhile(lambda head: head[8:16] == salt, heads)  # what is behind is of an earlier round
    return page, [int.from_bytes(head[:4]) for head in mine]


def frame() -> dict[str, float]:
    """What a token costs from the model's bytes to the client's, each in a frame of its own: Python calls and Python instructions.

    Nothing of it waits, so both are exact; instructions also tell a copy, which calls nothing.
    """
    from adapters.http.api.spoken import Spoken
    from agent_core.model.stream.alike import BodyReader
    from agent_core.model.stream.chunks import ChunkReader
    from agent_core.model.stream.listening import Listening
    from agent_core.turn.view import view
    from tests.agent_core.turns import Rig
    from tests.bench.upstream import token

    rig, listening, spoken = Rig(), Listening(), Spoken()
    body = BodyReader(ChunkReader(1, frozenset(), parse_text_calls=False))
    came = map(token, itertools.count(10_000))

    def one() -> None:
        passed, _ = listening.take(body.feed(next(came), rig.now))
        for event in passed:
            rig.turn.feed(event)
        spoken.new(view(rig.turn, rig.now))

    for _ in range(200):
        one()
    before, TALLY.on = TALLY.calls, True
    for _ in range(100):
        one()
    TALLY.on = False
    return {"calls": (TALLY.calls - before) / 100, "instructions": _instructions(one, 100) / 100}


def _instructions(work: Callable[[], None], times: int) -> int:
    """How many instructions Python carries out."""
    found = 0

    def traced(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal found
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found += event == "opcode"
        return traced

    sys.settrace(traced)
    try:
        for _ in range(times):
            work()
    finally:
        sys.settrace(None)
    return found


async def held(up: Serving, port: int, outside: Outside) -> dict[str, float]:
    """What an open stream holds: objects that the collector looks at. The client's and the model server's are in it, too. Of each kind whole
    ones are counted for each stream, so that what else goes on does not count."""

    def there() -> Counter[type]:
        gc.collect()
        return Counter(map(type, gc.get_objects()))

    async def asked(seconds: float) -> None:
        seen = await outside.run(ask_many(port, f"bench tokens=3 pace={seconds / 3}", STREAMS))
        if not all(one.whole for one in seen):
            raise RuntimeError("a stream did not come to its end")

    await asked(0.3)
    asking, looks = asyncio.create_task(asked(STREAM_SECONDS)), list[Counter[type]]()
    while sum(bool(one.driver.first_content_at) for one in up.hub.running()) < STREAMS:
        await asyncio.sleep(0.1)
        if asking.done():
            raise RuntimeError("streams ended before others had begun: this machine is too busy to count them")
    for _ in range(6):
        await asyncio.sleep(0.2)
        looks.append(there())
    await asking
    await asyncio.sleep(1)
    after = there()
    kinds = {kind for look in looks for kind in look}
    return {"objects": sum(round((min(look[kind] for look in looks) - after[kind]) / STREAMS) for kind in kinds)}


async def accept_alone(folder: Path) -> Counts:
    """What it costs to store a message of a conversation that is known, and nothing else."""
    from agent_core.ports import SystemClock, SystemIds
    from agent_core.store.inbox.rows import NewMessage
    from agent_core.store.store import open_store

    clock = SystemClock()
    async with open_store(folder / "accept.db", clock=clock, ids=SystemIds(clock), version="counting") as store:
        number = iter(range(1_000_000))

        async def accept() -> None:
            at = f"m{next(number)}"
            await store.inbox.accept(NewMessage("api", at, "api/1", "normal", b"{}", clock.now_ms(), None, "s_1"))

        return await counted(accept)


async def measured(folder: Path, outside: Outside, only: frozenset[str]) -> dict[str, dict[str, float]]:
    """All that is counted; with `only`, a turn alone."""
    from tests.serving import served

    env = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{outside.port}/v1",
        "OPENAI_API_KEY": "bench",
        "OUTSPOKEN_MODEL__NAME": "bench",
    }
    if not only:
        async with served(folder, env, patient=True):
            pass  # the first start of all makes the database
    found: dict[str, Counts] = {}
    starts = [await _start(folder, env) for _ in range(0 if only else STARTS)]
    async with served(folder, env, patient=True) as up:
        port = int(up.url.rsplit(":", 1)[1].strip("/"))
        if not only:
            while any(task.get_name() == "warming" for task in asyncio.all_tasks()):
                await asyncio.sleep(0.05)
            found["first turn"] = await counted(lambda: outside.ask(port, "bench tokens=1"), 1, 0)
        plain = await counted(lambda: outside.ask(port, "bench tokens=1"))
        if "--said" in sys.argv:
            print("\n".join(words[:200] for words in TALLY.said), file=sys.stderr)
        found["turn"] = plain
        more = {"turn": {"bytes": await bytes_written(lambda: outside.ask(port, "bench tokens=1"), folder)}}
        if not only:
            found["start"] = Counts(*map(median_low, zip(*map(dataclasses.astuple, starts), strict=True)))
            found["tool"] = _each(await counted(lambda: outside.ask(port, "bench tokens=1 tools=2")), plain, 2)
            found["early turn"] = await counted(lambda: outside.ask(port, "bench tokens=1", session="counted"), 6)
            for _ in range(LATE):
                await outside.ask(port, "bench tokens=1", session="counted")
            found["late turn"] = await counted(lambda: outside.ask(port, "bench tokens=1", session="counted"), 6)
        streams = await held(up, port, outside) if not only or "stream" in only else {}
    if not only:
        found["accept"] = await accept_alone(folder)
    if not only or "chat turn" in only:
        from tests.bench.chatturn import chat_turn

        found["chat turn"] = Counts(*await chat_turn(folder / "chat", outside, TALLY))
    return ({"stream": streams} if streams else {}) | {
        name: dataclasses.asdict(counts) | more.get(name, {})
        for name, counts in found.items()
        if not only or name in only
    }


async def _start(folder: Path, env: dict[str, str]) -> Counts:
    """What a start costs until the port is open, without what sets each connection to the database up."""
    from tests.serving import served

    before = TALLY.statements, TALLY.commits, TALLY.calls
    TALLY.said.clear()
    TALLY.on = True
    async with served(folder, env, patient=True):
        TALLY.on = False
        opening = sum(statement.startswith("PRAGMA") for statement in TALLY.said)
        return Counts(TALLY.statements - before[0] - opening, TALLY.commits - before[1], TALLY.calls - before[2])


def _each(more: Counts, less: Counts, times: int) -> Counts:
    pairs = zip(dataclasses.astuple(more), dataclasses.astuple(less), strict=True)
    return Counts(*(round((a - b) / times, 2) for a, b in pairs))


def _new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def main() -> None:
    """Entry point. ``--only turn frame`` counts these alone, ``--said`` tells which statements a turn had, ``--plant`` adds creep."""
    importlib.import_module("gateway.daemon")  # what a start imports is not counted as its work
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--only", nargs="*", default=())
    asked.add_argument("--said", action="store_true")
    asked.add_argument("--plant", nargs="*", choices=[*PLANTS])
    given = asked.parse_args()
    if given.plant is not None:
        plant(*given.plant)
    outside = Outside()
    install()
    try:
        found = frame_or_all(outside, frozenset(given.only))
    finally:
        sys.setprofile(None)
        outside.close()
    print(json.dumps(found))


def frame_or_all(outside: Outside, only: frozenset[str]) -> dict[str, dict[str, float]]:
    """What is counted in a loop of its own, and what needs none."""
    found: dict[str, dict[str, float]] = {}
    if only != frozenset({"frame"}):
        with (
            tempfile.TemporaryDirectory(prefix="outspoken-counting-") as name,
            Path(name, "log").open("w") as lines,
            asyncio.Runner(loop_factory=_new_loop()) as runner,
        ):
            configure(LogLevel.INFO, LogFormat.JSON, Redactor(()), lines)
            found = runner.run(measured(Path(name), outside, only))
    if not only or "frame" in only:
        found["frame"] = frame()
    return found


if __name__ == "__main__":
    main()
