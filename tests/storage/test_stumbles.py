"""A database that stumbles under a running gateway: away for some seconds, cut off, silent. Turns go on, nothing begins anew."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.forked import start
from tests.gateway.test_process import daemon, environment, facts, post
from tests.gateway.test_succession import phase, serves
from tests.ports import free_port
from tests.pressure import Unhindered
from tests.storage.harm import database_of
from tests.storage.test_postgres_ways import BIN, Server, server, stored
from tests.storage.test_twenty_ways import ready, say, until
from tests.wire import Wire, wire

AWAY_SECONDS = 10.0


@dataclass
class Told:
    """A stream of the API, as its client gets it."""

    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    failed: str = ""

    @property
    def raw(self) -> str:
        return "".join(line for _, line in self.lines)

    def came_between(self, began: float, ended: float) -> int:
        """How many pieces of text came then."""
        return sum(began < at < ended and '"content"' in line for at, line in self.lines)


def follow(env: Mapping[str, str], words: str, key: str) -> tuple[Told, threading.Thread]:
    told = Told()

    def ask() -> None:
        body = json.dumps({"messages": [{"role": "user", "content": words}], "stream": True}).encode()
        url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}/v1/chat/completions"
        request = urllib.request.Request(url, body, {"Content-Type": "application/json", "Idempotency-Key": key})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                for line in response:
                    told.lines.append((time.monotonic(), line.decode()))
        except OSError as error:
            told.failed = repr(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return told, thread


def setting(home: Path, port: int, **more: str) -> dict[str, str]:
    return environment(
        home,
        free_port(),
        OUTSPOKEN_STORAGE__URL=f"postgresql://postgres@127.0.0.1:{port}/postgres",
        OUTSPOKEN_SERVER__OPERATOR_KEY="operators-key-of-this-test",
        **more,
    )


def restarts(one: Server, _: Wire) -> Callable[[], None]:
    one.stop("immediate")
    return one.start


def is_cut_off(_: Server, way: Wire) -> Callable[[], None]:
    way.refusing = True
    way.cut()

    def back() -> None:
        way.refusing = False

    return back


def is_silent(_: Server, way: Wire) -> Callable[[], None]:
    way.silent = True

    def back() -> None:
        way.silent = False

    return back


@contextmanager
def on_a_wire(tmp_path: Path, **more: str) -> Generator[tuple[Server, Wire, dict[str, str]]]:
    with server() as one, wire(one.port) as way:
        env = setting(tmp_path / "home", way.port, **more)
        with daemon(env, tmp_path / "log"):
            assert say(env, "hello", "before")[0] == 200
            yield one, way, env
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log, log


@pytest.mark.parametrize("how", [restarts, is_cut_off, is_silent], ids=lambda how: how.__name__)
def test_ten_seconds_without_its_database_cost_no_turn(
    tmp_path: Path, how: Callable[[Server, Wire], Callable[[], None]]
) -> None:
    with on_a_wire(tmp_path) as (one, way, env):
        told, asking = follow(env, "count to 400 slowly", "begun")
        until(lambda: told.came_between(0, time.monotonic()) > 3)
        nodes = one.ask("select count(*) from nodes")
        went, since = time.monotonic(), Unhindered()
        back = how(one, way)
        until(lambda: "storage.pulse_lost" in (tmp_path / "log").read_text())
        noticed = since.seconds
        print(f"noticed after {noticed:.1f} s")
        assert noticed <= 5
        until(lambda: not ready(env))
        asked = Unhindered()
        status, words = say(env, "hello", "away")
        assert (status, "cannot store anything just now" in words) == (503, True)
        assert asked.seconds <= 5, "whoever asks is told soon"
        time.sleep(max(0.0, went + AWAY_SECONDS - time.monotonic()))
        assert told.came_between(went + 1, time.monotonic()) > 3, "text goes on showing"
        back()
        returned = time.monotonic()
        until(lambda: ready(env))
        print(f"serves again {time.monotonic() - returned:.1f} s after its database is back")
        asking.join()
        assert (told.failed, facts(told.raw)["exit"], "[DONE]" in told.raw) == ("", "answered", True)
        assert say(env, "hello", "after")[0] == 200
        stored(one, ["before", "begun", "after"])
        assert one.ask("select count(*) from nodes") == nodes, "nothing began anew"
        assert one.ask("select count(*) from turns where exit <> 'answered' or exit is null") == [("0",)]
        assert one.ask("select count(*), count(distinct platform_key) from inbox") == [("3", "3")]
    log = (tmp_path / "log").read_text()
    assert "gateway.database_lost" not in log
    assert "storage.pulse_back" in log
    assert log.count('"model_calls":1,') == log.count('"turn.ended"') == 3, "no model was asked twice"


def test_a_file_that_another_program_holds_for_ten_seconds_costs_no_turn(tmp_path: Path) -> None:
    env = environment(tmp_path / "home", free_port(), OUTSPOKEN_SERVER__OPERATOR_KEY="operators-key-of-this-test")
    with daemon(env, tmp_path / "log"):
        told, asking = follow(env, "count to 400 slowly", "begun")
        until(lambda: told.came_between(0, time.monotonic()) > 3)
        with closing(sqlite3.connect(database_of(tmp_path / "home"), isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            went = time.monotonic()
            until(lambda: not ready(env))
            time.sleep(max(0.0, went + AWAY_SECONDS - time.monotonic()))
            assert told.came_between(went + 1, time.monotonic()) > 3, "text goes on showing"
            other.execute("ROLLBACK")
        until(lambda: ready(env))
        asking.join()
        assert (told.failed, facts(told.raw)["exit"]) == ("", "answered")
    assert "Traceback" not in (tmp_path / "log").read_text()


def backends(one: Server, name: str) -> set[int]:
    """The ports from which the server sees a kind of our connections."""
    found = one.ask(f"select client_port from pg_stat_activity where application_name like 'outspoken {name}%'")
    return {int(str(port)) for (port,) in found}


@pytest.mark.parametrize("name", ["writer", "reader", "pulse"])
def test_a_single_connection_that_is_silent_is_noticed_and_nobody_is_refused(tmp_path: Path, name: str) -> None:
    with on_a_wire(tmp_path) as (one, way, env):
        nodes = one.ask("select count(*) from nodes")
        until(lambda: bool(backends(one, name)))
        way.deaf |= backends(one, name)
        seconds: list[float] = []
        for number in range(3):
            asked = Unhindered()
            assert say(env, "hello", f"silent{number}")[0] == 200
            seconds.append(asked.seconds)
        print(" ".join(f"{one:.1f} s" for one in seconds))
        assert max(seconds) - min(seconds) <= 5
        assert one.ask("select count(*) from nodes") == nodes
        assert ready(env)


def test_a_server_that_works_on_something_for_long_is_left_to_it(tmp_path: Path) -> None:
    with on_a_wire(tmp_path) as (one, _, env):
        holding = threading.Thread(
            target=one.ask, args=("begin; lock table inbox in exclusive mode; select pg_sleep(6); commit",)
        )
        holding.start()
        until(lambda: bool(one.ask("select 1 from pg_locks where mode = 'ExclusiveLock' and locktype = 'relation'")))
        assert say(env, "hello", "waits")[0] == 200
        holding.join()
    assert "storage.silent" not in (tmp_path / "log").read_text()


@contextmanager
def standby_of(one: Server) -> Generator[Server]:
    """A server that has everything that the other one acknowledges, before it does."""
    folder = Path(tempfile.mkdtemp(prefix="outspoken-pg-"))
    if one.user:
        shutil.chown(folder, one.user)
    made = Server(folder, free_port(), one.user)
    where = ["-D", str(folder / "data"), "-h", "127.0.0.1", "-p", str(one.port), "-U", "postgres"]
    copy = [str(BIN / "pg_basebackup"), *where, "-R", "-X", "stream", "-c", "fast"]
    subprocess.run(copy, check=True, user=one.user, cwd=folder)
    made.start()
    try:
        one.ask("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        until(lambda: one.ask("select sync_state from pg_stat_replication") == [("sync",)])
        yield made
    finally:
        made.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def test_another_server_that_has_everything_takes_the_place_of_one_that_is_gone(tmp_path: Path) -> None:
    with server() as one, standby_of(one) as two:
        env = setting(tmp_path / "home", one.port)
        env["OUTSPOKEN_STORAGE__URL"] = (
            f"postgresql://postgres@/postgres?host=127.0.0.1:{two.port}&host=127.0.0.1:{one.port}"
        )
        with daemon(env, tmp_path / "log"):
            assert say(env, "hello", "before")[0] == 200
            told, asking = follow(env, "count to 400 slowly", "begun")
            until(lambda: told.came_between(0, time.monotonic()) > 3)
            one.stop("immediate")
            until(lambda: not ready(env))
            two.control("promote")
            promoted = time.monotonic()
            until(lambda: ready(env))
            print(f"serves again {time.monotonic() - promoted:.1f} s after the other server took over")
            asking.join()
            assert (told.failed, facts(told.raw)["exit"]) == ("", "answered")
            assert say(env, "hello", "after")[0] == 200
            stored(two, ["before", "begun", "after"])
            assert two.ask("select count(*) from nodes") == [("1",)]
        one.start()  # for its fixture, which stops it
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_who_was_taken_for_dead_meanwhile_begins_anew_and_says_nothing_twice(tmp_path: Path) -> None:
    with server() as one, wire(one.port) as way:
        first = setting(tmp_path / "first", way.port)
        second = setting(tmp_path / "second", one.port, OUTSPOKEN_STORAGE__STANDBY="true")
        first["OUTSPOKEN_STORAGE__STANDBY"] = "true"
        with daemon(first, tmp_path / "first.log"):
            told, asking = follow(first, "count to 30 slowly", "begun")
            until(lambda: told.came_between(0, time.monotonic()) > 3)
            waiting = start(["run"], second, out=tmp_path / "second.log", err=tmp_path / "second.log")
            try:
                until(lambda: not serves(second))
                way.silent = True
                until(lambda: serves(second))
                answer = post(second, "count to 30 slowly", "begun", 60)
                assert facts(answer)["exit"] == "answered"
                way.silent = False
                until(lambda: "stands by" in phase(first))
                asking.join()
                assert one.ask("select count(*) from turns") == [("1",)]
                assert serves(second)
            finally:
                waiting.kill()
        logs = [(tmp_path / name).read_text() for name in ("first.log", "second.log")]
        assert all("Traceback" not in log for log in logs), logs
        assert "storage.taken_for_dead" in logs[0]
