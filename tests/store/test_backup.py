"""A copy of a database is whole under its name or not there; what is replaced is kept with its own log; nothing is overwritten."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent_core.store.keeping import backup
from agent_core.store.keeping.backup import CannotCopy, back_up, put_back
from tests.agent_core.turns import gives


def database(path: Path, word: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("CREATE TABLE t (word TEXT)")
        conn.execute("INSERT INTO t VALUES (?)", (word,))
    return path


def word_in(path: Path) -> str:
    with closing(sqlite3.connect(path)) as conn:
        return str(conn.execute("SELECT word FROM t").fetchone()[0])


@pytest.fixture(autouse=True)
def _any_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "not_whole", gives(""))


def test_a_copy_is_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    made = back_up(database(tmp_path / "db", "own"), tmp_path / "copy")
    assert (word_in(made.to), made.size) == ("own", (tmp_path / "copy").stat().st_size)
    assert {one.name for one in tmp_path.iterdir()} == {"db", "copy"}


def test_no_copy_takes_the_place_of_what_is_there_also_if_it_came_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = database(tmp_path / "db", "own")
    (tmp_path / "copy").write_text("somebody's")
    with pytest.raises(CannotCopy, match="not overwritten"):
        back_up(here, tmp_path / "copy")
    plain = backup._verify

    def meanwhile(part: Path) -> None:
        plain(part)
        (tmp_path / "later").write_text("somebody's")

    monkeypatch.setattr(backup, "_verify", meanwhile)
    with pytest.raises(CannotCopy, match="not overwritten"):
        back_up(here, tmp_path / "later")
    assert (tmp_path / "later").read_text() == (tmp_path / "copy").read_text() == "somebody's"
    assert {one.name for one in tmp_path.iterdir()} == {"db", "copy", "later"}


def test_a_copy_that_is_not_whole_is_no_backup_and_nothing_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = database(tmp_path / "db", "own")
    monkeypatch.setattr(backup, "not_whole", gives("the table turns is missing"))
    with pytest.raises(CannotCopy, match="the table turns is missing"):
        back_up(here, tmp_path / "copy")
    assert {one.name for one in tmp_path.iterdir()} == {"db"}


def copied(_: Path, to: Path) -> None:
    database(to, "own")


@pytest.mark.parametrize(("free", "room"), [(1.2, True), (1.05, False)])
@pytest.mark.parametrize("log", [0, 1_000_000])
def test_a_copy_needs_room_for_the_database_and_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, room: bool, log: int
) -> None:
    here = database(tmp_path / "db", "own")
    size = here.stat().st_size + log
    monkeypatch.setattr(backup, "_copy", copied)
    Path(f"{here}-wal").write_bytes(b"x" * log)
    monkeypatch.setattr(backup.shutil, "disk_usage", gives(SimpleNamespace(free=int(size * free))))
    if room:
        back_up(here, tmp_path / "copy")
    else:
        with pytest.raises(CannotCopy, match="not enough room"):
            back_up(here, tmp_path / "copy")
    assert (tmp_path / "copy").exists() is room


def none(_: object) -> None: ...


def test_what_is_replaced_is_kept_with_its_log(tmp_path: Path) -> None:
    here, copy = database(tmp_path / "db", "newer"), database(tmp_path / "copy", "older")
    for end in backup.COMPANIONS:
        Path(f"{here}{end}").write_text(end)
    put_back(copy, here, tmp_path / "kept", none, none)
    assert word_in(here) == "older"
    assert not Path(f"{here}-wal").exists(), "a database never has a log that is not its own"
    assert [Path(f"{tmp_path}/kept{end}").read_text() for end in backup.COMPANIONS] == [*backup.COMPANIONS]
    for end in backup.COMPANIONS:
        Path(f"{tmp_path}/kept{end}").unlink()
    assert word_in(tmp_path / "kept") == "newer"


@pytest.mark.parametrize("logs", [(), ("-wal",)])
def test_a_database_with_only_one_log_or_none_is_replaced_as_well(tmp_path: Path, logs: tuple[str, ...]) -> None:
    here, copy = database(tmp_path / "db", "newer"), database(tmp_path / "copy", "older")
    for end in logs:
        Path(f"{here}{end}").write_text(end)
    put_back(copy, here, tmp_path / "kept", none, none)
    assert word_in(here) == "older"
    assert [end for end in backup.COMPANIONS if Path(f"{tmp_path}/kept{end}").exists()] == [*logs]


def test_where_the_last_step_fails_all_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, copy = database(tmp_path / "db", "newer"), database(tmp_path / "copy", "older")
    Path(f"{here}-wal").write_text("log")
    plain = Path.rename

    def renamed(path: Path, to: os.PathLike[str]) -> Path:
        if Path(to) == here and path.name.endswith(backup.RESTORING):
            raise OSError("no")
        return plain(path, to)

    monkeypatch.setattr(Path, "rename", renamed)
    with pytest.raises(CannotCopy, match="as it was"):
        put_back(copy, here, tmp_path / "kept", none, none)
    assert Path(f"{here}-wal").read_text() == "log"
    Path(f"{here}-wal").unlink()
    assert word_in(here) == "newer"
    assert {one.name for one in tmp_path.iterdir()} == {"db", "copy"}
