"""What a turn asks of the kernel: its calls, and the bytes that it writes into each file, counted by `strace` on a real daemon.

All bytes are counted: the log of the database, what a checkpoint copies from it into the file, and the daemon's own log. Enough turns are
asked that the log is copied several times.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.cases import Bench, Figure
from tests.bench.load import ask

TURNS = 300
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((?:(\d+)<([^>]*)>)?.*?(?: = (-?\d+))?[^=]*$")
_RESUMED = re.compile(r"^(?:\d+ +)?<\.\.\. (\w+) resumed>.* = (-?\d+)[^=]*$")
_WRITING = frozenset({"write", "pwrite64", "writev", "pwritev"})


@dataclass(slots=True)
class Asked:
    """What was asked of the kernel."""

    calls: Counter[str] = field(default_factory=Counter[str])
    written: Counter[str] = field(default_factory=Counter[str])
    """Bytes, by what kind of file."""


def kind_of(path: str) -> str:
    """What a file is; empty if nothing is kept in it."""
    for end, kind in ((".db", "database"), (".db-wal", "database's log"), (".db-shm", ""), (".log", "log")):
        if path.endswith(end):
            return kind
    return "other files" if path.startswith("/") and not path.startswith(("/dev", "/proc")) else ""


def read(lines: list[str]) -> Asked:
    """What `strace -f -y` wrote. Pure. A call that another thread interrupts counts once, where it begins."""
    found = Asked()
    for line in lines:
        call = _CALL.match(line)
        if call is None or _RESUMED.match(line):
            continue
        name, _, path, result = call.groups()
        found.calls[name] += 1
        if name in _WRITING and path and (kind := kind_of(path)):
            asked = re.search(r", (\d+)(?:, \d+)?(?: <unfinished|\) )", line)
            size = int(result) if result and int(result) >= 0 else int(asked[1]) if asked else 0
            found.written[kind] += size
    return found


async def kernel(bench: Bench) -> list[Figure]:
    """Calls and bytes of a plain turn."""
    if shutil.which("strace") is None:
        return []
    out = bench.home / "strace"
    for _ in range(5):
        await ask(bench.gateway.port, "bench tokens=1", stream=False)
    child = subprocess.Popen(
        ["strace", "-f", "-y", "-s", "0", "-o", str(out), "-p", str(bench.gateway.pid)], stderr=subprocess.DEVNULL
    )
    try:
        await asyncio.sleep(1)
        for _ in range(TURNS):
            await ask(bench.gateway.port, "bench tokens=1", stream=False)
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(20)
    found = await asyncio.to_thread(_read_file, out)
    figures = [
        Figure("plain turn: written in all", sum(found.written.values()) / TURNS / 1024, "KiB", limit=16),
        Figure("plain turn: calls of the kernel", sum(found.calls.values()) / TURNS, "", limit=150),
    ]
    figures += [Figure(f"… written, {kind}", size / TURNS / 1024, "KiB") for kind, size in found.written.most_common()]
    figures += [Figure(f"… calls, {name}", times / TURNS, "") for name, times in found.calls.most_common(12)]
    return figures


def _read_file(out: Path) -> Asked:
    return read(out.read_text(errors="replace").splitlines())
