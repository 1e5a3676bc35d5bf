"""The files of a SQLite database: a copy is on the disk before it has its name, an index that others hold is left alone for a while, and a look that was
ended early says so."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_core.store.database import lines
from agent_core.store.database.beside import Beside, FileState
from agent_core.store.database.lines import RENEW_SECONDS, SqliteLine, _copy, _LogTaken
from agent_core.store.database.place import SqlitePlace
from agent_core.store.keeping.checking import _SqliteLook
from tests.agent_core.turns import gives


def database(folder: Path, tables: int = 2) -> Path:
    path = folder / "store.db"
    with closing(sqlite3.connect(path)) as conn:
        for number in range(tables):
            conn.execute(f"CREATE TABLE t{number} (a)")
            conn.execute(f"INSERT INTO t{number} VALUES (1)")
        conn.commit()
    return path


@pytest.mark.parametrize("fails", [False, True])
def test_a_copy_is_on_the_disk_before_it_has_its_name(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, to = database(tmp_path), tmp_path / "copy.db"
    synced: list[tuple[int, bool]] = []

    def fsync(handle: int) -> None:
        synced.append((os.fstat(handle).st_size, to.exists()))
        if fails:
            raise OSError("the disk is gone")

    monkeypatch.setattr(lines.os, "fsync", fsync)
    if fails:
        with pytest.raises(OSError, match="is gone"):
            _copy(source, to)
    else:
        _copy(source, to)
    assert synced == [(source.stat().st_size, False)]
    assert to.exists() is not fails


def test_an_index_that_was_made_anew_and_is_not_others_is_made_anew_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever still reads has the old one open: each commit would copy the log and open the file anew."""
    clock = SimpleNamespace(now=1_000.0)
    monkeypatch.setattr(lines, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(lines, "judged", gives(FileState.UNINDEXED))
    monkeypatch.setattr(lines, "beside", gives(Beside()))
    line: Any = SqliteLine(SqlitePlace(database(tmp_path)))
    line._conn, line._outside = object(), gives([(0,)])
    renewed: list[float] = []
    for _ in range(4 * round(RENEW_SECONDS)):
        try:
            line._must_be_as_noted()
        except _LogTaken:
            line._save()
            renewed.append(clock.now)
        clock.now += 0.5
    assert renewed == [1_000.0, 1_000.0 + RENEW_SECONDS]
    line._hand.end()


@pytest.mark.parametrize("stopped", [0, 1, 2, None])
def test_a_look_that_was_ended_early_does_not_say_that_all_is_sound(stopped: int | None, tmp_path: Path) -> None:
    look: Any = _SqliteLook(database(tmp_path), thorough=False)
    asked: list[str] = []

    class Seen:
        """A connection that is told when each table is looked at."""

        def __init__(self, conn: sqlite3.Connection) -> None:
            self.conn = conn

        def execute(self, statement: str) -> Any:
            if statement.startswith("PRAGMA"):
                asked.append(statement)
                if len(asked) == stopped:
                    look.stop()
            return self.conn.execute(statement)

    if stopped == 0:
        look.stop()
    with closing(sqlite3.connect(tmp_path / "store.db")) as conn:
        found = look._look(Seen(conn))
    whole = stopped in (2, None)
    assert bool(found.not_looked) is not whole
    assert (len(asked), found.complaints, found.tables) == (2 if whole else stopped, (), 2)
