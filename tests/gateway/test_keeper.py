"""Real processes that die, are stopped, or kill themselves, and what the next ones make of what they left."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from agent_core.store.sessions.takeups import MOST
from agent_core.store.tables import row_id
from agent_core.store.turns.rows import timed
from gateway.setaside.takeup import SET_ASIDE, LeftKind
from tests.chats.harness import Leaves, answer, begun, process, quiet, running, taken_in, texts
from tests.chats.telegram_harness import telegram_harness
from tests.databases import connected
from tests.forked import Forked, start
from tests.gateway.test_process import daemon, environment, facts, post, text
from tests.ports import free_port

COUNT = "count to 30 slowly"
NUMBERS = [str(number) for number in range(1, 31)]
PATIENCE = 90.0


def database(home: Path) -> Path:
    return next(home.rglob("*.db"))


def asked(home: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database(home)}?mode=ro", uri=True, timeout=20)) as found:
        return found.execute(query, values).fetchall()


def until(what: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


@contextmanager
def stream(env: Mapping[str, str], words: str, key: str) -> Generator[socket.socket]:
    """A request whose answer is read by hand."""
    body = json.dumps({"messages": [{"role": "user", "content": words}], "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", int(env["OUTSPOKEN_SERVER__PORT"])), timeout=PATIENCE) as wire:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: {key}\r\nContent-Length: {len(body)}\r\n\r\n"
        wire.sendall(head.encode() + body)
        yield wire


def heard_until(wire: socket.socket, words: str) -> str:
    heard = ""
    while words not in said(heard):
        got = wire.recv(65536).decode()
        assert got, heard
        heard += got
    return heard


def rest_of(wire: socket.socket) -> str:
    heard = b""
    while b"[DONE]" not in heard and (got := wire.recv(65536)):
        heard += got
    return heard.decode()


def said(heard: str) -> str:
    return "".join(re.findall(r'"content":"([^"]*)"', heard))


# ---------------------------------------------------------------------- many open turns


def opened_many(home: Path, many: int) -> None:
    """As many open turns as a process would leave that is killed with them: copies of one that it had."""
    with closing(sqlite3.connect(database(home))) as made, made:
        made.execute("UPDATE nodes SET ended_at = NULL")
        owner = made.execute("SELECT max(node) FROM nodes").fetchone()[0]
        kind, event, began = made.execute("SELECT kind, body, at FROM journal WHERE seq = 0").fetchone()
        message = made.execute("SELECT body FROM inbox").fetchone()[0]
        highest = made.execute("SELECT max(id) FROM inbox").fetchone()[0]
        now = int(time.time() * 1000)
        opened = json.loads(timed(event, began)) | {"at": now}
        for number in range(many):
            session, turn, at = f"s_many{number:04}", f"t_many{number:04}", now + number
            inbox = number + highest + 1
            made.execute(
                "INSERT INTO sessions(session, key, owner, epoch, created_at, last_at) VALUES(?, ?, ?, 1, ?, ?)",
                (session, f"api/key/{session}//", owner, at, at),
            )
            made.execute(
                "INSERT INTO inbox(id, account, platform_key, session, arrival, lane, body, state, received_at, turn) "
                "VALUES(?, 'api', ?, ?, ?, 'normal', ?, 'taken', ?, ?)",
                (inbox, f"key:{turn}", session, inbox, message, at, turn),
            )
            made.execute(
                "INSERT INTO turns(turn, session, number, state, opened_at, deadline, first_message, last_message) "
                "VALUES(?, ?, 1, 'open', ?, ?, ?, ?)",
                (turn, session, at, at + 3_600_000, inbox, inbox),
            )
            made.execute(
                "INSERT INTO journal(id, seq, epoch, kind, body, at) VALUES(?, 0, 1, ?, ?, ?)",
                (row_id(inbox, 0), kind, json.dumps(opened).encode(), at),
            )


OPEN = 500 if os.environ.get("TESTS_ALL_TURNS") else 120
"""Many times as many as are taken up before others have their turn; what holds of them holds of any number. 500: `make soak`."""


def test_a_start_with_hundreds_of_open_turns_answers_soon_and_goes_on_with_all_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env, many = environment(tmp_path, free_port()), OPEN
    with daemon(env, tmp_path / "log") as process:
        assert facts(post(env, "hello", "K"))["exit"] == "answered"
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    opened_many(tmp_path, many)
    began = time.monotonic()
    process = start(["run"], env, out=tmp_path / "log", err=tmp_path / "log")
    try:
        until(lambda: _listens(int(env["OUTSPOKEN_SERVER__PORT"])))
        port_open = time.monotonic()
        assert facts(post(env, "hello", "new one", PATIENCE))["exit"] == "answered"
        first = time.monotonic()
        assert facts(post(env, "hello", f"t_many{many - 1:04}", PATIENCE))["exit"] == "answered"
        last = time.monotonic()
        until(lambda: asked(tmp_path, "SELECT count(*) FROM turns WHERE state = 'open'") == [(0,)], 2 * PATIENCE)
        whole = time.monotonic()
        exits = asked(tmp_path, "SELECT exit, count(*) FROM turns WHERE turn LIKE 't_many%' GROUP BY exit")
        assert exits == [("answered", many)]
        assert asked(tmp_path, "SELECT count(*) FROM journal WHERE kind = 'TakenOver'") == [(many,)]
    finally:
        process.kill()
    with capsys.disabled():
        print(
            f"\n{many} open turns: start to port {port_open - began:.2f} s, port to first answer {first - port_open:.2f} s, "
            f"to the answer of the youngest, asked for again, {last - port_open:.2f} s, to the end of all {whole - port_open:.1f} s"
        )


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


# ---------------------------------------------------------------------- stop and go on


def test_an_orderly_stop_leaves_a_turn_open_says_so_and_the_next_start_goes_on(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port(), OUTSPOKEN_SERVER__DRAIN_SECONDS="0.4", OUTSPOKEN_MODEL__STALL_SECONDS="5")
    with daemon(env, tmp_path / "log") as process, stream(env, COUNT, "K") as wire:
        heard = heard_until(wire, "3,")
        process.send_signal(signal.SIGTERM)
        heard += rest_of(wire)
        assert process.wait(30) == 0
    last = heard[heard.index('"finish_reason":"length"') :]
    assert '"exit":"left_open"' in last
    assert '"going_on":true' in last
    assert "goes on afterwards" in said(heard)
    assert asked(tmp_path, "SELECT state, exit, suspicion FROM turns") == [("open", None, 0)]
    assert asked(tmp_path, "SELECT kind FROM journal ORDER BY seq DESC LIMIT 1") == [("TurnLeft",)]
    with daemon(env, tmp_path / "log"):
        whole = post(env, COUNT, "K", PATIENCE)
    assert facts(whole)["exit"] == "answered"
    assert re.findall(r"\d+", text(whole)) == NUMBERS
    assert asked(tmp_path, "SELECT count(*), max(suspicion) FROM turns") == [(1, 0)]
    log = (tmp_path / "log").read_text()
    assert '"turn.left"' in log
    assert "Traceback" not in log


def test_a_second_signal_leaves_what_runs_at_once(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port(), OUTSPOKEN_SERVER__DRAIN_SECONDS="3600", OUTSPOKEN_MODEL__STALL_SECONDS="5")
    with daemon(env, tmp_path / "log") as process, stream(env, COUNT, "K") as wire:
        heard_until(wire, "2,")
        process.send_signal(signal.SIGTERM)
        until(lambda: '"gateway.draining"' in (tmp_path / "log").read_text())
        process.send_signal(signal.SIGTERM)
        assert '"left_open"' in rest_of(wire)
        assert process.wait(30) == 0
    assert asked(tmp_path, "SELECT state FROM turns") == [("open",)]
    with daemon(env, tmp_path / "log"):
        assert re.findall(r"\d+", text(post(env, COUNT, "K", PATIENCE))) == NUMBERS


def test_a_message_that_waits_is_told_that_it_begins_after_the_restart(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port(), OUTSPOKEN_SERVER__DRAIN_SECONDS="0.4", OUTSPOKEN_MODEL__STALL_SECONDS="5")
    answers: list[str] = []

    def ask(words: str, key: str) -> None:
        answers.append(_in_session(env, words, key))

    with daemon(env, tmp_path / "log") as process:
        asking = [threading.Thread(target=ask, args=(words, key)) for words, key in ((COUNT, "A"), ("hello", "B"))]
        for number, one in enumerate(asking, start=1):
            one.start()
            until(lambda number=number: asked(tmp_path, "SELECT count(*) FROM inbox") == [(number,)])
        until(lambda: asked(tmp_path, "SELECT count(*) FROM turns") == [(1,)])
        process.send_signal(signal.SIGTERM)
        for one in asking:
            one.join(PATIENCE)
        process.wait(30)
    assert ['"exit":"left_open"' in answer for answer in answers] == [True, True]
    with daemon(env, tmp_path / "log"):
        assert facts(_in_session(env, COUNT, "A"))["exit"] == "answered"
        assert facts(_in_session(env, "hello", "B"))["exit"] == "answered"


def _in_session(env: Mapping[str, str], words: str, key: str) -> str:
    import urllib.request

    body = json.dumps({"messages": [{"role": "user", "content": words}], "stream": True}).encode()
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}/v1/chat/completions"
    headers = {"Content-Type": "application/json", "Idempotency-Key": key, "X-Outspoken-Session": "one"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=PATIENCE) as response:
        return response.read().decode()


# ---------------------------------------------------------------------- poison

TOOL = """
import os, signal
from agent_core.tools.registry import ToolRegistry
plain = ToolRegistry.run
async def run(self, checked, context):
    if checked.spec.name == "list_files":
        os.kill(os.getpid(), signal.SIGKILL)
    return await plain(self, checked, context)
ToolRegistry.run = run
"""
OPENING = """
import os, signal
import gateway.sessions.opening
plain = gateway.sessions.opening.opened_event
def opened_event(inbounds, *more, **others):
    if any("list files" in str(message.content) for one in inbounds for message in one.input):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(inbounds, *more, **others)
gateway.sessions.opening.opened_event = opened_event
"""


@pytest.mark.parametrize(("poison", "code"), [(TOOL, "internal_error"), (OPENING, "not_started")])
def test_what_kills_the_process_is_set_aside_at_the_third_restart_and_its_neighbours_go_on(
    tmp_path: Path, poison: str, code: str
) -> None:
    env = environment(tmp_path, free_port(), OUTSPOKEN_MODEL__STALL_SECONDS="8")
    names = ["n0", "n1", "n2"]
    with _serving(env, tmp_path, poison) as process:
        for name in names:
            threading.Thread(target=_ask_quietly, args=(env, COUNT, name), daemon=True).start()
        until(lambda: asked(tmp_path, "SELECT count(*) FROM turns WHERE state = 'open'") == [(3,)])
        _ask_quietly(env, "list files", "poison")
        assert process.wait(PATIENCE) == -signal.SIGKILL
    if poison == OPENING:  # it is stored when it is sent again: after a death nothing is done with a message before
        assert asked(tmp_path, "SELECT count(*) FROM inbox") == [(3,)]
        with _serving(env, tmp_path, poison) as process:
            _ask_quietly(env, "list files", "poison")
            assert process.wait(PATIENCE) == -signal.SIGKILL
    for _ in range(2):
        process = start(["run"], env, out=tmp_path / "log", err=tmp_path / "log", prelude=poison)
        assert process.wait(PATIENCE) == -signal.SIGKILL
    with _serving(env, tmp_path, poison) as process:
        ended = _end(env, "list files", "poison")
        assert ended == code
        for name in names:
            stream_ = post(env, COUNT, name, PATIENCE)
            assert (facts(stream_)["exit"], re.findall(r"\d+", text(stream_))) == ("answered", NUMBERS)
        assert facts(post(env, "hello", "after", PATIENCE))["exit"] == "answered"
        assert process.returncode is None
    log = (tmp_path / "log").read_text()
    assert log.count('"keeper.set_aside"') == 1
    assert asked(tmp_path, "SELECT count(*) FROM incidents WHERE code = 'internal_error'") == [(1,)]


async def test_a_message_of_a_chat_that_kills_its_opening_is_set_aside_and_the_chat_is_told(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        telegram.prelude = OPENING  # type: ignore[attr-defined]
        chat = telegram.private(eve := telegram.person("Eve"))
        async with process(telegram) as first:
            telegram.say(chat, eve, "say one")
            await answer(telegram, chat, "one")
            await quiet(telegram, chat)  # a message behind a turn that still ends is stored before it is opened
            telegram.say(chat, eve, "list files")
            assert await asyncio.to_thread(first.inner.wait, PATIENCE) == -signal.SIGKILL
        assert not taken_in(tmp_path, "list files")
        for _ in range(3):  # the platform brings it again
            again, _ = begun(telegram)
            assert await asyncio.to_thread(again.wait, PATIENCE) == -signal.SIGKILL
        async with process(telegram):
            await answer(telegram, chat, "Your message was set aside: working on it ended the whole gateway")
            telegram.say(chat, eve, "say two")
            await answer(telegram, chat, "two")


WAITING = """
import os, signal
import gateway.sessions.atonce
from gateway.sessions.runner import Runner
gateway.sessions.atonce.may_begin = lambda *_: False
async def next_messages(self, queue):
    os.kill(os.getpid(), signal.SIGKILL)
Runner._next_messages = next_messages
"""


def test_a_message_that_only_waited_at_each_death_is_answered(tmp_path: Path) -> None:
    env = environment(tmp_path, free_port())
    with _serving(env, tmp_path, WAITING) as process:
        _ask_quietly(env, "hello", "K")
        assert process.wait(PATIENCE) == -signal.SIGKILL
    for _ in range(3):
        process = start(["run"], env, out=tmp_path / "log", err=tmp_path / "log", prelude=WAITING)
        assert process.wait(PATIENCE) == -signal.SIGKILL
    assert asked(tmp_path, "SELECT state, suspicion FROM inbox") == [("new", 0)]
    with daemon(env, tmp_path / "log"):
        assert facts(post(env, "hello", "K", PATIENCE))["exit"] == "answered"


@contextmanager
def _serving(env: Mapping[str, str], home: Path, prelude: str) -> Generator[Forked]:
    process = start(["run"], env, out=home / "log", err=home / "log", prelude=prelude)
    try:
        until(lambda: process.returncode is not None or _listens(int(env["OUTSPOKEN_SERVER__PORT"])))
        yield process
    finally:
        process.kill()


def _ask_quietly(env: Mapping[str, str], words: str, key: str) -> None:
    with suppress(OSError, HTTPException):
        post(env, words, key, PATIENCE)


def _end(env: Mapping[str, str], words: str, key: str) -> str:
    import urllib.error

    try:
        whole = post(env, words, key, PATIENCE)
    except urllib.error.HTTPError as refused:
        body = json.loads(refused.read())
        assert SET_ASIDE in body["error"]["message"]
        return body["error"]["code"]
    assert SET_ASIDE in text(whole)
    return facts(whole)["exit"]


async def test_a_command_a_message_and_a_delivery_that_killed_twice_are_set_aside_and_the_chat_is_told(
    tmp_path: Path,
) -> None:
    async with telegram_harness(tmp_path) as telegram:
        chat = telegram.private(eve := telegram.person("Eve"))
        async with running(telegram):
            telegram.say(chat, eve, "say one")
            await answer(telegram, chat, "one")
            telegram.say(chat, eve, "/status")
            await answer(telegram, chat, "Nothing is running here")
        with closing(sqlite3.connect(database(tmp_path))) as made, made:
            made.execute("UPDATE nodes SET ended_at = NULL")
            made.execute("DELETE FROM deliveries WHERE origin LIKE 'inbox:%'")
            made.execute("UPDATE inbox SET state = 'new', suspicion = 1000 WHERE lane = 'command'")
            made.execute("UPDATE deliveries SET state = 'wanted', suspicion = 1000")
        async with running(telegram) as up:
            await answer(telegram, chat, "Your message was set aside: working on it ended the whole gateway")
            await answer(
                telegram, chat, "A part of the answer could not be shown: working on it ended the whole gateway"
            )
            telegram.say(chat, eve, "say two")
            await answer(telegram, chat, "two")
            assert (up.keeper.set_aside[LeftKind.COMMAND], up.keeper.set_aside[LeftKind.PART]) == (1, 1)
        assert asked(tmp_path, "SELECT state, reason FROM inbox WHERE lane = 'command'") == [("dropped", SET_ASIDE)]
        assert asked(tmp_path, "SELECT cause FROM deliveries WHERE state = 'failed'") == [(SET_ASIDE,)]


async def test_what_a_turn_that_is_set_aside_had_said_stays_in_its_chat_and_its_question_goes(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        chat = telegram.private(eve := telegram.person("Eve"))
        async with process(telegram, OUTSPOKEN_TOOLS__APPROVAL='["write_file"]') as first:
            telegram.say(chat, eve, "write a.txt: b")
            await answer(telegram, chat, "May I write")
            await quiet(telegram, chat)
            await first.kill()
        with closing(sqlite3.connect(database(tmp_path))) as made, made:
            made.execute("UPDATE turns SET suspicion = 1000")
        async with running(telegram):
            await answer(telegram, chat, "This was set aside: working on it ended the whole gateway")
            await quiet(telegram, chat)
            first_said, told = texts(telegram, chat)
            assert (first_said, told[:18]) == ("I write it down.", "⚠️ This was set as")


async def test_a_chat_whose_turn_is_left_open_is_told_and_gets_the_answer_after_the_restart(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        chat = telegram.private(eve := telegram.person("Eve"))
        async with running(telegram, OUTSPOKEN_SERVER__DRAIN_SECONDS="0"):
            telegram.say(chat, eve, "hold words")
            await telegram.model.holding.wait()
        assert any("goes on afterwards" in one for one in texts(telegram, chat))
        telegram.model.release()
        async with running(telegram):
            await telegram.until(lambda: asked(tmp_path, "SELECT state, exit FROM turns") == [("closed", "answered")])
            await telegram.until(lambda: not any("goes on afterwards" in one for one in texts(telegram, chat)))


# ---------------------------------------------------------------------- what cannot be taken up in the first second


def test_what_a_stopped_process_holds_on_postgresql_is_taken_up_when_its_lock_is_gone(
    tmp_path: Path, postgres: str
) -> None:
    first = environment(
        tmp_path / "a", free_port(), OUTSPOKEN_STORAGE__URL=postgres, OUTSPOKEN_MODEL__STALL_SECONDS="8"
    )
    second = first | {"OUTSPOKEN_HOME": str(tmp_path / "b"), "OUTSPOKEN_SERVER__PORT": str(free_port())}
    for home in ("a", "b"):
        (tmp_path / home).mkdir()
    with daemon(first, tmp_path / "log a") as stopped, stream(first, COUNT, "K") as wire:
        heard_until(wire, "3,")
        time.sleep(1.2)  # text on its way is journalled within a second
        stopped.send_signal(signal.SIGSTOP)
        with daemon(second, tmp_path / "log b"):
            whole = post(second, COUNT, "K", PATIENCE)
            assert facts(whole)["exit"] == "answered"
            assert re.findall(r"\d+", text(whole)) == NUMBERS
        stopped.send_signal(signal.SIGCONT)


def test_what_a_process_holds_that_was_stopped_in_the_middle_of_a_statement_on_postgresql_is_let_go(
    tmp_path: Path, postgres: str
) -> None:
    """The server has half of a statement, waits for the rest, and keeps the rows that the transaction has locked: it has no limit for that."""
    first = environment(tmp_path / "a", free_port(), OUTSPOKEN_STORAGE__URL=postgres)
    second = first | {"OUTSPOKEN_HOME": str(tmp_path / "b"), "OUTSPOKEN_SERVER__PORT": str(free_port())}
    for home in ("a", "b"):
        (tmp_path / home).mkdir()
    with daemon(first, tmp_path / "log a") as stopped, stream(first, COUNT, "K") as wire:
        heard_until(wire, "3,")
        with held_up(postgres, "journal"):
            stopped.send_signal(signal.SIGSTOP)
        with daemon(second, tmp_path / "log b"):
            whole = post(second, COUNT, "K", PATIENCE)
            assert facts(whole)["exit"] == "answered"
            assert re.findall(r"\d+", text(whole)) == NUMBERS
        stopped.send_signal(signal.SIGCONT)


@contextmanager
def held_up(postgres: str, table: str) -> Generator[None]:
    """Somebody has begun to write into a table, and waits for us until the end of the block."""

    async def lock() -> Any:
        conn = await connected(postgres)
        await conn.execute("BEGIN")
        await conn.execute(f"LOCK TABLE {table} IN SHARE MODE")
        while not await conn.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"):
            await asyncio.sleep(0.05)
        return conn

    with asyncio.Runner() as runner:
        conn = runner.run(lock())
        try:
            yield
        finally:
            runner.run(conn.close())


async def test_what_waits_for_a_platform_that_is_not_there_hides_nothing_that_can_be_shown(tmp_path: Path) -> None:
    """More than a look reads, of an account that is not configured any more: what came behind it was never taken up."""
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        private = platform.private(ada)
        async with running(platform):
            platform.say(private, ada, "say one")
            await answer(platform, private, "one")
            await quiet(platform, private, 1)
        with closing(sqlite3.connect(database(tmp_path))) as db, db:
            db.execute("UPDATE deliveries SET state = 'wanted', platform_id = NULL, attempt = 0")
            names = [str(row[1]) for row in db.execute("PRAGMA table_info(deliveries)") if row[1] != "id"]
            changed = {"surface": "'discord/9/9/'", "origin": "'t_' || n.value", "place": "n.value"}
            picked = ", ".join(changed.get(name) or name for name in names)
            db.execute(
                f"WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {2 * MOST}) "
                f"INSERT INTO deliveries ({', '.join(names)}) SELECT {picked} FROM (SELECT * FROM deliveries LIMIT 1), n"
            )
        before = len(texts(platform, private))
        async with running(platform, Leaves.DAMAGED):
            await platform.until(lambda: len(texts(platform, private)) > before)
