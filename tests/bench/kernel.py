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
from collections.abc import Iterable

from tests.bench.cases import Bench, Figure
from tests.bench.load import ask

TURNS = 300
_WRITING = ("write", "pwrite64", "writev", "pwritev")
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\((?:(\d+)<([^>]*)>)?.*?(?: = (-?\d+))?[^=]*$")
_RESUMED = re.compile(r"^(?:\d+ +)?<\.\.\. (\w+) resumed>.* = (-?\d+)[^=]*$")
_COUNTED = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$")


def kind_of(path: str) -> str:
    """What a file is; empty if nothing is kept in it."""
    for end, kind in ((".db", "database"), (".db-wal", "database's log"), (".db-shm", ""), (".log", "log")):
        if path.endswith(end):
            return kind
    return "other files" if path.startswith("/") and not path.startswith(("/dev", "/proc")) else ""


def written(lines: Iterable[str]) -> Counter[str]:
    """Bytes by what kind of file, as `strace -f -y` tells them. Pure. A call that another thread interrupts counts once, where it begins."""
    found: Counter[str] = Counter()
    for line in lines:
        call = _CALL.match(line)
        if call is None or _RESUMED.match(line):
            continue
        name, _, path, result = call.groups()
        if name in _WRITING and path and (kind := kind_of(path)):
            asked = re.search(r", (\d+)(?:, \d+)?(?: <unfinished|\) )", line)
            found[kind] += int(result) if result and int(result) >= 0 else int(asked[1]) if asked else 0
    return found


def counted(lines: Iterable[str]) -> Counter[str]:
    """Calls by their names, as `strace -c` sums them up. Pure."""
    found = (_COUNTED.match(line.rstrip()) for line in lines)
    return Counter({one[2]: int(one[1]) for one in found if one is not None and one[2] != "total"})


async def kernel(bench: Bench) -> list[Figure]:
    """Calls and bytes of a plain turn, each with turns of its own: who tells of each call slows it so much that threads wait for each other."""
    if shutil.which("strace") is None:
        return []
    for _ in range(5):
        await ask(bench.gateway.port, "bench tokens=1", stream=False)
    bytes_ = written(await _traced(bench, "-y", "-s", "0", "-e", f"trace={','.join(_WRITING)}"))
    calls = counted(await _traced(bench, "-c"))
    figures = [
        Figure("plain turn: written in all", sum(bytes_.values()) / TURNS / 1024, "KiB", limit=16),
        Figure("plain turn: calls of the kernel", sum(calls.values()) / TURNS, "", limit=150),
    ]
    figures += [Figure(f"… written, {kind}", size / TURNS / 1024, "KiB") for kind, size in bytes_.most_common()]
    figures += [Figure(f"… calls, {name}", times / TURNS, "") for name, times in calls.most_common(12)]
    return figures


async def _traced(bench: Bench, *how: str) -> list[str]:
    """What strace says of some turns."""
    out = bench.home / "strace"
    child = subprocess.Popen(
        ["strace", "-f", *how, "-o", str(out), "-p", str(bench.gateway.pid)], stderr=subprocess.DEVNULL
    )
    try:
        await asyncio.sleep(1)
        for _ in range(TURNS):
            await ask(bench.gateway.port, "bench tokens=1", stream=False)
    finally:
        child.send_signal(signal.SIGINT)
        child.wait(20)
    return (await asyncio.to_thread(out.read_text, "utf-8", "replace")).splitlines()
