"""Brings a database to the schema of this program, or says why that must not be done.

At start the revision is read by plain SQL; alembic (0.2 s, 11 MiB) is imported only when there is something to upgrade. An empty SQLite file
gets the newest tables as they stand in `tables`.

Theory. What a migration adds need not disturb the program before it: that one writes rows without the new columns, and reads none of the new tables. So a
database says itself which is the oldest revision that may use it (`min_version`), and an older program that finds a newer schema looks there.
Versions can so run beside each other while one follows the other, and one can go back.

Laws: a database of a newer program is used only if it says that it may be, and its schema stays; somebody else's is never touched; an existing SQLite file is copied beside itself
before it is changed; an upgrade is one transaction, and on PostgreSQL one node at a time does it, and takes nothing away under older ones that serve. What the migrations make of nothing is what
stands in `tables` (tests/store/test_upgrade.py).
"""

from __future__ import annotations

from pathlib import Path

import structlog
from sqlalchemy import Connection

from agent_core.store.database.lines import Line, SqliteLine
from agent_core.store.database.ownership import SERVING
from agent_core.store.database.place import Place, SqlitePlace
from agent_core.store.database.trouble import Blame, blame, in_words, opening
from agent_core.store.database.writer import MOMENT_TRIES
from agent_core.store.errors import AlreadyRunning, DatabaseTooNew, NotOurDatabase
from migrations import MIN_REVISION, REVISIONS

log = structlog.get_logger("storage")

NEWEST = REVISIONS[-1]
UPGRADE_LOCK = 0x6F757473_00000000 - 1
"""Advisory lock on PostgreSQL: just below the numbers of nodes, of which 0 is whoever serves, who holds that one while it upgrades."""


async def ensure_schema(line: Line, place: Place) -> bool:
    """Make sure that the schema is `NEWEST`; True if it had to be changed. Raises CannotOpen, DatabaseTooNew, NotOurDatabase."""
    with opening(place.shown):
        await line.open()
        found = await line.transact(lambda conn: known_revision(conn, place.shown))
        if found == NEWEST:
            return False
        if isinstance(line, SqliteLine) and isinstance(place, SqlitePlace):
            if await line.transact(_made_of_nothing):
                return True
            await line.backup(backup_path(place.path, found))
        await _upgraded(line, place.shown)
        return True


async def _upgraded(line: Line, shown: str) -> None:
    """Begun anew where it and a gateway that serves wait for each other's rows, and PostgreSQL ends one of the two; and where a server has ended our connection,
    as we were silent for too long. Nothing was changed then, or all of it, which is seen."""
    tried = 0
    while True:
        tried += 1
        try:
            await line.at_length(lambda conn: upgrade_to(conn, shown))
        except Exception as error:
            fault = blame(error)
            lost = fault is Blame.STORAGE and not isinstance(line, SqliteLine)
            if not (lost or fault is Blame.MOMENT) or tried == MOMENT_TRIES:
                raise
            if lost:
                log.warning("storage.upgrade_again", database=shown, error=in_words(error))
                await line.reopen()
        else:
            return


def backup_path(database: Path, revision: str | None) -> Path:
    """Where the copy of a database at `revision` is put before an upgrade."""
    return database.with_name(f"{database.name}.before-upgrade-from-{revision or 'empty'}")


def known_revision(conn: Connection, shown: str) -> str | None:
    """The database's revision, None if it has none yet. Raises DatabaseTooNew and NotOurDatabase."""
    tables = _tables(conn)
    if "alembic_version" not in tables:
        if "sessions" in tables or (conn.dialect.name == "sqlite" and tables):
            raise NotOurDatabase(
                f"{shown} holds tables that are not from this program ({', '.join(sorted(tables)[:5])}). "
                "Give it a database of its own."
            )
        return None
    found = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    if not found:
        return None
    unknown = [revision for revision in found if revision not in REVISIONS]
    if len(found) == 1 and unknown and _oldest(conn, tables) in REVISIONS:
        log.info("storage.newer_schema", database=shown, schema=unknown[0], known=NEWEST)
        return NEWEST  # as good as ours
    if unknown or len(found) > 1:
        raise DatabaseTooNew(
            f"The database {shown} has the schema {', '.join(found)}; the newest that this program knows is {NEWEST}, and it may not be used with that. A newer "
            "version wrote it. Install that version again, or go back to the copy that it made before its upgrade."
        )
    return found[0]


def _oldest(conn: Connection, tables: set[str]) -> str | None:
    """The oldest revision whose programs may use the database, if it says so."""
    if "min_version" not in tables:
        return None
    return conn.exec_driver_sql("SELECT revision FROM min_version").scalar()


def _say_oldest(conn: Connection) -> None:
    conn.exec_driver_sql("DELETE FROM min_version")
    conn.exec_driver_sql(f"INSERT INTO min_version VALUES ('{MIN_REVISION}')")  # noqa: S608 - a constant of ours


def _tables(conn: Connection) -> set[str]:
    if conn.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    else:
        query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
    return set(conn.exec_driver_sql(query).scalars())


def _made_of_nothing(conn: Connection) -> bool:
    """Make the newest tables where there are none; False if there are some."""
    if _tables(conn):
        return False
    from agent_core.store.tables import metadata

    metadata.create_all(conn, checkfirst=False)
    conn.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, "
        "CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    conn.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (NEWEST,))
    _say_oldest(conn)
    return True


def upgrade_to(conn: Connection, shown: str, revision: str = "head") -> None:
    """Run the migrations up to this revision, in the transaction that is open."""
    from alembic import command
    from alembic.config import Config

    import migrations

    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({UPGRADE_LOCK})")
        found = known_revision(conn, shown)
        if found == NEWEST:
            return  # another node was quicker
        if found is not None and found < MIN_REVISION and conn.execute(SERVING).scalar_one():
            raise AlreadyRunning(
                f"Gateways of an older version serve {shown}, and could not go on with the schema of this one. Stop all of them first, then start this one.",
                None,
            )
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__path__[0])).replace("%", "%%"))
    config.attributes["connection"] = conn
    command.upgrade(config, revision)
    if "min_version" in _tables(conn):
        _say_oldest(conn)
