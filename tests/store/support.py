"""Helpers for the tests of the store: a clock that stands still, short forms of its arguments, and child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import Accepted, NewMessage
from agent_core.store.sessions.takeups import Charges, MakeRow
from agent_core.store.store import Store, open_store
from agent_core.store.turns.rows import JournalRow, OpenTurn

ROOT = Path(__file__).resolve().parents[2]
PATIENT_LEASE_SECONDS = 120.0
"""On a busy machine a process may well be silent for the seconds that are left to it elsewhere."""


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


IDS = SystemIds(SystemClock())


def opened(where: str, clock: FakeClock | None = None) -> AbstractAsyncContextManager[Store]:
    """The store at `where`, as the daemon opens it."""
    return open_store(where, clock=clock or FakeClock(), ids=IDS, version="test")


def row(seq: int, body: bytes = b"{}", kind: str = "TextArrived", at: int = 5) -> JournalRow:
    return JournalRow(seq, kind, body, at)


def message(
    key: str = "m1",
    session_key: str = "chat",
    body: bytes = b'"hello"',
    cursor: tuple[str, str] | None = None,
    at: int = 10,
) -> NewMessage:
    return NewMessage("bot", key, session_key, "chat", body, at, cursor, IDS.new("s"))


def taken_over(turn: str, seq: int, epoch: int) -> JournalRow:
    return JournalRow(seq, "TakenOver", f'{{"turn":"{turn}","epoch":{epoch}}}'.encode(), 9)


async def take_over(store: Store, make_row: MakeRow = taken_over) -> list[OpenTurn]:
    """Take up everything that dead processes left, as the keeper does; the open turns that are this node's by it."""
    turns, messages = await store.left.turns(), await store.left.messages()
    others = {one.owner for one in (*turns, *messages) if one.owner is not None}
    dead = await store.dead_among(others - {store.node})
    left = {one.session for one in (*turns, *messages) if one.owner is None or one.owner in dead}
    charges = {one.session: Charges(turns={one.turn: 1}) for one in turns if one.session in left}
    return list((await store.left.take_up(make_row, left, charges)).turns)


async def session_of(store: Store, key: str = "chat") -> tuple[str, int]:
    """A session that is ours: its id and epoch. Its one message is dropped."""
    accepted = await store.inbox.accept(message(IDS.new("m"), key))
    epoch = await store.sessions.claim(accepted.session)
    await store.inbox.drop(accepted.inbox_id, "only made the session")
    return accepted.session, epoch


async def turn_of(store: Store, key: str = "chat") -> tuple[str, int, str]:
    """A session that is ours with an open turn: (session, epoch, turn). The journal holds row 0."""
    _, epoch = await session_of(store, key)
    accepted = await store.inbox.accept(message(IDS.new("m"), key))
    return await started(store, accepted, epoch)


async def started(store: Store, accepted: Accepted, epoch: int) -> tuple[str, int, str]:
    turn = IDS.new("t")
    await store.turns.start(accepted.session, epoch, turn, [accepted.inbox_id], row(0), 100, 200)
    return accepted.session, epoch, turn


class Child:
    """A process that runs `tests.store.children`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.pid = process.pid

    async def line(self) -> str:
        """Its next line; empty at the end."""
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    def send(self, sign: signal.Signals) -> None:
        os.kill(self.pid, sign)

    async def say(self) -> None:
        """Let it go on from where it waits for a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.stdin.drain()


@asynccontextmanager
async def child(*arguments: str) -> AsyncGenerator[Child]:
    """A child process for the block; killed at its end, whatever it does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.store.children",
        *arguments,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
