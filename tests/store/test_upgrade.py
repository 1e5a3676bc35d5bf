"""The schema: from nothing, at rest, refused, copied before a change, and the same by migration as by the tables."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

import migrations
from agent_core.store import tables as t
from agent_core.store.database import ownership, way
from agent_core.store.database.lines import postgres_engine
from agent_core.store.database.look import look
from agent_core.store.database.place import PostgresPlace, parse_place
from agent_core.store.database.trouble import in_words
from agent_core.store.database.upgrade import NEWEST, backup_path, upgrade_to
from agent_core.store.errors import CannotOpenNow
from agent_core.store.reading import open_reads
from agent_core.store.store import CannotOpen, DatabaseTooNew, NotOurDatabase
from agent_core.store.turns.rows import OpenTurn
from migrations import REVISIONS
from tests.databases import connected, for_a_test, new_database
from tests.ports import free_port
from tests.store.support import ROOT, message, opened, row, take_over, turn_of


async def _run_on(where: str, *statements: str) -> None:
    place = parse_place(where)
    if isinstance(place, PostgresPlace):
        engine = create_async_engine(place.url)
        try:
            async with engine.begin() as conn:
                for statement in statements:
                    await conn.execute(text(statement))
        finally:
            await engine.dispose()
    else:
        with closing(sqlite3.connect(place.path)) as conn, conn:
            for statement in statements:
                conn.execute(statement)


async def test_the_list_of_revisions_is_alembics_own() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__path__[0])))
    history = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(reversed([revision.revision for revision in history])) == migrations.REVISIONS


async def test_opening_twice_changes_the_schema_once_and_keeps_what_was_stored(unprepared: str) -> None:
    async with opened(unprepared) as store:
        await store.inbox.accept(message("kept"))
        first = store.node
    async with opened(unprepared) as store:
        assert await store.inbox.by_key("bot", "kept") is not None
        assert store.node > first


def test_a_database_that_is_new_or_up_to_date_is_opened_without_alembic(sqlite: str) -> None:
    program = (
        "import asyncio, sys\n"
        "from tests.store.support import opened\n"
        "async def main():\n"
        "    async with opened(sys.argv[1]) as store:\n"
        "        await store.check()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", program, sqlite], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert said == ["False\n", "False\n"]


async def test_a_newer_database_is_refused_in_words_without_the_password(where: str) -> None:
    async with opened(where):
        pass
    await _run_on(where, "UPDATE alembic_version SET version_num = '9999'", "UPDATE min_version SET revision = '9998'")
    with pytest.raises(DatabaseTooNew) as told:
        async with opened(where):
            pass
    words = str(told.value)
    assert "9999" in words
    assert NEWEST in words
    assert parse_place(where).shown in words
    assert "hush" not in words


async def test_somebody_elses_database_is_refused(unprepared: str) -> None:
    place = parse_place(unprepared)
    if not isinstance(place, PostgresPlace):
        place.path.parent.mkdir()
    await _run_on(unprepared, "CREATE TABLE sessions (id int)")
    with pytest.raises(NotOurDatabase, match="sessions"):
        async with opened(unprepared):
            pass


async def test_a_file_with_another_programs_tables_is_refused_whatever_they_are_called(tmp_path: Path) -> None:
    path = tmp_path / "recipes.db"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("CREATE TABLE recipes (id int)")
    before = path.read_bytes()
    with pytest.raises(NotOurDatabase, match="recipes"):
        async with opened(str(path)):
            pass
    with closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT name FROM sqlite_master").fetchall() == [("recipes",)]
    assert len(before) <= path.stat().st_size


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir or Madam, this is not a database. " * 100)
    before = path.read_bytes()
    with pytest.raises(CannotOpen, match="not a database"):
        async with opened(str(path)):
            pass
    assert path.read_bytes() == before


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotOpen, match="may read and write"):
        async with opened(str(tmp_path / "file" / "below" / "store.db")):
            pass


async def test_an_existing_file_is_copied_before_it_is_upgraded(sqlite: str, migrating: None) -> None:
    async with opened(sqlite):
        pass
    assert list(Path(sqlite).parent.glob("*before-upgrade*")) == []
    Path(sqlite).unlink()
    await _run_on(
        sqlite,
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)",
        "CREATE TABLE old (x)",
        "INSERT INTO old VALUES (7)",
    )
    async with opened(sqlite) as store:
        await store.inbox.accept(message())
    copy = backup_path(Path(sqlite), None)
    with closing(sqlite3.connect(copy)) as conn, conn:
        assert conn.execute("SELECT x FROM old").fetchall() == [(7,)]
        assert conn.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sessions'").fetchall() == [(0,)]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


async def test_the_file_and_the_folders_made_for_it_are_private(sqlite: str) -> None:
    deep = Path(sqlite).parent / "a" / "store.db"
    async with opened(str(deep)) as store:
        await store.inbox.accept(message())
        modes = {
            one.name: stat.S_IMODE(one.stat().st_mode)
            for one in (*deep.parent.iterdir(), deep.parent, deep.parent.parent)
        }
    assert modes == {
        "store.db": 0o600,
        "store.db-wal": 0o600,
        "store.db-shm": 0o600,
        "store.db.lock": 0o600,
        "a": 0o700,
        "state": 0o700,
    }


def _sqlite_schema(path: str) -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as conn, conn:
        found = conn.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE '%alembic%'").fetchall()
    return {(kind, name, *_pieces(sql or "")) for kind, name, sql in found}


def _pieces(sql: str) -> list[str]:
    """Its columns and constraints in any order: alembic sorts constraints otherwise, and SQLite adds columns at the end."""
    head, _, inner = sql.partition("(")
    body, _, tail = inner.rpartition(")")
    pieces = re.split(r",\s*(?![^(]*\))", body)
    return sorted(" ".join(piece.split()) for piece in (head, *pieces, tail))


async def test_migrating_gives_the_schema_of_the_tables_on_sqlite(sqlite: str, tmp_path: Path, migrating: None) -> None:
    async with opened(sqlite):
        pass
    migrated = str(tmp_path / "migrated.db")
    engine = create_engine(f"sqlite:///{migrated}")
    with engine.begin() as conn:
        upgrade_to(conn, migrated)
    engine.dispose()
    assert _sqlite_schema(sqlite) == _sqlite_schema(migrated)
    assert len(_sqlite_schema(migrated)) > 20


def _postgres_schema(conn: Connection) -> set[tuple[object, ...]]:
    columns = "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
    constraints = "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
    queries = (
        f"{columns} WHERE table_schema = 'public'",
        f"{constraints} WHERE connamespace = 'public'::regnamespace AND contype <> 'n'",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    )
    found = {tuple(one) for query in queries for one in conn.exec_driver_sql(query)}
    return {one for one in found if one[0] != "alembic_version"}


async def test_migrating_gives_the_schema_of_the_tables_on_postgres(postgres_server: str, migrating: None) -> None:
    async with opened(await new_database(postgres_server)) as store:
        migrated = await store.writer.alone(_postgres_schema)
    place = parse_place(await new_database(postgres_server))
    assert isinstance(place, PostgresPlace)
    engine = create_async_engine(place.url)
    async with engine.begin() as conn:
        await conn.run_sync(t.metadata.create_all)
        made = await conn.run_sync(_postgres_schema)
    await engine.dispose()
    assert migrated == made
    assert len(made) > 60


async def _at_revision(where: str, revision: str, statements: tuple[str, ...]) -> None:
    """A database as it was at that revision, with what these statements put there."""
    place = parse_place(where)
    if isinstance(place, PostgresPlace):
        engine = create_async_engine(place.url)
        async with engine.begin() as conn:
            await conn.run_sync(lambda made: upgrade_to(made, where, revision))
        await engine.dispose()
    else:
        place.path.parent.mkdir()
        older = create_engine(f"sqlite:///{place.path}")
        with older.begin() as conn:
            upgrade_to(conn, where, revision)
        older.dispose()
    as_bytes = "bytea" if isinstance(place, PostgresPlace) else "blob"
    await _run_on(where, *(statement.replace("BYTES", as_bytes) for statement in statements))


BEFORE_0021 = (
    "INSERT INTO nodes (node, name, started_at, version, boot_id) VALUES (77, 'gone', 1, 'old', 'b')",
    "INSERT INTO sessions (session, key, owner, epoch, created_at, last_at) VALUES ('s', 'chat', 77, 1, 1, 1)",
    *(
        "INSERT INTO inbox (id, account, platform_key, session, arrival, lane, body, state, received_at) "
        f"VALUES ({number}, 'bot', 'm{number}', 's', {number}, 'normal', CAST('x' AS BYTES), '{state}', 1)"
        for number, state in ((5, "done"), (6, "taken"), (7, "taken"), (8, "taken"), (9, "new"))
    ),
    *(
        "INSERT INTO turns (turn, session, number, state, exit, opened_at, closed_at, deadline) "
        f"VALUES ('t_{number}', 's', {number}, 'closed', 'answered', 1, 2, 9)"
        for number in range(1, 5)
    ),
    "INSERT INTO turns (turn, session, number, state, opened_at, deadline) VALUES ('t_5', 's', 5, 'open', 1, 9)",
    *(
        f"INSERT INTO turn_inputs (turn, inbox) VALUES ('{turn}', {number})"
        for turn, number in (("t_3", 5), ("t_4", 6), ("t_4", 8), ("t_5", 7))
    ),
    *(
        f"INSERT INTO journal (turn, seq, epoch, kind, body, at) VALUES ('t_{turn}', {seq}, 1, 'k{seq}', CAST('t_{turn}' AS BYTES), 1)"
        for seq in range(3)
        for turn in (5, 4, 3, 2, 1)
    ),
)
"""Turns of a version before: of one the messages are not kept, one answers two, and one is open."""


async def test_turns_of_before_keep_their_journals_and_their_messages(unprepared: str, migrating: None) -> None:
    await _at_revision(unprepared, "0020", BEFORE_0021)
    async with opened(unprepared) as store:
        for number in range(1, 6):
            rows = await store.turns.journal(f"t_{number}")
            assert [(one.seq, one.kind, bytes(one.body)) for one in rows] == [
                (seq, f"k{seq}", f"t_{number}".encode()) for seq in range(3)
            ]
        inputs = {
            turn: [one.id for one in await store.inbox.inputs(turn)] for turn in ("t_1", "t_2", "t_3", "t_4", "t_5")
        }
        assert inputs == {"t_1": [], "t_2": [], "t_3": [5], "t_4": [6, 8], "t_5": [7]}
        (taken,) = await take_over(store)
        assert [one.kind for one in await store.turns.journal("t_5")] == ["k0", "k1", "k2", "TakenOver"]
        await store.turns.close("s", taken.epoch, "t_5", [row(4)], "answered", 3)
        await store.turns.start("s", taken.epoch, "t_6", [9], row(0), 3, 9)
        assert len(await store.turns.journal("t_6")) == 1
        assert await store.turns.openings(["t_1", "t_5", "t_6"]) == {
            "t_1": ("k0", b"t_1"), "t_5": ("k0", b"t_5"), "t_6": (row(0).kind, row(0).body)
        }  # fmt: skip


BEFORE_0022 = (
    "INSERT INTO nodes (node, name, started_at, version, boot_id) VALUES (77, 'gone', 1, 'old', 'b')",
    *(
        "INSERT INTO sessions (session, key, owner, epoch, quarantined, created_at, last_at, since) "
        f"VALUES ('{session}', '{key}', 77, 3, {aside}, 1, 2, 4)"
        for session, key, aside in (
            ("s_chat", "bot/1/a//", "NULL"),
            ("s_once", "api/once/x_1//", "NULL"),
            ("s_aside", "bot/1/b//#aside", "'damaged'"),
        )
    ),
    *(
        "INSERT INTO inbox (id, account, platform_key, session, arrival, lane, body, state, received_at, turn) "
        f"VALUES ({number}, 'bot', 'm{number}', '{session}', {number}, 'normal', CAST('x' AS BYTES), 'taken', 1, 't_{number}')"
        for number, session in ((1, "s_chat"), (2, "s_once"))
    ),
    *(
        "INSERT INTO turns (turn, session, number, state, exit, opened_at, closed_at, deadline, first_message, last_message) "
        f"VALUES ('t_{number}', '{session}', 1, 'closed', 'answered', 1, 2, 9, {number}, {number})"
        for number, session in ((1, "s_chat"), (2, "s_once"))
    ),
)
"""Conversations of a version before: one that has a name, one of a single request, and one that was set aside."""


async def test_sessions_of_before_keep_what_is_theirs_and_a_name_is_still_one_sessions(
    unprepared: str, migrating: None
) -> None:
    await _at_revision(unprepared, "0021", BEFORE_0022)
    async with opened(unprepared) as store:
        for session, key in (("s_chat", "bot/1/a//"), ("s_once", "api/once/x_1//")):
            found = await store.sessions.by_key(key)
            assert found is not None
            assert (found.session, found.owner, found.epoch, found.since) == (session, 77, 3, 4)
        assert [one.session for one in await store.asides.all()] == ["s_aside"]
        assert [one.turn for one in await store.turns.latest("s_once", 9)] == ["t_2"]
        accepted = await store.inbox.accept(message("new", "bot/1/a//"))
        assert accepted.session == "s_chat"
    again = "INSERT INTO sessions (session, key, epoch, created_at, last_at) VALUES ('s_x', '{}', 1, 1, 1)"
    await _run_on(unprepared, again.format("api/once/x_2//"))
    with pytest.raises(Exception, match=r"(?i)unique"):
        await _run_on(unprepared, again.format("bot/1/a//").replace("s_x", "s_y"))
    if not isinstance(place := parse_place(unprepared), PostgresPlace):
        with closing(sqlite3.connect(place.path)) as conn, conn:
            assert conn.execute("PRAGMA foreign_key_check").fetchall() == []
            assert conn.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


BEFORE_0025 = (
    "INSERT INTO sessions (session, key, epoch, created_at, last_at) VALUES ('s', 'chat', 1, 1, 1), ('plain', 'other', 1, 1, 1)",
    *(
        "INSERT INTO turns (turn, session, number, state, exit, opened_at, closed_at, deadline, undone) "
        f"VALUES ('{session}_{number}', '{session}', {number}, 'closed', 'answered', 1, 2, 9, {undone})"
        for session, all_undone in (("s", (0, 1, 1, 0, 0, 1)), ("plain", (0, 0)))
        for number, undone in enumerate(all_undone, 1)
    ),
)
"""Of one conversation two turns were taken back, then two were said, and then the last was taken back."""


async def test_what_was_said_after_turns_that_were_taken_back_follows_what_is_told(
    unprepared: str, migrating: None
) -> None:
    await _at_revision(unprepared, "0023", BEFORE_0025)
    async with opened(unprepared) as store:
        assert [one.parent for one in await store.turns.places("s")] == [0, 1, 2, 1, 4, 5]
        assert [one.follows for one in await store.turns.places("plain")] == [-1, -1]
        for session, tip in (("s", 5), ("plain", -1)):
            found = await store.sessions.one(session)
            assert found is not None
            assert found.tip == tip


async def _seem_newer(where: str, oldest: str) -> None:
    """What a later version may make of a database: more columns, more tables, and the word of how old a program may be."""
    await _run_on(
        where,
        "ALTER TABLE turns ADD COLUMN later_column INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE later_table (x INTEGER)",
        "UPDATE alembic_version SET version_num = '9999'",
        f"UPDATE min_version SET revision = '{oldest}'",
    )


async def test_the_version_before_works_with_what_a_newer_one_has_only_added_to(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
    await _seem_newer(where, migrations.MIN_REVISION)
    async with opened(where) as store:
        assert await take_over(store) == [OpenTurn(turn, session, epoch + 1)]
        await store.turns.close(session, epoch + 1, turn, [row(2)], "answered", 1)
        await turn_of(store, "another")
    async with open_reads(where) as reads:
        assert await reads.turns.one(turn) is not None
    revision = await _asked(where, "SELECT version_num FROM alembic_version")
    assert revision == "9999", "its schema stays"


async def test_the_version_before_refuses_what_a_newer_one_has_changed(where: str) -> None:
    async with opened(where):
        pass
    await _seem_newer(where, "9998")
    with pytest.raises(DatabaseTooNew, match="9999"):
        async with opened(where):
            pass


async def test_every_database_says_how_old_a_program_may_be(unprepared: str) -> None:
    assert migrations.MIN_REVISION in migrations.REVISIONS
    async with opened(unprepared):
        pass
    assert await _asked(unprepared, "SELECT revision FROM min_version") == migrations.MIN_REVISION


async def _asked(where: str, query: str) -> object:
    async with opened(where) as store:
        return await store.asks.readers.run(lambda conn: conn.exec_driver_sql(query).scalar())


async def test_an_upgrade_that_the_file_refuses_is_told_in_words_and_changes_nothing(
    sqlite: str, migrating: None
) -> None:
    """Its tables are of a state that was never a version."""
    async with opened(sqlite):
        pass
    with closing(sqlite3.connect(sqlite)) as file, file:
        before = file.execute("SELECT sql FROM sqlite_master").fetchall()
        file.execute("UPDATE alembic_version SET version_num = ?", (REVISIONS[-2],))
    with pytest.raises(
        CannotOpen, match=r"cannot be opened: .*Its tables are not what its schema's number says"
    ) as told:
        async with opened(sqlite):
            pass
    assert not isinstance(told.value, CannotOpenNow)
    with closing(sqlite3.connect(sqlite)) as file, file:
        assert file.execute("SELECT sql FROM sqlite_master").fetchall() == before


async def _refused(where: str) -> CannotOpen:
    with pytest.raises(CannotOpen) as told:
        async with opened(where):
            pass
    return told.value


@pytest.mark.parametrize(
    ("missing", "error", "said"),
    [("asyncpg", CannotOpen, "pip install 'outspoken[postgres]'"), ("asyncpg.x", ModuleNotFoundError, "")],
)
def test_without_the_driver_of_a_server_it_is_said_how_to_install_it_and_nothing_else_that_is_missing_is_taken_for_it(
    missing: str, error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacks(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("not there", name=missing)

    monkeypatch.setattr("sqlalchemy.ext.asyncio.create_async_engine", lacks)
    place = parse_place("postgresql://somebody@nowhere/db")
    assert isinstance(place, PostgresPlace)
    with pytest.raises(error) as told:
        postgres_engine(place, name="test", autocommit=True)
    assert said in str(told.value)


async def test_of_several_servers_of_which_none_is_there_the_first_ones_trouble_is_told() -> None:
    first, second = free_port(), free_port()
    with pytest.raises(OSError, match=str(first)):
        await way.connected(host=["127.0.0.1"] * 2, port=[first, second], user="u", database="d", timeout=9)


async def test_a_look_at_a_server_that_hangs_up_says_what_a_start_says() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1") as server:
        url = f"postgresql://outspoken@127.0.0.1:{server.sockets[0].getsockname()[1]}/outspoken"
        with pytest.raises(CannotOpenNow) as refused:
            await look(url)
    assert str(refused.value).endswith("Check that the server runs and can be reached.")
    assert in_words(ConnectionError("unexpected connection_lost() call")) == "the connection was lost"
    assert in_words(TimeoutError()) == "there was no answer in time"


async def test_what_a_server_does_not_allow_is_told_in_words(postgres_server: str) -> None:
    """A user of PostgreSQL 15 may make no tables in a database that is not theirs."""
    async with for_a_test(postgres_server) as where:
        url, name = make_url(where), f"r{uuid4().hex}"
        admin = await connected(where)
        await admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 's3cret'")
        theirs = url.set(username=name, password="s3cret").render_as_string(hide_password=False)
        try:
            await admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            told = await _refused(theirs)
            assert "permission denied" in str(told), told
            assert "ALTER DATABASE name OWNER TO user" in str(told), told
            assert not isinstance(told, CannotOpenNow)
            assert "s3cret" not in str(told)
            seen = await look(theirs)
            assert (seen.revision, seen.may_make) == (None, False)
            assert (await look(where)).may_make
        finally:
            await admin.execute(f"DROP ROLE {name}")
            await admin.close()


async def test_a_database_that_takes_no_connections_just_now_may_later(postgres_server: str) -> None:
    async with for_a_test(postgres_server) as where:
        url = make_url(where)
        admin = await connected(url.set(database="postgres").render_as_string(hide_password=False))
        await admin.execute(f"ALTER DATABASE {url.database} WITH ALLOW_CONNECTIONS false")
        try:
            for reads in (False, True):
                with pytest.raises(CannotOpenNow, match="not currently accepting connections"):
                    async with open_reads(where) if reads else opened(where):
                        pass
        finally:
            await admin.execute(f"ALTER DATABASE {url.database} WITH ALLOW_CONNECTIONS true")
            await admin.close()


async def test_what_would_not_end_a_silent_gateways_connection_is_refused(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pooler is told to pass over what it does not know, and hands the lock's connection on."""
    made = ownership.postgres_engine

    def pooled(place: PostgresPlace, *, name: str, autocommit: bool, settings: dict[str, str]) -> AsyncEngine:
        assert "idle_session_timeout" in settings
        return made(place, name=name, autocommit=autocommit)

    place = parse_place(postgres)
    assert isinstance(place, PostgresPlace)
    async with ownership.pulse(place, serves=ownership.Serves.ALONE):
        pass
    monkeypatch.setattr(ownership, "postgres_engine", pooled)
    with pytest.raises(CannotOpen, match=r"its idle_session_timeout is 0 ms.*give it the address of the server itself"):
        async with ownership.pulse(place, serves=ownership.Serves.ALONE):
            pass
