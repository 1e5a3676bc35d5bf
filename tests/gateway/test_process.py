"""The program as a person runs it: real processes, real signals, honest exit statuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.daemon import stops
from tests.forked import Forked, run, start
from tests.ports import free_port
from tests.serving import QUICK


def environment(home: Path, port: int, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OUTSPOKEN_", "OPENAI_"))}
    return {**kept, **QUICK, "OUTSPOKEN_HOME": str(home), "OUTSPOKEN_SERVER__PORT": str(port), "NO_COLOR": "1", **more}


def outspoken(env: Mapping[str, str], *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run(list(words), env, stdin=stdin)


@contextmanager
def daemon(env: Mapping[str, str], log: Path, host: str = "127.0.0.1", *, prelude: str = "") -> Generator[Forked]:
    """A running daemon; killed at the end if it is still there."""
    process = start(["run"], env, out=log, err=log, prelude=prelude)
    try:
        url = f"http://{f'[{host}]' if ':' in host else host}:{env['OUTSPOKEN_SERVER__PORT']}/readyz"
        deadline = time.monotonic() + 100
        while True:
            try:
                with urllib.request.urlopen(url, timeout=1):
                    break
            except OSError:
                assert process.returncode is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        yield process
    finally:
        process.kill()


def post(env: Mapping[str, str], words: str, key: str, timeout: float = 30) -> str:
    body = json.dumps({"messages": [{"role": "user", "content": words}], "stream": True}).encode()
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}/v1/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", "Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=timeout) as response:
        return response.read().decode()


def facts(stream: str) -> dict[str, Any]:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return next(chunk["outspoken"] for chunk in chunks if "outspoken" in chunk)


def text(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def test_ask_without_a_daemon_answers_and_its_status_is_honest(tmp_path: Path):
    env = environment(tmp_path, free_port())
    fine = outspoken(env, "ask", "list files")
    assert (fine.returncode, "came back" in fine.stdout) == (0, True), fine.stderr
    assert re.search(r"\[\d+\.\d s · 2 steps · 1 tool call\]", fine.stderr)
    broken = outspoken(env, "ask", "rehearse unauthorised")
    assert broken.returncode == 10
    assert broken.stdout == ""
    assert "[outspoken] The provider did not accept our key" in broken.stderr
    assert "ended: not_authorised" in broken.stderr
    told = json.loads(outspoken(env, "ask", "--json", "rehearse refusal").stdout)
    assert (told["exit"], told["clean"], told["text"]) == ("refused", False, "")
    assert told["notice"].startswith("[outspoken] ")


def test_what_the_gateway_tells_programs_by_default_is_told_to_a_person_in_a_terminal_in_words(tmp_path: Path):
    env = environment(tmp_path, free_port())
    del env["OUTSPOKEN_SERVER__ERRORS"]
    failed = outspoken(env, "ask", "--json", "rehearse unauthorised forever")
    told = json.loads(failed.stdout)
    assert (failed.returncode, told["exit"]) == (10, "not_authorised")
    assert "invalid_api_key" not in told["notice"]
    talk = outspoken(env, "chat", stdin="rehearse unauthorised forever\n/why\n/quit\n")
    assert "The turn ended without an answer" in talk.stderr


def test_ask_and_chat_talk_to_the_daemon_that_runs(tmp_path: Path):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log"):
        assert outspoken(env, "ask", "-", stdin="hello from a pipe").returncode == 0
        chatted = outspoken(env, "chat", stdin="hello\n/help\n/why\n/nonsense\n/quit\n")
        assert chatted.returncode == 0
        assert "You wrote “hello”" in chatted.stdout
        assert "Rehearsal" in chatted.stderr
        assert "answered" in chatted.stderr
        assert "no command /nonsense" in chatted.stderr


def test_a_second_daemon_is_refused_in_words(tmp_path: Path):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log") as first:
        second = outspoken({**env, "OUTSPOKEN_SERVER__PORT": "0"}, "run")
        assert second.returncode == 75
        assert str(first.pid) in second.stderr
        assert "Traceback" not in second.stderr


def test_a_port_in_use_and_a_wrong_key_are_told_with_what_to_do(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = outspoken(environment(tmp_path, port), "run")
    assert refused.returncode == 78
    assert f"Cannot listen at 127.0.0.1:{port}: Address already in use. " in refused.stderr
    unknown = outspoken(environment(tmp_path, 0, OUTSPOKEN_SERVER__HOST="no.such.host.invalid"), "run")
    assert unknown.returncode == 78
    assert "Correct [server] host" in unknown.stderr
    wrong = outspoken(environment(tmp_path, 0, OUTSPOKEN_MODEL__STAL_SECONDS="3"), "config", "check")
    assert wrong.returncode == 78
    assert "stall_seconds" in wrong.stderr.lower()


def test_a_stop_signal_ends_the_daemon_cleanly_and_a_turn_visibly(tmp_path: Path):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log") as process:
        assert facts(post(env, "hello", "K"))["exit"] == "answered"
        packed = outspoken(
            env, "bundle", facts(post(env, "hello", "L"))["turn"], "--output", str(tmp_path / "b.tar.gz")
        )
        assert packed.returncode == 0, packed.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        counted = (archive.extractfile("metrics.txt") or pytest.fail("no metrics")).read().decode()
    assert 'outspoken_turns_total{exit="answered",surface="api"} 2.0' in counted
    log = (tmp_path / "log").read_text()
    assert "gateway.stopped" in log
    ends = [line for line in log.splitlines() if '"turn.ended"' in line]
    assert len(ends) == 2
    assert "Traceback" not in log


NO_TERMINAL = "import os; os.setsid()"
"""As a service manager and a container begin it."""
TERMINAL = f"{NO_TERMINAL}; import fcntl, termios; fcntl.ioctl(os.openpty()[1], termios.TIOCSCTTY, 0)"


def test_a_terminal_that_is_closed_stops_the_daemon_in_order_unless_it_was_to_outlive_that(tmp_path: Path):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log", prelude=TERMINAL) as process:
        process.send_signal(signal.SIGHUP)
        assert process.wait() == 0
    assert "gateway.stopped" in (tmp_path / "log").read_text()
    theirs = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does for what it starts
    try:
        assert signal.SIGHUP not in stops()
    finally:
        signal.signal(signal.SIGHUP, theirs)


def test_a_service_goes_on_when_somebody_means_to_have_its_configuration_read_again_and_says_what_that_takes(
    tmp_path: Path,
):
    env = environment(tmp_path, free_port())
    with daemon(env, tmp_path / "log", prelude=NO_TERMINAL) as process:
        process.send_signal(signal.SIGHUP)
        while "gateway.not_read_again" not in (tmp_path / "log").read_text():
            assert process.returncode is None, "the service manager takes an end in order for a wish"
            time.sleep(0.02)
        assert facts(post(env, "hello", "K"))["exit"] == "answered"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("words", "kill_when", "code", "said"),
    [
        ("count to 30 slowly", "3, 4", "answered", "29, 30."),
        ("rehearse stall in tool call forever", "I will write", "broken_in_tool_call", "was not executed"),
    ],
)
def test_a_daemon_killed_in_the_middle_goes_on_at_the_next_start(
    tmp_path: Path, words: str, kill_when: str, code: str, said: str
):
    env = environment(tmp_path, free_port(), OUTSPOKEN_MODEL__STALL_SECONDS="3")
    body = json.dumps({"messages": [{"role": "user", "content": words}], "stream": True}).encode()
    port = int(env["OUTSPOKEN_SERVER__PORT"])
    with daemon(env, tmp_path / "log") as process, socket.create_connection(("127.0.0.1", port)) as wire:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: K\r\nContent-Length: {len(body)}\r\n\r\n"
        wire.sendall(head.encode() + body)
        heard = ""
        while kill_when.replace(" ", "") not in re.sub(
            r"[^\w,.]", "", "".join(re.findall(r'"content":"([^"]*)"', heard))
        ).replace(" ", ""):
            heard += wire.recv(65536).decode()
        time.sleep(1.2)  # text on its way is journalled within a second
        process.send_signal(signal.SIGKILL)
        process.wait()
    with daemon(env, tmp_path / "log"):
        stream = post(env, words, "K", timeout=60)
    assert facts(stream)["exit"] == code, text(stream)
    assert said in text(stream)
    numbers = re.findall(r"\d+", text(stream)) if words.startswith("count") else []
    assert numbers == [str(n) for n in range(1, 31)] or not numbers


def test_logs_are_json_lines_without_secrets(tmp_path: Path):
    env = environment(
        tmp_path,
        free_port(),
        OUTSPOKEN_MODEL__BASE_URL="http://127.0.0.1:9/v1",
        OUTSPOKEN_MODEL__NAME="m",
        OPENAI_API_KEY="sk-abcdefghijklmnop",
    )
    with daemon(env, tmp_path / "log") as process:
        stream = post(env, "hello\nforged: line", "K")
        assert facts(stream)["exit"] == "provider_down"
        process.send_signal(signal.SIGTERM)
        process.wait()
    lines = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("{")]
    ended = [json.loads(line) for line in lines if '"turn.ended"' in line]
    assert len(ended) == 1
    assert {"exit", "seconds", "steps", "input_tokens", "rungs", "fingerprint", "turn", "session", "surface"} <= set(
        ended[0]
    )
    assert "sk-abcdefghijklmnop" not in "".join(lines) + stream
