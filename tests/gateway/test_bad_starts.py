"""Each way in which a gateway cannot start is told in a few words, with a status that says for whom they are.

78: a person has to change something, and a service manager must not try again. 75: the same start may work later.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from adapters.checks.findings import Severity
from gateway.operate.doctor.looks import diagnose
from migrations import REVISIONS
from tests.forked import run
from tests.gateway.test_process import daemon, environment
from tests.ports import free_port
from tests.storage.harm import damage, own_disk

FOR_A_PERSON, LATER = 78, 75


def database_of(home: Path) -> Path:
    found = list(home.rglob("*.db"))
    assert len(found) == 1, found
    return found[0]


def started_once(env: dict[str, str], home: Path) -> Path:
    """The database of a gateway that ran here and ended in order."""
    with daemon(env, home.parent / "first.log") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    return database_of(home)


def refused(env: dict[str, str], status: int, *words: str) -> None:
    """A start says why in a few words, without a traceback, and ends with this status."""
    done = run(["run"], env)
    said = done.stderr
    assert "Traceback" not in said
    assert done.returncode == status, said
    assert len(said.strip().splitlines()[-1]) < 600
    for word in words:
        assert word in said, said


def newer(database: Path) -> None:
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
        conn.execute("UPDATE min_version SET revision = '9999'")


def somebody_elses(database: Path) -> None:
    database.unlink()
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("CREATE TABLE sessions (id int)")


def a_letter(database: Path) -> None:
    database.write_bytes(b"Dear Sir or Madam, this is not a database. " * 100)


def damaged(database: Path) -> None:
    """The page that lists the tables is overwritten, behind the file's header."""
    with database.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 900)


def damaged_list_of_people(database: Path) -> None:
    assert damage(database, "people")


def damaged_deliveries(database: Path) -> None:
    assert damage(database, "deliveries")


def damaged_gates(database: Path) -> None:
    assert damage(database, "gates")


def of_another_shape(database: Path) -> None:
    """As a state of the program that was never a version leaves it: an upgrade makes what is there."""
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("UPDATE alembic_version SET version_num = ?", (REVISIONS[-2],))


def without_a_table(database: Path) -> None:
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("DROP TABLE nodes")


def a_folder(database: Path) -> None:
    database.unlink()
    database.mkdir()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (newer, "newer version"),
        (somebody_elses, "sessions"),
        (a_letter, "not a database"),
        (damaged, "damaged"),
        (damaged_list_of_people, "outspoken db restore"),
        (damaged_deliveries, "outspoken db restore"),
        (damaged_gates, "outspoken db restore"),
        (of_another_shape, "already exists"),
        (without_a_table, "no such table: nodes"),
        (a_folder, "opened"),
    ],
)
def test_a_database_that_a_person_has_to_look_at_is_not_tried_again(
    tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    env = environment(tmp_path / "home", free_port())
    harm(started_once(env, tmp_path / "home"))
    refused(env, FOR_A_PERSON, words)
    found = asyncio.run(diagnose(None, env))  # and whoever asks what is wrong is told of it
    assert [one.fix for one in found if one.check.startswith("database") and one.level is Severity.PROBLEM]


@pytest.mark.skipif(os.name != "posix", reason="needs mount")
@pytest.mark.parametrize("kilobytes", [8, 64, 96])
def test_a_full_disk_is_tried_again_and_told_as_it_is(tmp_path: Path, kilobytes: int) -> None:
    """Full at once, while the tables are made, or nearly."""
    home = tmp_path / "home"
    with own_disk(home, f"{kilobytes}k"):
        refused(environment(home, free_port()), LATER, "space")


def test_a_server_that_is_away_is_tried_again(tmp_path: Path) -> None:
    env = environment(
        tmp_path, free_port(), OUTSPOKEN_STORAGE__URL=f"postgresql://u:canary@127.0.0.1:{free_port()}/none"
    )
    refused(env, LATER, "server")
    assert "canary" not in run(["run"], env).stderr


def test_a_lock_file_that_somebody_removed_lets_nobody_else_in(tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = environment(home, free_port())
    with daemon(env, tmp_path / "first.log"):
        (lock,) = home.rglob("*.db.lock")
        lock.unlink()
        refused({**env, "OUTSPOKEN_SERVER__PORT": str(free_port())}, LATER, "open already", "removed")
