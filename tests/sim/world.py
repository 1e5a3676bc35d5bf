"""What a simulated gateway takes from the world: time and ids from the loop, SQLite without threads, and how a process dies.

The store, its statements and SQLite itself are the real ones. Only the threads are replaced by the loop, and engines are
kept from one incarnation to the next, because compiling their statements takes longer than a turn.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, TypeVar, cast

import structlog

import agent_core.store.database.lines as lines
import agent_core.store.database.ownership as ownership
import agent_core.store.database.readers as readers
import agent_core.store.store as store_module
import agent_core.workers.hand as hand
from tests.sim.loop import SimLoop

T = TypeVar("T")
EPOCH_MS = 1_700_000_000_000

OPEN_CONNECTIONS: list[sqlite3.Connection] = []
OPEN_LOCKS: list[ownership.FileLock] = []
LOGGED: list[dict[str, Any]] = []


class SimClock:
    """The loop's time as a wall clock and a stopwatch."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return EPOCH_MS + round(self._loop.now * 1000)

    def monotonic(self) -> float:
        return self._loop.now


class SimIds:
    """Numbers in order; they go on over a restart, as random ids would."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count:08d}"

    def seed(self) -> int:
        self._count += 1
        return self._count * 7919


def _remembered(connect: Callable[..., sqlite3.Connection]) -> Callable[..., sqlite3.Connection]:
    def connected(*arguments: Any, **more: Any) -> sqlite3.Connection:
        made = connect(*arguments, **more)
        OPEN_CONNECTIONS.append(made)
        return made

    return connected


class _RememberedLock(ownership.FileLock):
    def __init__(self, *handles: int) -> None:
        super().__init__(*handles)
        OPEN_LOCKS.append(self)


def _capture(_logger: object, name: str, event: Any) -> str:
    LOGGED.append({"level": name, **event})
    raise structlog.DropEvent


class _LoopsHand(hand.WorkerThread):
    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        return asyncio.get_running_loop().run_in_executor(cast("Executor", self), work)


def _no_threads(*_: object) -> None:
    """The loop's own take their place."""


def install() -> None:
    """Once a process, before the first scenario."""
    connect = _remembered(sqlite3.connect)
    modules: tuple[Any, ...] = (sqlite3, importlib.import_module("sqlite3.dbapi2"))
    for module in modules:
        module.connect = connect
    place: Any = lines
    place._sqlite_engine = functools.cache(place._sqlite_engine)
    named: Any = store_module
    place._reading_engine = functools.cache(place._reading_engine)
    threads: Any = readers
    threads.ThreadPoolExecutor = _no_threads
    place.WorkerThread = _LoopsHand
    named.FileLock = _RememberedLock
    structlog.configure(processors=[structlog.processors.format_exc_info, _capture], cache_logger_on_first_use=False)


def die(path: Path) -> None:
    """What the kernel does when a process is gone: its files are closed, its locks released, its transaction never ends."""
    for connection in OPEN_CONNECTIONS:
        connection.close()
    OPEN_CONNECTIONS.clear()
    for lock in OPEN_LOCKS:
        lock.release()
    OPEN_LOCKS.clear()
    place: Any = lines
    place._reading_engine(path, looking=False).dispose(close=False)
