"""Logs, mostly as a real process writes them."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.redaction import Redactor
from gateway.config.types import LogFormat, LogLevel
from gateway.observe.logging import MAX_CHARS, TEXT_KEYS, Cleaner, LibraryHandler, Pretty, Sink, as_json, configure
from tests import forked

ROOT = Path(__file__).parents[2]
HEAD = """
import logging, sys, warnings, structlog
from agent_core.text.redaction import Redactor
from gateway.config.types import LogFormat, LogLevel
from gateway.observe.logging import configure
sink = configure(LogLevel.INFO, LogFormat(sys.argv[1]), Redactor.of(["swordfish"]), show_text=sys.argv[2] == "show")
log = structlog.get_logger("test")
"""


def run(body: str, form: str = "json", show: str = "hide") -> list[str]:
    """The lines that a process writes to standard error."""
    told = f"import sys\nsys.argv = ['-c', {form!r}, {show!r}]\n{HEAD}{body}\nraise SystemExit"
    done = forked.run([], os.environ, prelude=told)
    assert (done.returncode, done.stdout) == (0, ""), done
    return done.stderr.removesuffix("\n").split("\n")


def events(body: str, show: str = "hide") -> list[dict[str, object]]:
    return [cast("dict[str, object]", json.loads(line)) for line in run(body, show=show)]


def test_each_event_is_one_json_object_with_time_level_name_and_facts() -> None:
    (event,) = events("log.info('gateway.started', model='gpt-5', steps=3)")
    moment = str(event.pop("timestamp"))
    assert event == {"level": "info", "event": "gateway.started", "model": "gpt-5", "steps": 3}
    assert moment.endswith("Z")
    assert len(moment) == len("2026-11-20T10:00:00.123Z")
    assert abs((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()) < 60


def test_json_has_the_names_of_opentelemetry_besides_ours_and_words_for_people_do_not() -> None:
    body = "log.info('turn.ended', model='gpt-5', session='s-1', endpoint='api.example.com')"
    (event,) = events(body)
    assert event["gen_ai.request.model"] == event["model"] == "gpt-5"
    assert event["gen_ai.conversation.id"] == event["session"] == "s-1"
    assert event["gen_ai.provider.name"] == event["endpoint"] == "api.example.com"
    assert "gen_ai" not in run(body, form="pretty")[0]


def test_libraries_log_in_the_same_form_from_warning_on() -> None:
    (event, warned) = events(
        "logging.getLogger('aiohttp.access').info('GET /')\n"
        "logging.getLogger('openai').warning('try %s', 'again')\n"
        "warnings.warn('old')"
    )
    assert (event["event"], event["logger"], event["message"], event["level"]) == (
        "library.message",
        "openai",
        "try again",
        "warning",
    )
    assert warned["logger"] == "py.warnings"


def test_a_connection_that_the_pool_cannot_close_any_more_is_told_in_words() -> None:
    """As a gateway that was suspended finds its connections: the server has ended them."""
    (event,) = events(
        "from sqlalchemy import create_engine\n"
        "engine = create_engine('sqlite://')\n"
        "def refuses(_): raise ConnectionResetError('it is gone')\n"
        "connection = engine.connect()\n"
        "engine.dialect.do_terminate = engine.dialect.do_close = refuses\n"
        "connection.invalidate()"
    )
    assert (event["event"], event["level"]) == ("library.message", "warning")
    assert event["error"] == "ConnectionResetError: it is gone"
    assert "exception" not in event


def test_a_record_whose_arguments_do_not_fit_is_told_nevertheless() -> None:
    (event,) = events("logging.getLogger('x').warning('%d turns', 'many')")
    assert (event["event"], event["logger"]) == ("library.unreadable", "x")
    assert "turns" in str(event["message"])


def test_secrets_do_not_come_out_of_values_names_messages_or_tracebacks() -> None:
    body = """
log.info('a.b', url='http://h/?q=swordfish', headers={'Authorization': 'x', 'n': ['swordfish']}, api_key='abc', swordfish=1)
logging.getLogger('x').warning('Bearer abcdef123456 and %s', 'swordfish')
try:
    key = 'swordfish'
    raise ValueError('swordfish was refused')
except ValueError:
    log.exception('c.d')
    logging.getLogger('x').exception('e')
"""
    for form in ("json", "pretty"):
        lines = run(body, form)
        assert "swordfish" not in "".join(lines)
        assert "abcdef123456" not in "".join(lines)
        assert "was refused" in "".join(lines)
        assert not any("'abc'" in line or '"abc"' in line for line in lines)


def test_what_people_say_is_logged_only_where_it_was_asked_for() -> None:
    body = "log.info('a.b', text='good morning', request={'content': 'dear model'})"
    (hidden,) = events(body)
    assert hidden["text"] == "(12 characters)"
    assert hidden["request"] == {"content": "(10 characters)"}
    (shown,) = events(body, show="show")
    assert shown["text"] == "good morning"
    assert shown["request"] == {"content": "dear model"}


def test_values_that_cannot_be_written_do_not_break_logging() -> None:
    (event,) = events(
        """
class Broken:
    def __repr__(self): raise RuntimeError
loop = []; loop.append(loop)
log.info('a.b', broken=Broken(), half='\\ud800', big=2**80, nan=float('nan'), raw=b'\\xff', loop=loop, keys={1: 2, None: 3})
"""
    )
    assert event["broken"] == "<Broken that cannot be shown>"
    assert event["half"] == "\\ud800"
    assert event["big"] == str(2**80)
    assert event["nan"] is None
    assert event["keys"] == {"1": 2, "None": 3}


def test_the_pretty_form_keeps_an_event_on_its_line_and_indents_tracebacks() -> None:
    lines = run(
        """
log.info('a.b', who='x\\n2026-01-01T00:00:00.000Z [error] fake.event\\x1b[2J\\x9b31m\\u202e')
try:
    raise ValueError('one\\n2026-01-01T00:00:00.000Z [error] fake.event')
except ValueError:
    log.exception('c.d')
""",
        "pretty",
    )
    assert [line for line in lines if not line.startswith("    ")] == [lines[0], lines[1]]
    assert "[info" in lines[0]
    assert "c.d" in lines[1]
    assert "\x1b" not in "".join(lines)
    assert "\x9b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)


def test_auto_is_json_where_no_terminal_reads() -> None:
    (line,) = run("log.info('a.b')", "auto")
    assert json.loads(line)["event"] == "a.b"


def test_auto_is_pretty_and_safe_on_a_terminal() -> None:
    ours, theirs = os.openpty()
    try:
        subprocess.run(
            [sys.executable, "-c", HEAD + "log.info('a.b', who='x\\x1b[2J')", "auto", "hide"],
            stderr=theirs,
            check=True,
            cwd=ROOT,
            timeout=30,
            env={**os.environ, "NO_COLOR": "1"},
        )
        written = os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"[info" in written
    assert b"a.b" in written
    assert b"\x1b[2J" not in written


def test_a_reader_that_went_away_costs_lines_and_not_the_process() -> None:
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            HEAD + "input()\nfor _ in range(100): log.info('a.b')\nprint('alive', sink.lost)",
            "json",
            "",
        ],
        stderr=theirs,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    os.close(theirs)
    os.close(ours)  # before the first line is written
    out, _ = process.communicate(b"\n", timeout=30)
    assert out.split() == [b"alive", b"100"]


def test_a_closed_or_missing_standard_error_costs_lines_and_not_the_process() -> None:
    for closing in ("sys.stderr.close()", "import os; os.close(2)"):
        done = subprocess.run(
            [sys.executable, "-c", HEAD + closing + "\nlog.info('a.b')\nprint('alive', sink.lost)", "json", ""],
            capture_output=True,
            cwd=ROOT,
            timeout=30,
            check=False,
        )
        assert done.stdout.split() == [b"alive", b"1"]
    sink = Sink(None)
    sink.write(b"x")
    assert sink.lost == 1


def test_each_line_that_cannot_be_written_is_counted_and_what_can_be_is_written_whole() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sink = Sink(stream)
    sink.write("ü".encode())
    assert stream.buffer.getvalue() == "ü\n".encode()
    stream.close()
    for lost in (1, 2):
        sink.write(b"x")
        assert sink.lost == lost


# --- in this process ---


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged while the test runs; everything is put back after it."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    yield stream
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = before
    root.setLevel(level)


def test_configuring_again_replaces_what_was_set_up(written: io.StringIO) -> None:
    old = io.StringIO()
    moment = datetime(2026, 11, 20, 10, 0, 0, 5000, tzinfo=UTC)
    configure(LogLevel.DEBUG, LogFormat.JSON, Redactor(), old)
    configure(LogLevel.ERROR, LogFormat.JSON, Redactor(), written, now=lambda: moment)
    log = structlog.get_logger("test")
    log.warning("a.b")
    log.error("c.d")
    logging.getLogger("x").warning("not this")
    assert old.getvalue() == ""
    assert written.getvalue() == '{"timestamp":"2026-11-20T10:00:00.005Z","level":"error","event":"c.d"}\n'
    assert len([handler for handler in logging.getLogger().handlers if isinstance(handler, LibraryHandler)]) == 1


def test_a_long_text_keeps_its_beginning_and_its_end(written: io.StringIO) -> None:
    configure(LogLevel.INFO, LogFormat.JSON, Redactor(), written)
    structlog.get_logger("test").info("a.b", detail="x" + "y" * 3 * MAX_CHARS + "z")
    detail = str(json.loads(written.getvalue())["detail"])
    assert detail.startswith("xy")
    assert detail.endswith("yz")
    assert "characters left out" in detail
    assert len(detail) < MAX_CHARS + 100


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(codec=None)), st.binary()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner, inner)),
    max_leaves=10,
)


@given(facts=st.dictionaries(st.text(max_size=10), anything, max_size=4))
def test_whatever_is_logged_is_one_line_that_steers_no_terminal(facts: dict[str, object]) -> None:
    clean = Cleaner(Redactor.of(["swordfish"]), show_text=True)
    event = cast("dict[str, object]", clean(None, "info", {**facts, "event": "a.b", "level": "info"}))
    event.pop("exception", None)
    event.pop("stack", None)
    for line in (as_json(None, "info", dict(event)), Pretty(colors=False)(None, "info", dict(event))):
        text = line.decode()
        assert not any(
            character < " " or "\x7f" <= character <= "\x9f" or character in "\u2028\u2029\u202e" for character in text
        )
    assert json.loads(as_json(None, "info", event))["event"] == "a.b"


SECRETS = ("api_key", "token", "password", "authorization")
HIDDEN = st.sampled_from([*SECRETS, *sorted(TEXT_KEYS)])
NESTED = st.recursive(
    st.just("MARMALADE"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]) | HIDDEN, inner, max_size=3)
    ),
    max_leaves=6,
)


@given(HIDDEN, NESTED, st.integers(0, 3))
def test_what_is_hidden_is_hidden_however_deep_it_stands_and_whatever_it_is(
    name: str, value: object, deep: int
) -> None:
    told: object = {name: value}
    for _ in range(deep):
        told = {"facts": [told]}
    clean = Cleaner(Redactor.of([]), show_text=False)
    assert "MARMALADE" not in json.dumps(clean(None, "info", {"event": "x", "facts": told, name: value}))
    shown = json.dumps(Cleaner(Redactor.of([]), show_text=True)(None, "info", {"event": "x", "facts": told}))
    if name in SECRETS:
        assert "MARMALADE" not in shown
