"""``python -m tests.kills.run --kills 200 --seed 1``: kills a real gateway with SIGKILL at random moments and starts it again.

Each round gives the gateway a message and kills it: at a random time, when text came, or the moment a tool has done its work.
The next process must bring the message to a visible end. What people saw, what the model was sent and what the tools did to a
file are compared: no message lost, no line appended twice, no invalid conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.config.paths import find_paths
from gateway.config.reading import load
from gateway.daemon import run_daemon
from gateway.operate.context import configure_logs
from gateway.sessions import atonce
from tests.kills.model import STEPS, appended
from tests.laws.look import breaches
from tests.ports import free_port

SESSIONS = 4
READY_SECONDS = 100.0
END_SECONDS = 60.0
MODEL_LOG = "model.log"
STORAGE = "OUTSPOKEN_STORAGE__URL"
"""Where it is stored, if that is not a file of the gateway's home."""


@dataclass
class Outcome:
    """What came of all rounds."""

    kills: int = 0
    moments: Counter[str] = field(default_factory=Counter[str])
    exits: Counter[str] = field(default_factory=Counter[str])
    model_calls: int = 0
    lines: int = 0
    broken: list[str] = field(default_factory=list[str])


def _gateway(env: dict[str, str], home: Path, *, wary: bool) -> None:
    """What the child does: the daemon, as the command runs it; not `wary`: as if no process had ever died."""
    if not wary:
        atonce.WARY_MS = 0
    paths = find_paths(env, home)
    config = load(paths.config_file, env).config
    configure_logs(config)
    asyncio.run(run_daemon(config, paths, lambda _: None))


def environment(home: Path, port: int, model_port: int) -> dict[str, str]:
    """What a gateway that is going to be killed is told."""
    return {
        "OUTSPOKEN_HOME": str(home),
        "OUTSPOKEN_SERVER__PORT": str(port),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{model_port}/v1",
        "OPENAI_API_KEY": "kills",
        "OUTSPOKEN_MODEL__NAME": "kills",
        "OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "0.05",
        **({STORAGE: os.environ[STORAGE]} if STORAGE in os.environ else {}),
    }


def listening(port: int) -> None:
    """Come back as soon as somebody listens there."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise RuntimeError(f"nobody listens at {port} within {READY_SECONDS:.0f} s")


@contextmanager
def living(env: dict[str, str], home: Path, port: int, *, wary: bool = True) -> Generator[int]:
    """A gateway in a forked child (a fresh interpreter would take most of the time); killed at the end if it still lives."""
    pid = os.fork()
    if pid == 0:
        try:
            with (home / "gateway.log").open("ab") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            _gateway(env, home, wary=wary)
        finally:
            os._exit(1)
    try:
        _wait_until_ready(port, pid, home / "gateway.log")
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _wait_until_ready(port: int, pid: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        with suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.02)
    said = log.read_text(errors="replace")[-4_000:]
    raise RuntimeError(f"the gateway (process {pid}) has ended, or was not ready within {READY_SECONDS:.0f} s:\n{said}")


def ask(port: int, name: str, number: int) -> http.client.HTTPResponse:
    """Send the message, or send it again; its stream."""
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": f"task {name}"}]})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=END_SECONDS)
    headers = {"Content-Type": "application/json", "Idempotency-Key": name}
    if number % 2:  # the others bring all of their conversation
        headers["X-Outspoken-Session"] = f"s{number % (2 * SESSIONS)}"
    connection.request("POST", "/v1/chat/completions", body, headers)
    return connection.getresponse()


def ending(port: int, name: str, number: int) -> tuple[str, str]:
    """(exit, everything said) of a message, waited for."""
    said, code = "", ""
    for line in ask(port, name, number).read().decode().splitlines():
        if not line.startswith("data: {"):
            continue
        chunk: dict[str, Any] = json.loads(line[6:])
        said += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
        code = chunk.get("outspoken", {}).get("exit", code)
    return code, said


def _asked(home: Path) -> list[dict[str, Any]]:
    """What the model was asked, and the lines of the task that stood in its file then."""
    return [json.loads(line) for line in (home / MODEL_LOG).read_text().splitlines()]


def kill_in_the_middle(port: int, pid: int, name: str, number: int, home: Path, draw: random.Random) -> str:
    """Send a message and kill the gateway at a drawn moment; which."""
    moment = draw.choice(("time", "text", "tool", "tool", "result"))
    wanted = draw.randint(1, STEPS)
    stream = ask(port, name, number)
    sent = time.monotonic()
    deadline = sent + (draw.uniform(0.0, 0.7) if moment == "time" else 10.0)
    while time.monotonic() < deadline:
        if moment == "text" and b"content" in stream.readline():
            time.sleep(draw.uniform(0.0, 0.2))
            break
        if moment in ("tool", "result") and len(appended(home, name)) >= wanted:
            time.sleep(0.0 if moment == "tool" else draw.uniform(0.001, 0.02))
            break
        time.sleep(0.0005)
    os.kill(pid, signal.SIGKILL)
    stream.close()
    return moment


def run(kills: int, seed: int, home: Path) -> Outcome:
    """All rounds, and the comparison at the end."""
    draw = random.Random(seed)
    outcome = Outcome()
    port, model_port, log = free_port(), free_port(), home / MODEL_LOG
    env = environment(home, port, model_port)
    model = subprocess.Popen([sys.executable, "-m", "tests.kills.model", str(model_port), str(log)])
    open_tasks: list[int] = []
    try:
        listening(model_port)
        for number in range(kills + 1):
            with living(env, home, port, wary=draw.random() < 0.5) as pid:
                for earlier in open_tasks:
                    _check_end(outcome, port, earlier, home)
                open_tasks.clear()
                if number < kills:
                    outcome.moments[kill_in_the_middle(port, pid, f"t{number}", number, home, draw)] += 1
                    outcome.kills += 1
                    open_tasks.append(number)
    finally:
        model.terminate()
        model.wait(10)
    _compare(outcome, home, kills)
    outcome.broken += [
        f"{one.law.value}: {one.what}" for one in asyncio.run(breaches(os.environ.get(STORAGE, home / "outspoken.db")))
    ]
    return outcome


def _check_end(outcome: Outcome, port: int, number: int, home: Path) -> None:
    name = f"t{number}"
    code, said = ending(port, name, number)
    outcome.exits[code or "none"] += 1
    seen: list[list[str]] = [asked["lines"] for asked in _asked(home) if asked["task"] == name]
    lines = Counter(seen[-1])
    outcome.lines += sum(lines.values())
    done = [lines[f"{name}.{step}"] for step in range(STEPS)]
    match code:
        case "answered":
            if f"finished {name}." not in said or done != [1] * STEPS:
                outcome.broken.append(
                    f"{name} was answered, its lines were appended {done} times, and it said {said!r}"
                )
        case _:
            outcome.broken.append(f"{name} ended with {code!r}: {said!r}")


def _compare(outcome: Outcome, home: Path, kills: int) -> None:
    """What the model was sent, against what the tools did; and what is left in the end."""
    left = Counter(line for number in range(kills) for line in appended(home, f"t{number}"))
    outcome.broken += [f"line {line} was appended {count} times" for line, count in left.items() if count > 1]
    seen: dict[str, int] = {}
    for request in _asked(home):
        outcome.model_calls += 1
        outcome.broken += [f"invalid conversation for {request['task']}: {p}" for p in request["problems"]]
        if request["returned"] < seen.get(request["task"], 0):
            outcome.broken.append(f"{request['task']} was asked for a step that it had behind it")
        seen[request["task"]] = request["returned"]
    if sum(outcome.exits.values()) != kills:
        outcome.broken.append(f"{kills} messages, {sum(outcome.exits.values())} endings")


def main() -> None:
    """Entry point; exits with 1 if a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="outspoken-kills-") as name:
        outcome = run(asked.kills, asked.seed, Path(name))
    print(f"{outcome.kills} kills in {time.monotonic() - began:.0f} s, at: {dict(outcome.moments)}")
    print(f"endings: {dict(outcome.exits)}; {outcome.model_calls} model calls, {outcome.lines} lines appended")
    print("\n".join(outcome.broken[:20]))
    sys.exit(bool(outcome.broken))


if __name__ == "__main__":
    main()
