"""What is printed is seen, and does nothing to a terminal: the real program, with a model and people who try."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import sqlite3
import struct
import subprocess
import sys
import termios
from contextlib import closing
from pathlib import Path

import pytest

from adapters.terminal.screen import Screen, draw
from tests.forked import run, start
from tests.program import program

ATTACK = "\x1b]0;owned\x07\x1b[2J\x9b31m\x9d52;c;AAAA\x9c \x08\x08\r\u202egnp.exe\u2066\u2028 end"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def written(encoding: str, *pieces: str) -> bytes:
    below = io.BytesIO()
    screen = Screen(io.TextIOWrapper(below, encoding))
    for piece in pieces:
        screen.write(piece)
    draw(screen, "\x1b[0m")
    screen.flush()
    return below.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_what_others_wrote_is_written_out_and_our_own_sequences_are_left(encoding: str):
    got = written(encoding, ATTACK, "grün 漢\n").decode(encoding)
    assert not STEERS.search(got.removesuffix("\x1b[0m"))
    assert got.endswith("\n\x1b[0m")
    assert "\\u001b]0;owned\\u0007" in got
    assert ("grün" in got) == (encoding != "ascii")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"OUTSPOKEN_HOME": str(tmp_path), "OUTSPOKEN_SERVER__PORT": "0", "TERM": "xterm", "PATH": "/usr/bin:/bin"}


def test_no_command_prints_what_a_model_or_a_person_wrote_as_a_command_for_the_terminal(
    home: dict[str, str], tmp_path: Path
):
    asked = run(["ask", "--session", "s", f"hello {ATTACK}"], home)
    assert "owned" in asked.stdout, "the model says it back"
    turn = ""
    (database,) = tmp_path.rglob("outspoken.db")
    with closing(sqlite3.connect(database)) as rows, rows:
        ((turn,),) = rows.execute("select turn from turns")
    commands = [
        ["ask", "--json", f"hello {ATTACK}"],
        ["ask", f"no such tool {ATTACK}"],
        ["explain", turn],
        ["explain", turn, "--show-text"],
        ["explain", turn, "--show-text", "--json"],
        ["explain", f"nothing {ATTACK.replace(chr(0), '')}"],
        ["replay", turn, "--show-text"],
        ["replay", turn, "--show-text", "--json"],
        ["replay", ATTACK],
        ["access", "list"],
        ["access", "approve", ATTACK],
        ["triage"],
        ["triage", str(tmp_path / "log")],
        ["send", "--to", ATTACK, ATTACK],
        ["status"],
        ["config", "show"],
        ["config", "check"],
        ["doctor"],
        [ATTACK],
        ["--config", ATTACK, "config", "check"],
    ]
    (tmp_path / "log").write_text(
        json.dumps({"event": "turn.ended", "level": "warning", "exit": ATTACK, "cause": ATTACK, "endpoint": ATTACK})
        + "\n"
    )
    for words in [None, *commands]:
        got = asked if words is None else run(words, home)
        for said in (got.stdout, got.stderr):
            found = STEERS.search(said)
            assert found is None, (words, said[max(0, found.start() - 40) : found.end() + 40])
        assert "Traceback" not in got.stderr, words
        if words and "--json" in words:
            json.loads(got.stdout)


def test_neither_does_a_conversation(home: dict[str, str]):
    lines = f"hello {ATTACK.replace(chr(13), '')}\n/why\n/{ATTACK.replace(' ', '')}\n/quit\n"
    got = run(["chat"], home, stdin=lines)
    assert "owned" in got.stdout
    assert not STEERS.search(got.stdout)
    assert not STEERS.search(got.stderr)


FULL = "There is no room to write it all: No space left on device."


def test_a_full_disk_is_said_in_words_and_with_an_exit_status_by_what_asks(home: dict[str, str], tmp_path: Path):
    err = tmp_path / "err"
    asked = start(["ask", "list files"], home, out=Path("/dev/full"), err=err)
    assert (asked.wait(), FULL in err.read_text(), "Traceback" in err.read_text()) == (1, True, False), err.read_text()


@pytest.mark.parametrize("command", [["config", "template"], ["--version"]])
def test_a_full_disk_is_said_in_words_and_with_an_exit_status(home: dict[str, str], command: list[str]):
    """By a new interpreter: it writes out what is left at its very end."""
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            [sys.executable, "-m", "gateway", *command],
            env=home, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert told.returncode == 1
    assert FULL in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])  # alone, and all: what is opened later takes their numbers
def test_a_stream_that_is_closed_ends_no_command(home: dict[str, str], closed: str):
    checked = subprocess.run(
        ["sh", "-c", f'"$0" -m gateway config check {closed}', sys.executable], env=home, check=False
    )
    assert checked.returncode == 0


def on_a_terminal(command: list[str], env: dict[str, str], keys: list[tuple[str, bytes]], columns: int = 80) -> str:
    """All that a terminal of this width was given by a command, to which somebody typed these keys, each when words stand there."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - another process
        os.execve(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen, left = b"", list(keys)
    try:
        while True:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                return seen.decode("utf-8", "replace")
            while left and left[0][0].encode() in seen:
                os.write(terminal, left.pop(0)[1])
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def test_what_a_terminal_without_a_locale_types_is_read_as_utf_8(home: dict[str, str]):
    plain = home | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    said = on_a_terminal(
        [sys.executable, "-m", "gateway", "chat"],
        plain,
        [("\u203a", "gr\u00fc\u00dfe\r".encode()), ("tool calls]", b"/quit\r")],
    )
    assert "You wrote" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("columns", [30, 80])
def test_a_status_never_takes_two_rows_of_a_terminal(home: dict[str, str], columns: int, tmp_path: Path):
    said = on_a_terminal([str(program(tmp_path)), "ask", "rehearse stall in tool call"], home, [], columns)
    statuses = re.findall(r"\x1b\[2K\x1b\[2m([^\x1b]*)\x1b\[0m", said)
    assert any("write_file" in one for one in statuses) or columns == 30
    assert all(len(one) < columns for one in statuses), statuses
