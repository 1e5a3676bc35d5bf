"""What is printed is seen, and does nothing to a terminal: the real program, with a model and people who try."""

from __future__ import annotations

import io
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adapters.terminal.screen import Screen, draw
from tests.forked import run

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
