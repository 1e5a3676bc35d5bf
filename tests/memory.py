"""What tests write lies in memory: it is nobody's tomorrow, and a file on a disk costs a processor several times as much. And how seldom the memory
of those who run them is looked through."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

PLACE = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""Many times what the tests need that run at one time."""
OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""With the interpreter's 700, the collector takes a twentieth of the processor time of collecting and running tests."""


def roomy() -> Path | None:
    """Where there is much of it; None where a container has the usual 64 MB, or the system has no such thing."""
    there = PLACE.is_dir() and os.access(PLACE, os.W_OK)
    return PLACE if there and shutil.disk_usage(PLACE).free > ROOM_BYTES else None


def runs_programs(folder: Path) -> bool:
    """Whether what lies there can be started: containers often mount it so that it cannot."""
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC
