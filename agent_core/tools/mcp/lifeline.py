"""Sees to it that no server outlives the gateway, however the gateway ends.

A server is a group of processes of its own (a launcher such as `npx` or `uvx`, and what it starts). The gateway ends the group when it goes; killed
outright it cannot. So one small process holds the other end of a pipe, is told of each group, and ends those that are left when the pipe
breaks. It is begun with the first server.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import structlog

log = structlog.get_logger("mcp")

END_SECONDS = 2.0
_GUARD = """
import os, signal, sys, time
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for number in (signal.SIGTERM, signal.SIGKILL):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            groups.discard(group)
        except PermissionError:
            pass
    if groups and number == signal.SIGTERM:
        time.sleep(1)
"""


class Lifeline:
    """The process that holds on."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Its process; None if there is none."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def ready(self) -> None:
        """Before a server is begun. Raises `OSError` if no process can be made."""
        async with self._starting:
            if self.pid is not None:
                return
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-c", _GUARD,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
                env={}, cwd="/", start_new_session=True,
            )  # fmt: skip
            for group in self._groups:
                self._tell(f"+{group}\n")

    def hold(self, group: int) -> None:
        """This group goes with the gateway."""
        self._groups.add(group)
        self._tell(f"+{group}\n")

    def let_go(self, group: int) -> None:
        """It is over."""
        self._groups.discard(group)
        self._tell(f"-{group}\n")

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None and self.pid is not None:
            with suppress(OSError, RuntimeError):
                self._process.stdin.write(line.encode())

    async def aclose(self) -> None:
        """The servers are over; it ends by itself."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            log.warning("mcp.guard_late", pid=process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
