"""Sorts what a database driver raises: is it the storage, the moment, or the one operation? And what it means for a start.

Law: only what is known to be the storage's or the moment's fault is tried again; everything else belongs to the operation.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum, auto
from typing import TypeVar, cast

from sqlalchemy.exc import DBAPIError, IntegrityError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from agent_core.store.database.place import RIGHTS
from agent_core.store.errors import CannotOpen, CannotOpenNow, Damaged, LeaseLost, StorageUnavailable, StoreError

E = TypeVar("E", bound=Exception)

_SQLITE_STORAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}
_SQLITE_ROWS = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_IOERR_READ,
    sqlite3.SQLITE_IOERR_SHORT_READ,
    sqlite3.SQLITE_IOERR_DATA,
    sqlite3.SQLITE_IOERR_CORRUPTFS,
}
"""A page that cannot be read, or makes no sense. Primary or extended codes."""
_NO_TEXT = "Could not decode to UTF-8"
"""What Python's module says of a text that is none; it has no code."""
_POSTGRES_ROWS = ("XX001", "XX002")
"""Data or an index is damaged."""
_POSTGRES_STORAGE = ("08", "25006", "28", "3D", "42501", "42703", "42P01", "42P10", "53", "55000", "57", "58", "XX")
"""Classes: connection, read-only standby, login, no such database; no right any more, no such column, table or index any more, as somebody else has
changed what is ours; no resources (disk full), a database that takes no connections just now, operator (shutdown, timeouts), system (I/O) and
internal errors."""
_ASYNCPG = "asyncpg."
"""Whose errors reach us as they are, where its connection is used without SQLAlchemy."""
_ASYNCPG_LOST = ("Interface", "InternalClient")
"""How it names what it says of a connection that is gone, or that was about to go."""
_POSTGRES_MOMENT = ("40", "55P03")
"""Serialisation failure, deadlock, lock not available: the same batch may succeed at once."""


class Blame(Enum):
    """Whose fault an error is."""

    STORAGE = auto()
    """The database is away, full or broken: reopen, then repeat."""
    ROWS = auto()
    """What this operation touches is damaged; others may touch sound pages. Reopen, repeat once, then it is this operation's."""
    MOMENT = auto()
    """Another node was quicker: read the facts again and repeat."""
    OPERATION = auto()
    """The database can do it, but not this."""


def blame(error: Exception) -> Blame:
    """Whose fault `error` is, raised by a statement or a commit."""
    if isinstance(error, IntegrityError):
        # The facts were read in the same transaction, so a broken key means that another node wrote in between.
        return Blame.MOMENT
    if isinstance(error, PendingRollbackError):
        return Blame.STORAGE  # the connection was found to be gone before, by somebody who could not say so
    if isinstance(error, DBAPIError):
        if error.connection_invalidated:
            return Blame.STORAGE
        return _of_driver(error.orig)
    if isinstance(error, sqlite3.Error):
        return _of_driver(error)
    if isinstance(error, OSError | PoolTimeout | TimeoutError):
        return Blame.STORAGE
    if type(error).__module__.startswith(_ASYNCPG):
        return Blame.MOMENT if str(getattr(error, "sqlstate", "")).startswith("23") else _of_driver(error)
    return Blame.OPERATION


def _of_driver(orig: BaseException | None) -> Blame:
    if isinstance(orig, sqlite3.Error):
        code = getattr(orig, "sqlite_errorcode", None)
        if _NO_TEXT in str(orig) or (code is not None and (code in _SQLITE_ROWS or code & 0xFF in _SQLITE_ROWS)):
            return Blame.ROWS
        # Without a code the module itself complains: of a closed handle, for example.
        storage = code is not None and (code & 0xFF) in _SQLITE_STORAGE
        return Blame.STORAGE if storage else Blame.OPERATION
    state = getattr(orig, "sqlstate", None)
    if isinstance(state, str):
        if state in _POSTGRES_ROWS:
            return Blame.ROWS
        if state.startswith(_POSTGRES_STORAGE):
            return Blame.STORAGE
        return Blame.MOMENT if state.startswith(_POSTGRES_MOMENT) else Blame.OPERATION
    # asyncpg reports a lost connection as an InterfaceError or ConnectionError without a state.
    cause = orig.__cause__ if orig is not None else None
    lost = isinstance(cause, OSError) or any(name in type(orig).__name__ for name in _ASYNCPG_LOST)
    return Blame.STORAGE if lost else Blame.OPERATION


def for_want_of_room(error: Exception) -> bool:
    """The disk is full, or what may be used of it."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return _sqlite_code(error) == sqlite3.SQLITE_FULL or _postgres_state(error) == "53100"


def in_words(error: Exception) -> str:
    """The driver's own words without SQL, parameters or addresses with passwords: one line."""
    if isinstance(error, PendingRollbackError):
        return "the connection was lost"  # the library's words are meant for whoever wrote the program
    orig = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    text = str(orig).strip().split("\n", 1)[0]
    # SQLAlchemy puts the class of asyncpg's error in front: "<class 'asyncpg.exceptions.X'>: words".
    if text.startswith("<class ") and ">: " in text:
        text = text.split(">: ", 1)[1]
    if isinstance(orig, ConnectionError) and "connection_lost()" in text:
        return "the connection was lost"  # asyncpg's words for itself
    return text[:300] or ("there was no answer in time" if isinstance(orig, TimeoutError) else type(orig).__name__)


# ---------------------------------------------------------------------- at the start

_OFTEN_FULL = "Free some space, or move the state directory (OUTSPOKEN_HOME); it starts again when there is room."
RESTORE = "Keep a copy of the file and of what lies beside it, then restore a backup: outspoken db restore."
NO_RIGHT = "42501"
"""What PostgreSQL calls it that a user may not do something."""
OWNER = (
    "Since PostgreSQL 15 only a database's owner may make tables in it. As an administrator of the server: ALTER DATABASE name OWNER TO user. "
    "If the tables are there already: REASSIGN OWNED BY whoever made them TO user, in that database."
)
_OTHER_SHAPE = (
    "Its tables are not what its schema's number says: they were changed by hand, or by a state of the program that was never a version. Nothing was changed now. "
    "Restore a backup, or give the gateway a database of its own ([storage] url)."
)
_POSTGRES_SHAPE = {"42P01", "42P07", "42701", "42703", "42710"}
"""A table, a column or an index is not there, or there already."""
_POOLED = {"08P01", "26000", "42P05"}
"""The wire's or a session's rules are not kept: a prepared statement is gone, or another one's; what a connection begins with is not understood."""
NO_POOLER = (
    "So what answers is no server, but a pooler such as PgBouncer. The gateway needs connections of its own, which hold its lock and end when it is silent: "
    "give it the address of the server itself."
)
_ANOTHER = "If it is another program's, give the gateway a database of its own ([storage] url). If it is the gateway's:"


@contextmanager
def opening(shown: str) -> Generator[None]:
    """What the database raises in the block, while a store is opened, becomes `CannotOpen` or `CannotOpenNow` in words."""
    try:
        yield
    except CannotOpen:
        raise
    except Exception as error:
        if blame(error) is Blame.OPERATION and not _by_database(error):
            raise  # a mistake of ours
        raise cannot_open(error, shown) from error


def _by_database(error: Exception) -> bool:
    """Who complains is the database, or its driver. At a start that is what somebody made of it: no rights, tables of another shape, an odd address."""
    return isinstance(error, DBAPIError | sqlite3.Error) or type(error).__module__.startswith(_ASYNCPG)


def only(error: Exception, kind: type[E]) -> E | None:
    """The error, if it is of this kind; of what several tasks raised, the first, if all are."""
    if not isinstance(error, ExceptionGroup):
        return error if isinstance(error, kind) else None
    found = [only(one, kind) for one in cast("ExceptionGroup[Exception]", error).exceptions]
    return found[0] if None not in found else None


def away_now(error: Exception) -> CannotOpenNow | None:
    """What a start met, if the same start may work later: the database went away behind its opening, or took this process for dead."""
    met = only(error, StoreError)
    if isinstance(met, StorageUnavailable):
        met = cannot_start(met)
    if isinstance(met, LeaseLost):
        return CannotOpenNow(str(met))
    return met if isinstance(met, CannotOpenNow) else None


def cannot_start(error: StorageUnavailable) -> CannotOpen:
    """What it means, for a start and for a command, that something which they need can be neither read nor written."""
    if isinstance(error, Damaged):
        return CannotOpen(f"The database is damaged. {error} outspoken db check says where. {RESTORE}")
    return CannotOpenNow(str(error))


def cannot_open(error: Exception, shown: str) -> CannotOpen:
    """Why a database cannot be opened, and what to do about it."""
    said = f"The database {shown} cannot be opened: {in_words(error)}."
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CannotOpenNow(f"{said} {_OFTEN_FULL}")
    if blame(error) is Blame.ROWS and _sqlite_code(error) != sqlite3.SQLITE_IOERR:  # a disk may read it later
        return CannotOpen(f"{said} The database is damaged. {RESTORE}")
    state = _postgres_state(error)
    match _sqlite_code(error):
        case None if isinstance(error, OSError) and error.filename is not None:  # the file system's, not the network's
            return CannotOpen(
                f"The database {shown} cannot be opened{_because(error, shown)}: {error.strerror}. {RIGHTS}"
            )
        case None if state.startswith(("28", "3D")):
            return CannotOpen(f"{said} Check the user, the password and the name of the database in its address.")
        case None if state == NO_RIGHT:
            return CannotOpen(f"{said} {OWNER}")
        case None if state in _POOLED:
            return CannotOpen(f"{said} {NO_POOLER}")
        case None if state in _POSTGRES_SHAPE:
            return CannotOpen(f"{said} {_OTHER_SHAPE}")
        case None if state and blame(error) is Blame.OPERATION:
            return CannotOpen(
                f"{said} Check which server stands at this address: it has to be PostgreSQL, 14 or newer."
            )
        case None:
            return CannotOpenNow(f"{said} Check that the server runs and can be reached.")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_NOMEM:
            return CannotOpenNow(f"{said} {_OFTEN_FULL}")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED | sqlite3.SQLITE_PROTOCOL:
            return CannotOpenNow(f"{said} Another program has it open: stop that, or wait until it is done.")
        case sqlite3.SQLITE_IOERR:
            return CannotOpenNow(f"{said} The disk has trouble, or is full. {_OFTEN_FULL}")
        case sqlite3.SQLITE_ERROR:
            return CannotOpen(f"{said} {_OTHER_SHAPE}")
        case sqlite3.SQLITE_NOTADB:
            return CannotOpen(f"{said} It is another kind of file, or its first page is damaged. {_ANOTHER} {RESTORE}")
        case _:
            return CannotOpen(f"{said} {RIGHTS}")


def _because(error: OSError, shown: str) -> str:
    """It may be a file beside it that cannot be opened: its lock."""
    return "" if str(error.filename) == shown else f", because {error.filename} cannot be"


def extended_code(error: BaseException | None) -> int | None:
    """SQLite's extended result code; None if it is not SQLite that complains, or it has no code."""
    orig = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(orig, "sqlite_errorcode", None)
    return code if isinstance(orig, sqlite3.Error) and isinstance(code, int) else None


def _postgres_state(error: BaseException | None) -> str:
    """PostgreSQL's SQLSTATE; empty if it is not PostgreSQL that complains."""
    orig = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(orig, "sqlstate", None)
    return state if isinstance(state, str) else ""


def _sqlite_code(error: BaseException | None) -> int | None:
    """SQLite's primary result code; None if it is not SQLite that complains."""
    orig = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(orig, sqlite3.Error):
        return None
    code = getattr(orig, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else sqlite3.SQLITE_ERROR
