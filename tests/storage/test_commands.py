"""``outspoken db``, as somebody types it, beside a gateway that runs and after it has stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.failures.notices import RESTORED
from agent_core.store.database.shape import _upgrade, missing_in
from agent_core.store.keeping import backup
from gateway.operate.database import moved_on
from gateway.schedule.schedules import Plan, reminder
from gateway.schedule.times import Once
from migrations import REVISIONS
from tests.gateway.test_process import daemon, outspoken
from tests.journalrows import OF_TURN
from tests.storage.harm import asked, changed, damage, database_of
from tests.storage.test_twenty_ways import say, setting

Plans = TypeAdapter(Plan)
INDEX = "select name from sqlite_master where type = 'index' and sql is not null"


def test_a_backup_is_made_while_the_gateway_runs_and_put_back_when_it_does_not(tmp_path: Path) -> None:
    env = setting(tmp_path)
    copy = tmp_path / "monday.db"
    with daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "first")[0] == 200
        made = outspoken(env, "db", "backup", str(copy))
        assert made.returncode == 0, made.stderr
        assert "Not in it" in made.stdout
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert sorted(one.name for one in tmp_path.glob("*monday*")) == ["monday.db"]
        again = outspoken(env, "db", "backup", str(copy))
        assert (again.returncode, "not overwritten" in again.stderr) == (1, True)
        assert say(env, "hello", "second")[0] == 200
        refused = outspoken(env, "db", "restore", str(copy))
        assert (refused.returncode, "open already" in refused.stderr) == (75, True)
        assert outspoken(env, "db", "check").returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    done = outspoken(env, "db", "restore", str(copy))
    assert done.returncode == 0, done.stderr
    keys = [str(row[0]) for row in asked(database_of(tmp_path / "home"), "select platform_key from inbox")]
    assert any("first" in key for key in keys)
    assert not any("second" in key for key in keys)
    assert list((tmp_path / "home").glob("outspoken.db.before-restore-*"))
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "third")[0] == 200
        assert outspoken(env, "db", "check").returncode == 0


def copied(env: Mapping[str, str], tmp_path: Path) -> Path:
    """A backup of a gateway that has answered once, and has ended."""
    copy = tmp_path / "copy.db"
    with daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "first")[0] == 200
        assert outspoken(env, "db", "backup", str(copy)).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    return copy


@pytest.mark.parametrize("resume", [False, True])
def test_what_was_open_in_a_backup_is_not_done_again_unless_that_is_asked_for(tmp_path: Path, resume: bool) -> None:
    env = setting(tmp_path)
    copy = copied(env, tmp_path)
    (before,) = asked(copy, "select max(id) from inbox")[0]
    assert isinstance(before, int)
    assert changed(copy, "update inbox set state = 'new' where id = ?", before) == 1
    changed(copy, "insert into cursors values ('slack/T', 'C', '1000.000100'), ('telegram/1', 'updates', '7')")
    done = outspoken(env, "db", "restore", str(copy), *(["--resume"] if resume else []))
    assert done.returncode == 0, done.stderr
    database = database_of(tmp_path / "home")
    state = asked(database, f"select state, reason from inbox where id = {before}")
    assert state == [("new", None)] if resume else [("dropped", RESTORED)]
    assert ("1 waiting message(s)" in done.stdout) is not resume
    marks = {str(row[0]): str(row[1]) for row in asked(database, "select account, last_seen from cursors")}
    assert marks["telegram/1"] == "7"
    assert float(marks["slack/T"]) > 1e9
    assert asked(database, "select max(id) from inbox")[0][0] == before + 1_000_000


def test_a_backup_that_is_damaged_foreign_or_newer_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log") as process:
        for number in range(3):
            assert say(env, "hello", f"first{number}")[0] == 200
        for name in ("damaged", "newer"):
            assert outspoken(env, "db", "backup", str(tmp_path / name)).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert damage(tmp_path / "damaged", "journal")
    changed(tmp_path / "newer", "update alembic_version set version_num = '9999'")
    changed(tmp_path / "newer", "update min_version set revision = '9999'")
    copied = (tmp_path / "newer").read_bytes()
    (tmp_path / "half").write_bytes(copied[: len(copied) // 2])
    (tmp_path / "letter").write_text("Dear Sir or Madam, this is no database. " * 100)
    before = database_of(tmp_path / "home").read_bytes()
    for name, status, words in (
        ("damaged", 1, "damaged itself"),
        ("newer", 78, "newer version"),
        ("letter", 1, "not a database. So it is not put back, and nothing was changed. Take another backup."),
        ("half", 1, "malformed. So it is not put back, and nothing was changed. Take another backup."),
        ("none", 1, "no backup"),
    ):
        done = outspoken(env, "db", "restore", str(tmp_path / name))
        assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (status, True, False), done.stderr
    assert database_of(tmp_path / "home").read_bytes() == before
    assert not list((tmp_path / "home").glob("*restor*"))


def test_a_backup_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "first")[0] == 200
        done = outspoken(env, "db", "backup", "/dev/full/copy.db")
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        (tmp_path / "nobody").mkdir()
        (tmp_path / "nobody" / "link.db").symlink_to(tmp_path / "elsewhere")
        done = outspoken(env, "db", "backup", str(tmp_path / "nobody" / "link.db"))
        assert (done.returncode, "Traceback" in done.stderr) in ((0, False), (1, False))


@given(st.integers(0, 10**13), st.sampled_from(["discord/1", "slack/T", "telegram/1", "toy/1"]), st.integers(0, 10**20))
def test_a_mark_never_goes_back(at_ms: int, account: str, seen: int) -> None:
    after = moved_on(account, str(seen), at_ms)
    assert float(after) >= float(seen) * (1 - 1e-12)


def test_a_backup_that_is_not_whole_or_no_backup_at_all_is_refused(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "first")[0] == 200
        for name in ("table", "column", "index", "version", "orphan"):
            assert outspoken(env, "db", "backup", str(tmp_path / name)).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    live = database_of(tmp_path / "home")
    harm = {
        "table": "drop table budgets",
        "column": "alter table sessions drop column since",
        "index": f"drop index {asked(live, INDEX)[0][0]}",
        "version": "delete from alembic_version",
        "orphan": "insert into tool_calls values ('t_nobody', 'c', 't', 'pure', 'done', 'k', null)",
    }
    for name, statement in harm.items():
        changed(tmp_path / name, statement)
    (tmp_path / "hard").hardlink_to(live)
    (tmp_path / "soft").symlink_to(live)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".monday.db.part").write_bytes(live.read_bytes())
    before = live.read_bytes()
    for name, words in (
        ("table", "the table budgets"),
        ("column", "the column since of sessions"),
        ("index", "not whole"),
        ("version", "does not say which schema"),
        ("orphan", "damaged itself"),
        ("hard", "the database that the gateway uses itself"),
        ("soft", "the database that the gateway uses itself"),
        ("home/../home/outspoken.db", "the database that the gateway uses itself"),
        ("home/outspoken.db.lock", "belongs to the database"),
        ("pipe", "no file"),
        (".monday.db.part", "until it is complete"),
    ):
        done = outspoken(env, "db", "restore", str(tmp_path / name))
        assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (1, True, False), (name, done)
    for name in ("outspoken.db", "outspoken.db-wal", "outspoken.db-shm", "outspoken.db.lock"):
        done = outspoken(env, "db", "backup", str(tmp_path / "home" / name))
        assert (done.returncode, "that the gateway uses" in done.stderr) == (1, True), (name, done)
    assert live.read_bytes() == before
    assert not list((tmp_path / "home").glob("*restor*"))


def test_a_copy_from_before_an_upgrade_has_the_newest_schema_when_it_is_put_back(tmp_path: Path) -> None:
    env = setting(tmp_path)
    older = tmp_path / "outspoken.db.before-upgrade-from-0013"
    with closing(sqlite3.connect(older, isolation_level=None)) as conn, conn:
        _upgrade(conn, "older", "0013")
    done = outspoken(env, "db", "restore", str(older))
    assert done.returncode == 0, done.stderr
    live = database_of(tmp_path / "home")
    assert asked(live, "select version_num from alembic_version") == [(REVISIONS[-1],)]
    assert asked(older, "select version_num from alembic_version") == [("0013",)]
    assert missing_in(live, REVISIONS[-1]) == []


def test_what_a_restore_has_set_aside_is_explained_by_the_restore(tmp_path: Path) -> None:
    env = setting(tmp_path)
    copy = tmp_path / "copy.db"
    with daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "first")[0] == 200
        assert say(env, "hello", "second")[0] == 200
        assert outspoken(env, "db", "backup", str(copy)).returncode == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    (turn, number), (_, waiting) = asked(copy, "select turn, id from inbox where turn is not null order by id")
    changed(copy, "update turns set state = 'open', exit = null, closed_at = null where turn = ?", turn)
    changed(copy, f"delete from journal where {OF_TURN} and kind = 'turn_ended'", turn)
    changed(copy, "update inbox set state = 'taken' where id = ?", number)
    changed(copy, "update inbox set state = 'new' where id = ?", waiting)
    done = outspoken(env, "db", "restore", str(copy))
    assert "1 open turn(s), 1 waiting message(s)" in done.stdout, done
    told = outspoken(env, "triage").stdout
    assert "A backup was put back then" in told, told
    for wrong in ("was restarted", "turn.not_opened"):
        assert wrong not in told, told
    for one, words in (
        (turn, "The turn was set aside: a backup was put back"),
        (waiting, "It was set aside: a backup"),
    ):
        story = outspoken(env, "explain", str(one)).stdout
        assert words in story, story
        assert "never run" not in story
        assert "The person was told" not in story


@pytest.mark.parametrize("resume", [False, True])
def test_what_was_due_between_the_backup_and_its_restore_says_that_it_may_come_twice(
    tmp_path: Path, resume: bool
) -> None:
    env = setting(tmp_path)
    copy = copied(env, tmp_path)
    origin = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("7", "Ada"))
    far, now = 4_000_000_000_000, 1_700_000_000_000
    for number, (name, at) in enumerate((("said", now), ("to come", far))):
        row = reminder(
            number, name, Once(at), Plan(name, origin, "UTC"), SessionKey("telegram", "1", "7", ""), at - 1, now - 1
        )
        assert row is not None
        values = {**asdict(row), "state": row.state.value}
        marks = ", ".join(["?"] * len(values))
        changed(copy, f"insert into schedules ({', '.join(values)}) values ({marks})", *values.values())
    done = outspoken(env, "db", "restore", str(copy), *(["--resume"] if resume else []))
    assert done.returncode == 0, done.stderr
    assert ("may be the second time: 1." in done.stdout) is not resume
    found = {
        str(name): Plans.validate_json(bytes(body)).doubtful_to  # type: ignore[arg-type]
        for name, body in asked(database_of(tmp_path / "home"), "select schedule, body from schedules")
    }
    assert found["remind:to come"] == 0
    assert (found["remind:said"] > now) is not resume


def test_a_backup_for_which_there_is_no_room_says_how_much_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also less than a MiB is some."""
    database = tmp_path / "outspoken.db"
    database.write_bytes(b"x" * 5000)

    def nearly_full(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1_000)

    monkeypatch.setattr(backup.shutil, "disk_usage", nearly_full)
    with pytest.raises(backup.CannotCopy, match="1 MiB are needed, 0 MiB are free"):
        backup.back_up(database, tmp_path / "copy.db")
