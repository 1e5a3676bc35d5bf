"""A database that is not there, or is empty, beside what belongs to one: somebody has removed it, or a disk is not mounted.

Law: a new database is never begun without a word where an old one must have been. (It is begun: whoever moved the rest on purpose may.)
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_core.store.database.place import SqlitePlace, parse_place
from gateway.config.paths import Paths
from gateway.config.sections import Config

BESIDE = ("-wal", ".before-*")


def leftovers(config: Config, paths: Paths) -> str:
    """What of an earlier database is there while the database itself is missing or empty, in words; empty if nothing is wrong."""
    place = parse_place(config.storage.url or paths.database)
    if not isinstance(place, SqlitePlace) or _size(place.path):
        return ""
    folders = (
        (config.tools.workspace or paths.workspaces, "workspaces"),
        (config.spool(paths), "files on their way"),
    )
    found = [f"{what} in {folder}" for folder, what in folders if _holds_something(folder)]
    name = place.path.name
    found += sorted(str(one) for end in BESIDE for one in place.path.parent.glob(f"{name}{end}") if _size(one))
    return ", ".join(found)


def words_of(database: str, found: str) -> str:
    """What operators are told when a database is begun anew beside them."""
    return (
        f"The database {database} was missing or empty at the start, and a new one was begun, although there are {found} of an earlier one. If "
        "that was not meant: stop the gateway, see whether its disk is mounted, and put the database or a backup back (outspoken db restore)."
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _holds_something(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
