"""What can go wrong in the store, as one small tree. Every message says what happened, where, and what to do.

No message ever holds a password: places are named by `Place.shown`.
"""

from __future__ import annotations


class StoreError(Exception):
    """Base of all errors of the store."""


class Fenced(StoreError):
    """Somebody else's writing counts now: the session has another owner or epoch, or a row differs from the one given.

    The caller must drop what it holds of the session. Repeating the call cannot help.
    """


class Conflict(StoreError):
    """The caller owns the session but is wrong about its state (turn closed, message taken, a hole in the journal)."""


class OwnedElsewhere(StoreError):
    """The session belongs to another node that lives; the work must go there."""

    def __init__(self, session: str, node: int) -> None:
        super().__init__(f"Session {session} belongs to node {node}, which is alive. Let that node run it.")
        self.session = session
        self.node = node


class NoRoomToday(StoreError):
    """A day's count has no room for this message; nothing was stored."""

    def __init__(self, scope: str, used: int, limit: int, adding: int) -> None:
        super().__init__(f"{used} of {limit} are used of {scope}, and {adding} more have no room.")
        self.scope = scope
        self.used = used
        self.limit = limit
        self.adding = adding


class LeaseLost(StoreError):
    """This node's liveness lock is lost: it may claim nothing and send nothing any more; open the store anew."""


class Rejected(StoreError):
    """The database refused this one operation (a value that it cannot hold, a broken rule). Others were not touched."""


class StorageUnavailable(StoreError):
    """The database cannot be reached, read or written; nothing of the operation may be acknowledged.

    Whether the operation was stored is not known. It may be repeated with the same keys.
    """


class StorageFull(StorageUnavailable):
    """There is no room for it."""


class Damaged(StorageUnavailable):
    """The database answers, but these very rows can be neither read nor written, however often that is tried. Others can."""

    def __init__(self, message: str, *, writing: bool = False) -> None:
        super().__init__(message)
        self.writing = writing
        """It was met while something new was to be written."""


class CannotOpen(StoreError):
    """The store cannot be opened as things are; a person has to change something."""


class CannotOpenNow(CannotOpen):
    """The store cannot be opened at this moment (full disk, server away); the same start may work later."""


class StoppedWaiting(CannotOpen):
    """It was told to stop while it waited for the process that has the database."""


class DatabaseTooNew(CannotOpen):
    """The database was written by a newer program than this one."""


class NotOurDatabase(CannotOpen):
    """The database holds tables, and they are not ours."""


class AlreadyRunning(CannotOpenNow):
    """Another process has this database open for writing."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid
        """Process id of the holder, where its lock file tells it."""
