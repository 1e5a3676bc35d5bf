"""Copies of a SQLite database that are whole, and putting one back.

Laws: a copy appears under its name only once it is complete, synced and looked at, and never in place of another file; what is replaced
is kept beside it; a copy that is put back is changed under another name first, so that there is no moment at which half of it is there.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from math import ceil
from pathlib import Path
from urllib.parse import quote

from agent_core.records import dataclass
from agent_core.store.database.ownership import lock_path
from agent_core.store.database.shape import not_whole

PAGES_AT_ONCE = 2_000
"""So much is copied under one lock; the gateway writes in between."""
ROOM_SHARE = 1.1
"""So much more room than the database has there must be."""
PART, RESTORING = ".part", ".restoring"
COMPANIONS = ("-wal", "-shm")


class CannotCopy(Exception):
    """A backup cannot be made or put back; the words say why and what to do."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A backup that was made."""

    to: Path
    size: int


def back_up(database: Path, to: Path) -> Copied:
    """Copy a database that may be in use. Raises `CannotCopy`."""
    must_be_apart(to, database)
    if to.exists() or to.is_symlink():
        raise CannotCopy(f"{to} is there already, and is not overwritten. Name another file.")
    if not database.is_file():
        raise CannotCopy(f"There is no database at {database}.")
    part = to.with_name(f".{to.name}{PART}")
    try:
        needed = sum(_size(Path(f"{database}{end}")) for end in ("", "-wal"))
        free = shutil.disk_usage(to.parent).free
        if free < needed * ROOM_SHARE:
            raise CannotCopy(
                f"There is not enough room in {to.parent}: {ceil(needed * ROOM_SHARE / 2**20)} MiB are needed, {free >> 20} MiB are free."
            )
        _copy(database, part)
        _verify(part)
        _must_be_whole(part, database)
        _sync(part)
        os.link(part, to)  # refuses if somebody else made it meanwhile
        _sync(to.parent)
    except FileExistsError:
        raise CannotCopy(f"{to} is there already, and is not overwritten. Name another file.") from None
    except (sqlite3.Error, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotCopy(f"The backup could not be written to {to}: {why}. Nothing of it is left there.") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return Copied(to, _size(to))


def must_be_apart(copy: Path, database: Path) -> None:
    """A backup is neither the database itself, by whatever name, nor a file that belongs to it. Raises `CannotCopy`."""
    if _same(copy, database):
        raise CannotCopy(f"{copy} is the database that the gateway uses itself, not a backup of it. Name another file.")
    beside = _same(copy.parent, database.parent)
    for file in (lock_path(database), *(Path(f"{database}{end}") for end in (*COMPANIONS, "-journal"))):
        if _same(copy, file) or (beside and copy.name == file.name):
            raise CannotCopy(f"{copy} belongs to the database that the gateway uses. Name another file.")
    if copy.name.startswith(".") and copy.name.endswith((PART, RESTORING)):
        raise CannotCopy(f"{copy} is what a backup or a restore is called until it is complete. Name another file.")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False  # one of them is not there, or may not be looked at: whoever opens it says so


def put_back(
    backup: Path,
    database: Path,
    kept: Path,
    upgrade: Callable[[Path], None],
    settle: Callable[[sqlite3.Connection], None],
) -> None:
    """Put a copy of `backup` in the place of `database`, which is kept as `kept`.

    The copy is brought to the newest schema by `upgrade`, and `settle` changes it, before it is seen.

    Nobody may have the database open. Raises `CannotCopy`; then everything is as it was.
    """
    part = database.with_name(f".{database.name}{RESTORING}")
    try:
        _copy(backup, part)
        upgrade(part)
        with closing(sqlite3.connect(part, isolation_level=None)) as conn:
            conn.execute("BEGIN IMMEDIATE")
            settle(conn)
            conn.execute("COMMIT")
        _verify(part)
        _sync(part)
        _swap(part, database, kept)
    except (sqlite3.Error, OSError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotCopy(f"The backup could not be put back: {why}. The database is as it was.") from error
    finally:
        for end in ("", *COMPANIONS, "-journal"):
            with suppress(OSError):
                Path(f"{part}{end}").unlink()


def _swap(part: Path, database: Path, kept: Path) -> None:
    """The log is moved first and comes back first: a database never has a log that is not its own."""
    moved: list[tuple[Path, Path]] = []
    try:
        for end in (*COMPANIONS, ""):
            here, there = Path(f"{database}{end}"), Path(f"{kept}{end}")
            if here.exists():
                here.rename(there)
                moved.append((here, there))
        part.rename(database)
        _sync(database.parent)
    except OSError:
        for here, there in reversed(moved):
            there.rename(here)
        raise


def _copy(source: Path, to: Path) -> None:
    with suppress(FileNotFoundError):
        to.unlink()
    os.close(os.open(to, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with (
        closing(sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True, timeout=20)) as reading,
        closing(sqlite3.connect(to)) as writing,
    ):
        reading.backup(writing, pages=PAGES_AT_ONCE)
        writing.execute("PRAGMA journal_mode = DELETE")  # the copy is one file, also when it is looked at


def _verify(copy: Path) -> None:
    with closing(sqlite3.connect(f"file:{quote(str(copy))}?mode=ro&immutable=1", uri=True)) as conn:
        (first,) = conn.execute("PRAGMA quick_check(1)").fetchone()
    if first != "ok":
        raise CannotCopy(
            f"The copy is damaged, so it is not kept: {str(first).splitlines()[-1]}. Run outspoken db check on the original."
        )


def _must_be_whole(copy: Path, database: Path) -> None:
    if why := not_whole(copy):
        raise CannotCopy(
            f"The copy of {database} is not whole: {why}. It is not kept. If a gateway runs, its log ({database}-wal) may have been removed or "
            "replaced: it notices that within seconds, and saves what it can. Try again then; outspoken status says how it is."
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
