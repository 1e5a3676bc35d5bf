"""Processes that are measured: starting them on one core, and reading from the kernel what they used (Linux)."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MEASURED_CORE = 0
OTHER_CORE = (os.cpu_count() or 1) - 1


_ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""An installed program has its bytecode; where this is set, every start from a source folder compiles four hundred files."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A running process."""

    pid: int
    port: int
    ready_seconds: float

    def cpu_seconds(self) -> float:
        """CPU time of all its threads so far, also of those that are over: the process's own clock of the kernel."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def resident_mib(self) -> float:
        """Resident memory, MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise ProcessLookupError(f"process {self.pid} is gone")


@contextmanager
def process(
    arguments: Sequence[str],
    port: int,
    env: Mapping[str, str] | None = None,
    *,
    core: int = MEASURED_CORE,
    log: Path,
    python: str | Path = "",
    ready_seconds: float = 120.0,
) -> Generator[Measured]:
    """Run ``python ARGUMENTS`` on one core until the block ends; ready as soon as its port answers.

    `python`, or else the variable ``BENCH_PYTHON``, names another Python, for instance one of an environment of the lock alone.
    """
    began = time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(
            [str(python) or os.environ.get("BENCH_PYTHON", sys.executable), *arguments],
            env={**_ENVIRON, **(env or {})},
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
        )
    os.sched_setaffinity(child.pid, {core})
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=0.2).close()
                break
            except OSError:
                if child.poll() is not None or time.monotonic() - began > ready_seconds:
                    raise RuntimeError(f"{arguments[0]} did not start:\n{log.read_text()[-2000:]}") from None
                time.sleep(0.01)
        yield Measured(child.pid, port, time.monotonic() - began)
    finally:
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


async def settle(seconds: float = 0.5) -> None:
    """Let background work of the measured process end before it is measured."""
    await asyncio.sleep(seconds)
