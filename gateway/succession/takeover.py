"""Asks the process that has a SQLite database to end at once: `outspoken run --takeover`.

Theory. Told to stop twice, a gateway leaves its open turns to the next one, which goes on with them. So a new version follows an old one without a
pause that anybody sees. A process that does not end is killed, which loses nothing either; a lock is never taken from one that lives.

Laws: no process is touched that does not have the database open, whatever number its lock file holds (it may be another container's).
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import structlog

from agent_core.store.database.ownership import lock_path
from agent_core.store.errors import AlreadyRunning

log = structlog.get_logger("gateway")

PATIENCE_SECONDS = 8.0
"""Then it hangs, or is suspended, and is killed."""
PROC = Path("/proc")


class Takeover:
    """Asked step by step while another process has the database."""

    def __init__(self, database: Path) -> None:
        self._file = lock_path(database)
        self._process, self._told, self._since = 0, 0, 0.0

    def step(self, taken: AlreadyRunning) -> None:
        """Have it end: the first time in order, then in a hurry, at last by force. Raises `taken` if its process is not to be found here."""
        process = taken.pid or self._process  # one that is about to end has taken its number out of the file
        if not process or not has_open(process, self._file):
            if process and process == self._process:
                return  # it has just ended
            raise taken
        if process != self._process:
            log.info("gateway.taking_over", process=process)
            self._process, self._told, self._since = process, 0, time.monotonic()
        if self._told < 2:  # signals of one kind that come at the same time are one
            self._told += 1
            _send(process, signal.SIGTERM, taken)
        elif time.monotonic() - self._since > PATIENCE_SECONDS:
            log.warning("gateway.predecessor_killed", process=process)
            _send(process, signal.SIGKILL, taken)


def _send(process: int, number: signal.Signals, taken: AlreadyRunning) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError as error:
        raise AlreadyRunning(f"{taken} It runs as another user, so it cannot be ended from here.", process) from error


def has_open(process: int, file: Path, proc: Path = PROC) -> bool:
    """Whether a process of this machine, as seen from here, has the file open. Where nobody can tell (no /proc), its number is believed."""
    if not proc.is_dir():
        return True
    try:
        wanted = file.stat()
        handles = list((proc / str(process) / "fd").iterdir())
    except OSError:
        return False
    return any(_same(link, wanted) for link in handles)


def _same(link: Path, wanted: os.stat_result) -> bool:
    try:
        found = link.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino)
