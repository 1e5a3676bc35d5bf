"""What a simulated gateway takes from the world: time and ids from the loop, SQLite without threads, and how a process dies.

The store, its statements and SQLite itself are the real ones. Only aiosqlite's thread is replaced by the loop, and engines are
kept from one incarnation to the next, because compiling their statements takes longer than a turn.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiosqlite.core
import structlog
from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine

import agent_core.store.database.lines as lines
import agent_core.store.database.ownership as ownership
import agent_core.store.store as store_module
from tests.sim.loop import SimLoop

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


class _NoThread:
    """In the place of aiosqlite's thread."""

    def __init__(self, **_: object) -> None: ...

    def start(self) -> None: ...


class _InlineQueue:
    """In the place of the queue to that thread: what is put in is done by the loop."""

    def put_nowait(self, item: tuple[asyncio.Future[Any] | None, Callable[[], Any]]) -> None:
        future, function = item
        if future is None:
            function()
            return
        loop = future.get_loop()
        assert isinstance(loop, SimLoop)
        loop.call_later(loop.random.choice((0.0, 0.001, 0.005)), self._do, future, function)

    @staticmethod
    def _do(future: asyncio.Future[Any], function: Callable[[], Any]) -> None:
        if future.done():
            return
        try:
            future.set_result(function())
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            future.set_exception(error)


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


def install() -> None:
    """Once a process, before the first scenario."""
    core: Any = aiosqlite.core
    core.Thread, core.SimpleQueue = _NoThread, _InlineQueue
    connect = _remembered(sqlite3.connect)
    modules: tuple[Any, ...] = (sqlite3, importlib.import_module("sqlite3.dbapi2"))
    for module in modules:
        module.connect = connect
    place: Any = lines
    place._sqlite_engine = functools.cache(place._sqlite_engine)
    named: Any = store_module
    named.sqlite_readers = functools.cache(lines.sqlite_readers)
    named.FileLock = _RememberedLock
    structlog.configure(processors=[structlog.processors.format_exc_info, _capture], cache_logger_on_first_use=False)


def engines(path: Path) -> tuple[Engine, AsyncEngine]:
    place: Any = lines
    named: Any = store_module
    return place._sqlite_engine(path), named.sqlite_readers(path)


def die(path: Path) -> None:
    """What the kernel does when a process is gone: its files are closed, its locks released, its transaction never ends."""
    for connection in OPEN_CONNECTIONS:
        connection.close()
    OPEN_CONNECTIONS.clear()
    for lock in OPEN_LOCKS:
        lock.release()
    OPEN_LOCKS.clear()
    _, readers = engines(path)
    readers.sync_engine.dispose(close=False)
