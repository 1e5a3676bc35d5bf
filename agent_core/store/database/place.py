"""Where a database is: reads a path or a URL into a `Place`, and names places without their passwords.

Laws: `Place.shown` and the repr never hold a password; whatever form is given, the driver is spelt out (aiosqlite or asyncpg).
"""

from __future__ import annotations

import stat
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from agent_core.records import dataclass
from agent_core.store.errors import CannotOpen

RIGHTS = "Check that this user may read and write the file and its folder, and that the file system is not mounted read-only."
_BESIDE = {
    "-wal": "if the file that was there is somewhere else, put it back: it is the database's log, and holds what was stored last.",
    "-shm": "it belongs to the database's log, and is made anew.",
}
_SQLITE = {"sqlite", "sqlite+aiosqlite", "sqlite+pysqlite"}
_OPTIONS = ("host", "port", "user", "password", "sslmode", "target_session_attrs", "passfile", "krbsrvname", "gsslib")
"""What may stand behind the ? of a PostgreSQL address: of what the driver takes, that which is text."""
_POSTGRES = {"postgres", "postgresql", "postgresql+asyncpg"}


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """A file on this machine."""

    path: Path
    """Absolute."""

    @property
    def shown(self) -> str:
        return str(self.path)

    def there(self) -> bool:
        """Whether something is there that can be opened as a database. Raises `CannotOpen` if it, its log or the log's index is what SQLite
        would wait for, for ever, or cannot use; or if it is a link that leads nowhere."""
        for end, what in _BESIDE.items():
            no_file(self.path, end, f"Move it away; {what}")
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self.path.is_symlink():
                raise CannotOpen(
                    f"The database {self.path} is a link to {self.path.readlink()}, and nothing is there. Mount or put back what it leads "
                    "to, or remove the link."
                ) from None
            return False
        except OSError as error:
            raise CannotOpen(f"The database {self.path} cannot be opened: {error.strerror}. {RIGHTS}") from error
        if not stat.S_ISREG(found.st_mode):
            raise CannotOpen(
                f"The database {self.path} cannot be opened: it is {_kind(found.st_mode)}. Name a file, or a path where none is yet."
            )
        return True


@dataclass(frozen=True, slots=True)
class PostgresPlace:
    """A database of a PostgreSQL server."""

    url: URL = field(repr=False)
    shown: str = ""


Place: TypeAlias = SqlitePlace | PostgresPlace


def no_file(database: Path, end: str, remedy: str) -> None:
    """Raises `CannotOpen` if what belongs to a database under that ending is there, and is no file."""
    path = Path(f"{database}{end}")
    with suppress(OSError):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise CannotOpen(f"The database {database} cannot be opened: {path} is {_kind(mode)}. {remedy}")


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_it, name in kinds if is_it(mode)), "a device")


def parse_place(where: str | Path) -> Place:
    """The place that a path or URL names. Raises `CannotOpen` in words, without repeating what may hold a password."""
    if isinstance(where, Path) or "://" not in where:
        return _sqlite(str(where))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):  # the second: its port is no number
        raise CannotOpen(
            "The database URL cannot be read. It should look like postgresql://user@host/name or be a path."
        ) from None
    if url.drivername in _SQLITE:
        if url.query:
            raise CannotOpen(
                f"The database URL of {url.database} has options after '?', and SQLite takes none. Remove them."
            )
        return _sqlite(url.database or "")
    if url.drivername in _POSTGRES:
        return _postgres(url)
    raise CannotOpen(
        f"'{url.drivername}' is no database that can be used here. Give a path (SQLite) or postgresql://…."
    )


def misread(where: str) -> str:
    """Why an address names no place, in words; empty if it does."""
    try:
        parse_place(where)
    except CannotOpen as error:
        return str(error)
    return ""


def _sqlite(path: str) -> SqlitePlace:
    if path in {"", ":memory:"} or path.startswith("file:"):
        raise CannotOpen(
            "The SQLite database must be a plain file, because what is accepted must survive. Give a path."
        )
    return SqlitePlace(Path(path).expanduser().absolute())


def _postgres(url: URL) -> PostgresPlace:
    query = dict(url.query)
    if odd := sorted(query.keys() - {*_OPTIONS, "ssl"}):
        raise CannotOpen(
            f"The database URL has options that are not known here: {', '.join(odd)}. After '?' there may be {', '.join(_OPTIONS)}. "
            "Certificates are named by the environment: PGSSLROOTCERT, PGSSLCERT, PGSSLKEY."
        )
    sslmode = query.pop("sslmode", None)
    if sslmode is not None and "ssl" not in query:
        query["ssl"] = sslmode  # libpq's name for what asyncpg calls ssl
    full = url.set(drivername="postgresql+asyncpg", query=query)
    shown = URL.create(
        "postgresql",
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query={name: value for name, value in query.items() if name in {"host", "port"}},
    )
    return PostgresPlace(full, shown.render_as_string())
