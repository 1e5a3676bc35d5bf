"""Ways for storage to fail, on real processes and real files: what the chat, `/readyz`, `status`, `doctor` and the metrics say of each.

Beside these: starts on a foreign file, a newer schema, a folder, a server that is away (tests/gateway/test_bad_starts.py); conversations on a
chat platform whose rows cannot be read (test_damaged.py); what is written into a file that is gone (tests/store/test_writer.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.gateway.test_process import daemon, environment, outspoken, post, text
from tests.ports import free_port
from tests.storage.harm import asked, changed, damage, database_of, own_disk

PATIENCE = 60.0


@dataclass(frozen=True)
class Told:
    """What is said of a gateway whose storage has trouble."""

    chat: str
    status: int
    ready: bool
    readyz: str
    words: str
    """Of ``outspoken status``."""
    doctor: str
    metrics: str


def get(env: Mapping[str, str], path: str) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}{path}",
        headers={"Authorization": f"Bearer {env['OUTSPOKEN_SERVER__OPERATOR_KEY']}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def say(env: Mapping[str, str], words: str, key: str) -> tuple[int, str]:
    """Ask; the status and the answer or the words of the refusal."""
    try:
        return 200, text(post(env, words, key))
    except urllib.error.HTTPError as error:
        return error.code, str(json.loads(error.read())["error"]["message"])


def until(what: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.1)


def told(env: Mapping[str, str], key: str) -> Told:
    status, chat = say(env, "hello", key)
    ready, body = get(env, "/readyz")
    return Told(
        chat,
        status,
        ready == 200,
        body,
        outspoken(env, "status").stdout,
        outspoken(env, "doctor").stdout,
        get(env, "/metrics")[1],
    )


def ready(env: Mapping[str, str]) -> bool:
    return get(env, "/readyz")[0] == 200


def told_away(env: Mapping[str, str], key: str) -> Told:
    """What is told of it, here, at the doors and in a chat, as soon as nothing can be stored any more."""
    until(lambda: not ready(env))
    seen = told(env, key)
    assert (seen.status, seen.ready) == (503, False)
    assert "cannot store anything just now" in seen.chat
    return seen


def setting(tmp_path: Path, **more: str) -> dict[str, str]:
    return environment(
        tmp_path / "home", free_port(), OUTSPOKEN_SERVER__OPERATOR_KEY="operators-key-of-this-test", **more
    )


def acknowledged(env: Mapping[str, str], tmp_path: Path, keys: list[str]) -> None:
    """Whatever was answered with 200 is stored."""
    found = asked(database_of(tmp_path / "home"), "select platform_key from inbox where state <> 'dropped'")
    stored = " ".join(str(row[0]) for row in found)
    assert all(key in stored for key in keys), (keys, stored)


@pytest.mark.skipif(os.name != "posix", reason="needs mount")
def test_a_full_disk_is_told_does_not_flap_and_is_over_by_itself(tmp_path: Path) -> None:
    env = setting(tmp_path, OUTSPOKEN_STORAGE__MIN_FREE_MIB="4")
    home, ballast = tmp_path / "home", tmp_path / "home" / "ballast"
    with own_disk(home, "48m"), daemon(env, tmp_path / "log"):
        assert say(env, "hello", "before")[0] == 200
        free = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
        ballast.write_bytes(b"\1" * (free - 2 * 1024**2))
        until(lambda: not ready(env))
        seen = told(env, "full")
        assert (seen.status, "the disk of the gateway is full" in seen.chat, seen.ready) == (507, True, False)
        assert "Only 1 MiB are free" in seen.words or "Only 2 MiB are free" in seen.words
        assert "disk:" in seen.doctor
        assert "outspoken_ready 0" in seen.metrics
        assert [ready(env) for _ in range(20) if time.sleep(0.1) is None] == [False] * 20
        ballast.write_bytes(b"\1" * (free - int(4.5 * 1024**2)))  # a little more than the least: not yet
        time.sleep(3)
        assert not ready(env)
        ballast.unlink()
        until(lambda: ready(env))
        assert say(env, "hello", "after")[0] == 200
        acknowledged(env, tmp_path, ["before", "after"])


@contextmanager
def failing_disk(at: Path, image: Path) -> Generator[Callable[[], int]]:
    """A file system that becomes read-only when an error of its disk is met, as it is usual; call what is given to have one met."""
    at.mkdir(exist_ok=True)
    with image.open("wb") as file:
        file.truncate(64 * 1024**2)
    mount = ["mount", "-o", "loop,errors=remount-ro", str(image), str(at)]
    if (
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=False).returncode
        or subprocess.run(mount, check=False).returncode
    ):
        pytest.skip("only root can make a disk")
    try:
        device = Path(
            subprocess.run(
                ["findmnt", "-no", "SOURCE", str(at)], check=True, capture_output=True, text=True
            ).stdout.strip()
        )
        yield lambda: Path(f"/sys/fs/ext4/{device.name}/trigger_fs_error").write_text("1")
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


@pytest.mark.skipif(os.name != "posix" or shutil.which("mkfs.ext4") is None, reason="needs mount and ext4")
def test_a_disk_that_becomes_read_only_under_a_running_gateway_is_told_and_nothing_acknowledged_is_lost(
    tmp_path: Path,
) -> None:
    env = setting(tmp_path, OUTSPOKEN_STORAGE__MIN_FREE_MIB="4")
    image = tmp_path / "image"
    with failing_disk(tmp_path / "home", image) as fail, daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "before")[0] == 200
        fail()
        seen = told_away(env, "read-only")
        assert "cannot be written" in seen.words
        assert "directory:" in seen.doctor
        process.send_signal(signal.SIGTERM)
        process.wait(90)
        assert "Traceback" not in (tmp_path / "log").read_text()
    subprocess.run(["fsck.ext4", "-fy", str(image)], check=False, stdout=subprocess.DEVNULL)
    with failing_disk_again(tmp_path / "home", image), daemon(env, tmp_path / "second.log"):
        assert say(env, "hello", "after")[0] == 200
        acknowledged(env, tmp_path, ["before", "after"])


@contextmanager
def failing_disk_again(at: Path, image: Path) -> Generator[None]:
    subprocess.run(["mount", "-o", "loop", str(image), str(at)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


def test_a_database_that_another_program_holds_is_told_and_is_over_by_itself(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "before")[0] == 200
        with closing(sqlite3.connect(database_of(tmp_path / "home"), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            seen = told_away(env, "locked")
            assert "locked" in seen.words or "took no write" in seen.words
            assert "outspoken_ready 0" in seen.metrics
            other.execute("ROLLBACK")
        until(lambda: ready(env))
        assert say(env, "hello", "after")[0] == 200
        acknowledged(env, tmp_path, ["before", "after"])


def foreign(tmp_path: Path) -> bytes:
    """Somebody else's database."""
    with closing(sqlite3.connect(tmp_path / "foreign.db")) as conn:
        conn.execute("CREATE TABLE sessions (a)")
    return (tmp_path / "foreign.db").read_bytes()


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
def test_a_database_that_is_taken_away_is_told_and_is_used_again_when_it_is_back(
    tmp_path: Path, replaced: bool
) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "before")[0] == 200
        database = database_of(tmp_path / "home")
        away = database.with_name("away")
        database.rename(away)
        if replaced:
            database.write_bytes(foreign(tmp_path))
        seen = told_away(env, "away")
        assert ("another file" if replaced else "removed") in seen.words
        assert "database" in seen.doctor
        away.rename(database)
        until(lambda: ready(env))
        assert say(env, "hello", "after")[0] == 200
        acknowledged(env, tmp_path, ["before", "after"])


@pytest.mark.parametrize("idle", [False, True], ids=["somebody asks", "nobody asks"])
@pytest.mark.parametrize("ends", [("-wal", "-shm"), ("-wal",), ("-shm",), ("another",)], ids="".join)
def test_a_log_that_is_taken_away_is_saved_within_seconds_and_a_kill_loses_nothing(
    tmp_path: Path, ends: tuple[str, ...], idle: bool
) -> None:
    env = setting(tmp_path)
    copy = tmp_path / "copy.db"
    with daemon(env, tmp_path / "log") as process:
        assert say(env, "hello", "before")[0] == 200
        database = database_of(tmp_path / "home")
        if "another" in ends:
            log = Path(f"{database}-wal")
            log.rename(tmp_path / "away")
            log.write_bytes((tmp_path / "away").read_bytes())
        for end in ends:
            if end.startswith("-"):
                Path(f"{database}{end}").unlink()
        if idle:
            until(lambda: "storage.log_renewed" in (tmp_path / "log").read_text())
        else:
            assert ready(env)
        assert say(env, "hello", "after")[0] == 200
        made = outspoken(env, "db", "backup", str(copy))
        assert made.returncode == 0, made.stderr
        assert "before" in str(asked(copy, "select platform_key from inbox"))
        checked = outspoken(env, "db", "check")
        assert (checked.returncode, "All is well" in checked.stdout) == (0, True), checked.stdout
        if "-shm" not in ends or "-wal" in ends:
            until(lambda: "All that it held was copied" in (tmp_path / "log").read_text())
        process.kill()
        process.wait(30)
        acknowledged(env, tmp_path, ["before", "after"])
    with daemon(env, tmp_path / "second.log"):
        assert say(env, "hello", "third")[0] == 200
        assert outspoken(env, "db", "check").returncode == 0
        acknowledged(env, tmp_path, ["before", "after", "third"])


def test_a_log_that_is_cut_is_told_nothing_is_written_on_it_and_a_restart_reads_what_is_whole(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log") as process:
        for number in range(4):
            assert say(env, f"hello {number}", f"before{number}")[0] == 200
        log = Path(f"{database_of(tmp_path / 'home')}-wal")
        os.truncate(log, log.stat().st_size // 2)
        seen = told_away(env, "cut")
        assert "was cut" in seen.words
        assert "outspoken_ready 0" in seen.metrics
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    with daemon(env, tmp_path / "second.log"):
        until(lambda: ready(env))
        assert say(env, "hello", "after")[0] == 200
        assert outspoken(env, "db", "check").returncode == 0


def test_a_database_without_our_tables_is_called_whole_by_no_command(tmp_path: Path) -> None:
    env = setting(tmp_path)
    home = tmp_path / "home"
    (home / "workspaces" / "somebody").mkdir(parents=True)
    (home / "outspoken.db").touch()
    done = outspoken(env, "db", "check")
    assert (done.returncode, "holds nothing of this program" in done.stdout) == (1, True), done
    assert "All is well" not in done.stdout
    done = outspoken(env, "db", "backup", str(tmp_path / "copy.db"))
    assert (done.returncode, "not whole" in done.stderr) == (1, True), done
    assert not list(tmp_path.glob("*copy*"))
    found = outspoken(env, "doctor")
    assert (found.returncode, "of an earlier database" in found.stdout) == (1, True), found.stdout
    with daemon(env, tmp_path / "log"):
        until(lambda: "a new one was begun" in (tmp_path / "log").read_text())
        assert "storage.begun_anew" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_what_is_no_file_in_the_place_of_the_database_is_said_by_every_command_at_once(
    tmp_path: Path, kind: str
) -> None:
    env = setting(tmp_path)
    database = tmp_path / "home" / "outspoken.db"
    database.parent.mkdir()
    {
        "pipe": lambda: os.mkfifo(database),
        "link": lambda: database.symlink_to("/not/mounted/outspoken.db"),
        "folder": database.mkdir,
    }[kind]()
    words = {"pipe": "a pipe", "link": "a link to /not/mounted", "folder": "a directory"}[kind]
    for command in (("run",), ("db", "check"), ("db", "backup", str(tmp_path / "copy")), ("triage",), ("ask", "hello")):
        done = outspoken(env, *command)
        assert (done.returncode, words in done.stderr, "Traceback" in done.stderr) == (78, True, False), (command, done)
    found = outspoken(env, "doctor")
    assert (found.returncode, words in found.stdout) == (1, True), found.stdout


@pytest.mark.parametrize("kind", ["pipe", "directory"])
@pytest.mark.parametrize("end", [".lock", "-wal", "-shm"])
def test_what_lies_beside_a_database_and_is_no_file_is_named_at_a_start(tmp_path: Path, end: str, kind: str) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log"):
        pass
    beside = tmp_path / "home" / f"outspoken.db{end}"
    beside.unlink(missing_ok=True)
    os.mkfifo(beside) if kind == "pipe" else beside.mkdir()
    for command in (("run",), ("ask", "hello")):
        done = outspoken(env, *command)
        assert (done.returncode, f"outspoken.db{end} is a {kind}" in done.stderr) == (78, True), (command, done)
        assert "server" not in done.stderr, done
    found = outspoken(env, "doctor")
    assert (found.returncode, f"outspoken.db{end}" in found.stdout) == (1, True), found.stdout


def test_a_gateway_whose_lock_file_or_database_was_removed_is_known_to_run(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "before")[0] == 200
        database = database_of(tmp_path / "home")
        Path(f"{database}.lock").unlink()
        assert "another database" not in outspoken(env, "doctor").stdout
        Path(f"{database}.lock").touch()
    with daemon(env, tmp_path / "second.log"):
        away = database.with_name("away")
        database.rename(away)
        found = outspoken(env, "doctor")
        assert (found.returncode, "is gone" in found.stdout) == (1, True), found.stdout
        done = outspoken(env, "db", "check")
        assert (done.returncode, "it was removed or moved" in done.stderr) == (78, True), done
        away.rename(database)


@contextmanager
def stopped(env: Mapping[str, str], tmp_path: Path, *, killed: bool = False) -> Generator[Path]:
    """The database of a gateway that has answered some, and is not there any more."""
    with daemon(env, tmp_path / "first.log") as process:
        for number in range(4):
            assert say(env, f"hello {number}", f"before{number}")[0] == 200
        if not killed:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    yield database_of(tmp_path / "home")


@pytest.mark.parametrize("what", ["journal", "sqlite_autoindex_inbox_1", "troubles", "inbox", "turns"])
def test_damaged_pages_are_found_and_named_everywhere(tmp_path: Path, what: str) -> None:
    env = setting(tmp_path)
    with stopped(env, tmp_path) as database:
        assert damage(database, what) or what == "troubles"
    with daemon(env, tmp_path / "log"):
        checked = outspoken(env, "db", "check")
        seen = told(env, "after")
        if what != "troubles":
            assert checked.returncode == 1
            assert "damaged in" in checked.stdout
            assert "damaged in" in seen.doctor
            assert "outspoken db restore" in seen.doctor
        assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    "ends", [("-wal", "-shm"), ("-shm",), ("cut",)], ids=["log removed", "index of the log removed", "log cut"]
)
def test_a_log_that_was_cut_or_removed_after_a_kill_starts_and_is_sound(tmp_path: Path, ends: tuple[str, ...]) -> None:
    """What was in the log alone is gone with it, and nothing can tell: keep all three files together."""
    env = setting(tmp_path)
    with stopped(env, tmp_path, killed=True) as database:
        for end in ends:
            if end == "cut":
                log = Path(f"{database}-wal")
                os.truncate(log, log.stat().st_size // 2)
            else:
                Path(f"{database}{end}").unlink()
    if "-wal" in ends and not asked(database, "select 1 from sqlite_master limit 1"):
        done = outspoken(env, "db", "check")  # nothing was in the file yet
        assert done.returncode in (0, 1, 78)
        return
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "after")[0] == 200
        assert outspoken(env, "db", "check").returncode == 0
        if ends == ("-shm",):
            acknowledged(env, tmp_path, [f"before{n}" for n in range(4)])


def test_rows_of_an_older_or_newer_program_and_an_empty_file_are_told_at_the_start(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with stopped(env, tmp_path) as database:
        changed(database, "update alembic_version set version_num = '9999'")
        changed(database, "update min_version set revision = '9999'")
    for words in (("run",), ("db", "check")):
        done = outspoken(env, *words)
        assert (done.returncode, "newer version" in done.stderr, "Traceback" in done.stderr) == (78, True, False)
    assert "newer version" in outspoken(env, "doctor").stdout
    database.write_bytes(b"")
    with daemon(env, tmp_path / "log"):
        assert say(env, "hello", "after")[0] == 200


def test_a_process_that_died_has_its_database_looked_through_by_the_next(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with stopped(env, tmp_path, killed=True):
        pass
    with daemon(env, tmp_path / "log"):
        until(lambda: json.loads(get(env, "/status")[1])["soundness"]["looked_at"] is not None)
        found = json.loads(get(env, "/status")[1])["soundness"]
        assert found["complaints"] == []
        assert "outspoken_storage_damaged 0" in get(env, "/metrics")[1]
