"""One gateway after another on one database, as real processes: standing by, taking over, and beginning anew when the database comes back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

from agent_core.store.database.ownership import lock_path
from gateway.succession.takeover import has_open
from tests.forked import start
from tests.gateway.test_process import daemon, environment, facts, outspoken, post, text
from tests.ports import free_port
from tests.pressure import Unhindered
from tests.storage.harm import asked, database_of
from tests.storage.test_postgres_ways import Server, server, stored
from tests.storage.test_twenty_ways import get, say, setting, until


def phase(env: Mapping[str, str]) -> str:
    try:
        status, body = get(env, "/readyz")
    except OSError:
        return ""
    return body if status == 503 else "ready"


def serves(env: Mapping[str, str]) -> bool:
    return phase(env) == "ready"


def pair(tmp_path: Path, one: Server, **more: str) -> tuple[dict[str, str], dict[str, str]]:
    both = [
        environment(
            tmp_path / name,
            free_port(),
            OUTSPOKEN_STORAGE__URL=one.url,
            OUTSPOKEN_STORAGE__STANDBY="true",
            OUTSPOKEN_SERVER__OPERATOR_KEY="operators-key-of-this-test",
            **more,
        )
        for name in ("first", "second")
    ]
    return both[0], both[1]


def test_what_stands_by_says_so_and_takes_over_at_once_when_the_other_ends(tmp_path: Path) -> None:
    with server() as one:
        first, second = pair(tmp_path, one)
        with daemon(first, tmp_path / "first.log") as serving:
            assert say(first, "hello", "before")[0] == 200
            nodes = one.ask("select count(*) from nodes")
            waiting = start(["run"], second, out=tmp_path / "second.log", err=tmp_path / "second.log")
            try:
                until(lambda: "stands by" in phase(second))
                assert get(second, "/healthz")[0] == 200
                assert "another one serves" in say(second, "hello", "early")[1]
                done = outspoken(second, "status")
                assert (done.returncode, "stands by" in done.stderr) == (75, True)
                assert one.ask("select count(*) from nodes") == nodes, "it touches nothing before"
                serving.send_signal(signal.SIGTERM)
                assert serving.wait() == 0
                gone = time.monotonic()
                until(lambda: serves(second))
                print(f"takes over {time.monotonic() - gone:.1f} s after an ordered end")
                assert say(second, "hello", "after")[0] == 200
                stored(one, ["before", "after"])
                waiting.send_signal(signal.SIGTERM)
                assert waiting.wait() == 0
            finally:
                waiting.kill()
            assert "Traceback" not in (tmp_path / "second.log").read_text()


def test_what_stands_by_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with server() as one:
        first, second = pair(tmp_path, one)
        with daemon(first, tmp_path / "first.log"):
            waiting = start(["run"], second, out=tmp_path / "second.log", err=tmp_path / "second.log")
            try:
                until(lambda: "stands by" in phase(second))
                waiting.send_signal(signal.SIGTERM)
                assert waiting.wait() == 0
            finally:
                waiting.kill()
            assert serves(first)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "suspended"])
def test_a_turn_of_a_gateway_that_is_gone_is_answered_by_the_other(tmp_path: Path, how: signal.Signals) -> None:
    with server() as one:
        first, second = pair(tmp_path, one)
        with daemon(first, tmp_path / "first.log") as serving:
            waiting = start(["run"], second, out=tmp_path / "second.log", err=tmp_path / "second.log")
            try:
                until(lambda: "stands by" in phase(second))
                begun = threading.Thread(target=_asked, args=(first, "count to 30 slowly", "begun"))
                begun.start()
                until(lambda: one.ask("select count(*) from turns where state = 'open'") == [("1",)])
                serving.send_signal(how)
                gone = time.monotonic()
                until(lambda: serves(second))
                print(f"takes over {time.monotonic() - gone:.1f} s after it was {how.name}")
                answer = post(second, "count to 30 slowly", "begun", 60)
                assert facts(answer)["exit"] == "answered"
                assert one.ask("select count(*) from turns") == [("1",)], "it is one turn"
                if how is signal.SIGSTOP:
                    serving.send_signal(signal.SIGCONT)
                    until(lambda: "stands by" in phase(first))
                    assert serves(second)
                begun.join(60)
            finally:
                waiting.kill()
        for log in ("first.log", "second.log"):
            assert "Traceback" not in (tmp_path / log).read_text()


def _asked(env: Mapping[str, str], words: str, key: str) -> None:
    with suppress(OSError, HTTPException):  # its gateway is gone
        post(env, words, key, 60)


def test_a_server_that_comes_back_finds_the_same_process_and_what_was_open_is_answered(tmp_path: Path) -> None:
    with server() as one:
        env = setting(tmp_path, OUTSPOKEN_STORAGE__URL=one.url)
        with daemon(env, tmp_path / "log") as process:
            assert say(env, "hello", "before")[0] == 200
            begun = threading.Thread(target=_asked, args=(env, "count to 30 slowly", "begun"))
            begun.start()
            until(lambda: one.ask("select count(*) from turns where state = 'open'") == [("1",)])
            one.stop("immediate")
            until(lambda: not serves(env))
            assert get(env, "/healthz")[0] == 200, "nobody has a reason to start it again"
            assert "cannot store anything just now" in say(env, "hello", "away")[1]
            one.start()
            back = time.monotonic()
            until(lambda: serves(env))
            print(f"serves again {time.monotonic() - back:.1f} s after its database is back")
            begun.join(60)
            assert "[DONE]" in post(env, "count to 30 slowly", "begun", 60)
            assert say(env, "hello", "after")[0] == 200
            assert process.returncode is None
            stored(one, ["before", "begun", "after"])
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
        assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_new_version_takes_over_a_database_of_one_machine(tmp_path: Path) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "first.log") as old:
        begun = threading.Thread(target=_asked, args=(env, "count to 30 slowly", "begun"))
        begun.start()
        database = database_of(tmp_path / "home")
        until(lambda: asked(database, "select count(*) from turns where state = 'open'") == [(1,)])
        began = time.monotonic()
        new = start(["run", "--takeover"], env, out=tmp_path / "second.log", err=tmp_path / "second.log")
        try:
            assert old.wait() == 0
            ended = Unhindered()
            until(lambda: new.returncode is not None or serves(env))
            nobody = ended.seconds
            print(f"taken over within {time.monotonic() - began:.1f} s, of which nobody served for {nobody:.1f} s")
            assert nobody < 2.0
            assert facts(post(env, "count to 30 slowly", "begun", 60))["exit"] == "answered"
            begun.join(60)
        finally:
            new.kill()
    assert "Traceback" not in (tmp_path / "second.log").read_text()


def test_a_suspended_predecessor_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = setting(tmp_path)
    with daemon(env, tmp_path / "first.log") as old:
        assert say(env, "hello", "before")[0] == 200
        old.send_signal(signal.SIGSTOP)
        new = start(["run", "--takeover"], env, out=tmp_path / "second.log", err=tmp_path / "second.log")
        try:
            assert old.wait(40) == -signal.SIGKILL
            until(lambda: serves(env))
            assert text(post(env, "hello", "before")) == say(env, "hello", "before")[1], "what was stored is there"
        finally:
            new.kill()


def test_nobody_is_ended_who_does_not_have_the_database(tmp_path: Path) -> None:
    """Its number may mean another process here than where the lock was taken."""
    file = lock_path(tmp_path / "store.db")
    file.write_text("1\n")
    assert not has_open(os.getpid(), file)
    with file.open():
        assert has_open(os.getpid(), file)
    assert not has_open(2**22 + 1, file)


def test_taking_over_on_postgresql_says_what_to_do_instead(tmp_path: Path) -> None:
    env = setting(tmp_path, OUTSPOKEN_STORAGE__URL="postgresql://nobody@127.0.0.1:1/none")
    done = outspoken(env, "run", "--takeover")
    assert done.returncode == 78
    assert "standby = true" in done.stderr
