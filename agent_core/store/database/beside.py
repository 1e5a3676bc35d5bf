"""What lies where a SQLite database is: its file, its log and the log's index, and whether they are still those that this process writes.

Theory. SQLite writes into the files that it has opened, whatever becomes of their names. A log that was removed, or replaced, is written on
and read by nobody after this process: all that it acknowledges is gone with it. So before each transaction the names are looked at. Of a log
that was taken away this process still has the content, and can copy all of it into the file (`lines.SqliteLine`). Of one that was cut it has
not; then nothing is written or copied any more, because the next process reads what is whole of it, and a copy of half of it would be damage.

Laws (tests/store/test_beside.py): only this process makes the log smaller, and notes how large it is afterwards; so one that is smaller than
noted was cut (or emptied, of which SQLite knows whether anything is lost), and one that has another number was put there by somebody else.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from itertools import count
from pathlib import Path
from typing import TypeAlias

from agent_core.records import dataclass

LOG, INDEX = "-wal", "-shm"
COMPANIONS = (LOG, INDEX)
File: TypeAlias = tuple[int, int]
"""Which file it is, whatever it is called: device and number."""
REMOVED = "the file was removed while the gateway was running; put it back, or restart it"
REPLACED = "another file was put in its place while the gateway was running; restart it"
LOG_CUT = (
    "its log ({log}) was cut while the gateway was running, and what stood behind the cut cannot be read any more; nothing is written until "
    "it is restarted: then all that is whole is read"
)
NOT_SAVED = "its log ({log}) was removed or replaced while the gateway was running, and could not be copied into the file yet: {why}"


class FileState(Enum):
    """How what lies there stands to what was noted."""

    SAME = auto()
    TAKEN = auto()
    """The log was removed, or is another one."""
    UNINDEXED = auto()
    """Only the log's index was: other programs do not see what is read and written here."""
    EMPTIED = auto()
    """The log holds nothing any more: another program has copied it into the file, as SQLite's own tools do, or somebody has cut it."""
    CUT = auto()
    """The log is smaller than it was."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The log and its index, as they were found."""

    log: File | None = None
    size: int = 0
    """Of the log."""
    index: File | None = None


def companion(database: Path, end: str) -> Path:
    """Where the log or its index is."""
    return Path(f"{database}{end}")


def beside(database: Path | str) -> Beside:
    """What lies there now. Raises OSError if that cannot be found out."""
    try:
        file, index = os.stat(f"{database}{LOG}"), os.stat(f"{database}{INDEX}")  # noqa: PTH116 - twice each commit, so without making a `Path`
    except FileNotFoundError:
        return Beside(*_file(f"{database}{LOG}"), _file(f"{database}{INDEX}")[0])
    return Beside((file.st_dev, file.st_ino), file.st_size, (index.st_dev, index.st_ino))


def log_alone(database: Path | str) -> Beside:
    """The same of the log alone. Raises OSError if that cannot be found out."""
    return Beside(*_file(f"{database}{LOG}"))


def judged(noted: Beside | None, now: Beside) -> FileState:
    """How it stands. `noted` is None before the first transaction on a handle. Pure."""
    if noted is None:
        return FileState.SAME
    if now.log is None or now.log != noted.log:
        return FileState.TAKEN
    if now.size < noted.size:
        return FileState.CUT if now.size else FileState.EMPTIED
    return FileState.SAME if now.index is not None and now.index == noted.index else FileState.UNINDEXED


def after(noted: Beside | None, now: Beside) -> Beside:
    """What is to be noted behind a transaction of ours: which files they are stays as first seen, how large the log is does not. Pure."""
    if noted is None:
        return now
    return Beside(noted.log, now.size if now.log == noted.log else noted.size, noted.index)


def clear(path: Path) -> None:
    """Nothing is called that any more. A directory may hold something of somebody's: it is moved aside. Raises OSError."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    taken = (Path(f"{path}.moved-away-{number}") for number in count(1))
    path.rename(next(one for one in taken if not os.path.lexists(one)))


def _file(path: str) -> tuple[File | None, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size
