"""Whether a database has the tables, columns and indexes that its revision says, and bringing a copy of a file to the newest.

Laws: a file without this program's tables is never called whole, by no command; what is compared with is what the migrations make at that revision, in a database of its own, so that no list is kept by hand.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Table, UniqueConstraint, create_engine, inspect
from sqlalchemy.pool import StaticPool

from agent_core.store.database.upgrade import known_revision, upgrade_to

NO_TABLES = "it holds no table at all, so nothing of this program"
NO_REVISION = "it does not say which schema it has (its table alembic_version is empty or missing)"
Shape = dict[str, frozenset[str]]
"""By table: its columns, and its indexes as ``index NAME``."""


def lacking(found: Shape, wanted: Shape) -> Sequence[str]:
    """What is missing, in words; what is there besides does no harm. Pure."""
    tables = [f"the table {name}" for name in sorted(wanted) if name not in found]
    rest = [
        f"{part if part.startswith('index ') else f'the column {part}'} of {name}"
        for name in sorted(wanted)
        if name in found
        for part in sorted(wanted[name] - found[name])
    ]
    return [*tables, *rest]


def missing_in(file: Path, revision: str) -> Sequence[str]:
    """What a database at `revision` has, and this file has not. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=20)) as conn:
        found = _shape(conn)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        _upgrade(fresh, str(file), revision)
        return lacking(found, _shape(fresh))


def not_whole(file: Path) -> str:
    """What keeps a file from being a whole database of this program, in words; empty if nothing does.

    Raises sqlite3.Error, and CannotOpen for one that is a newer program's or nobody's of ours.
    """
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=20)) as conn:
        engine = create_engine("sqlite+pysqlite://", creator=lambda: conn, poolclass=StaticPool, hide_parameters=True)
        with engine.connect() as looked:
            revision = known_revision(looked, str(file))
        empty = not _shape(conn)
    if revision is None:
        return NO_TABLES if empty else NO_REVISION
    if missing := missing_in(file, revision):
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"a database of its schema ({revision}) has {', '.join(missing[:3])}{more}, and this one has not"
    return ""


def upgrade_copy(file: Path) -> None:
    """Bring a copy that nobody else has open to the newest schema. Raises sqlite3.Error, and what a migration raises."""
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        _upgrade(conn, str(file), "head")


def _upgrade(raw: sqlite3.Connection, shown: str, revision: str) -> None:
    engine = create_engine("sqlite+pysqlite://", creator=lambda: raw, poolclass=StaticPool, hide_parameters=True)
    with engine.connect() as conn:
        conn.exec_driver_sql("BEGIN IMMEDIATE")
        upgrade_to(conn, shown, revision)
        conn.commit()


def _shape(conn: sqlite3.Connection) -> Shape:
    tables = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
    indexes = conn.execute(
        "SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%'"
    ).fetchall()
    found: Shape = {}
    for (name,) in tables:
        columns = conn.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchall()
        found[str(name)] = frozenset(str(column) for (column,) in columns)
    for table, name in indexes:
        found[str(table)] = found.get(str(table), frozenset()) | {f"index {name}"}
    return found


def not_whole_on(conn: Connection) -> str:
    """What keeps a server's database of the newest schema from being what this program works with, in words; empty if nothing does."""
    from agent_core.store.tables import metadata

    seen, found, filled = inspect(conn), dict[str, frozenset[str]](), list[str]()
    wanted = {table.name: _wanted(table) for table in metadata.sorted_tables}
    for name in wanted.keys() & set(seen.get_table_names()):
        columns = seen.get_columns(name)
        named = (*seen.get_indexes(name), *seen.get_unique_constraints(name))
        found[name] = frozenset([*(one["name"] for one in columns), *(f"index {one['name']}" for one in named)])
        filled += [
            f"the column {one['name']} of {name}, which has to be filled and which it does not know"
            for one in columns
            if one["name"] not in wanted[name]
            and not one["nullable"]
            and not _FILLS_ITSELF & {k for k, v in one.items() if v}
        ]
    triggers = [f"the trigger {one} of {name}" for one, name in conn.exec_driver_sql(_TRIGGERS) if name in wanted]
    missing, added = lacking(found, wanted), [*sorted(filled), *triggers]
    said = [f"it lacks {', '.join(missing[:3])}"] if missing else []
    said += [f"it has {', '.join(added[:3])}"] if added else []
    return "; ".join(said)


def _wanted(table: Table) -> frozenset[str]:
    unique = (one for one in table.constraints if isinstance(one, UniqueConstraint))
    return frozenset([*table.columns.keys(), *(f"index {one.name}" for one in (*table.indexes, *unique))])


_FILLS_ITSELF = {"default", "identity", "computed"}
"""What a column has whose value comes by itself."""
_TRIGGERS = (
    "SELECT g.tgname, c.relname FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid "
    "WHERE NOT g.tgisinternal AND g.tgenabled IN ('O', 'A') AND pg_table_is_visible(c.oid) ORDER BY 1, 2"
)
"""Whoever adds one may change, or leave out, what is stored. Those that fire on a replica alone do not, nor those of other programs' tables."""
