"""The command in a process of its own, forked from one in which the imports are done: these take most of a short process' time.

It is a real process with its own environment, working directory and streams, and can be killed. What tests the start of the interpreter
itself (the entry point, signals at the start, a terminal) starts one instead.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXIT_SECONDS = 60.0

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.preloaded"])
_SERVER: object = vars(forkserver)["_forkserver"]


def begin() -> None:
    """Start the process that forks the others. Processes that are forked from this one share it."""
    forkserver.ensure_running()
    vars(_SERVER)["ensure_running"] = lambda: None  # it would wait for a child, and theirs it is not


def servers() -> list[int]:
    """The process that forks the others, if it has begun."""
    pid: int | None = vars(_SERVER)["_forkserver_pid"]
    return [] if pid is None else [pid]


@dataclass
class Forked:
    """A running command, or one that has ended."""

    process: ForkServerProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative after a signal."""
        return self.process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """As a power cut would, if it still runs; comes back when it is gone."""
        self.process.kill()
        self.wait()

    def wait(self, seconds: float = EXIT_SECONDS) -> int:
        """Until it has ended; its status."""
        self.process.join(seconds)
        status = self.process.exitcode
        if status is None:
            self.process.kill()
            raise TimeoutError(f"it still ran after {seconds:g} s and was killed")
        return status


def start(
    words: list[str],
    env: Mapping[str, str],
    *,
    out: Path,
    err: Path,
    stdin: Path | None = None,
    folder: Path = ROOT,
    prelude: str = "",
) -> Forked:
    """Start ``outspoken`` with `words`. What it says is appended to `out` and `err`; `prelude` is run before."""
    paths = (str(stdin or os.devnull), str(out), str(err))
    process = _CONTEXT.Process(target=_command, args=(words, dict(env), paths, str(folder), prelude))
    process.start()
    return Forked(process)


def run(
    words: list[str], env: Mapping[str, str], *, stdin: str = "", together: bool = False, prelude: str = ""
) -> subprocess.CompletedProcess[str]:
    """Let the command run to its end; `together`: both streams as standard output, in the order in which things were said. A `prelude` that
    raises `SystemExit` is all that is run."""
    with tempfile.TemporaryDirectory(prefix="outspoken-ran-") as name:
        given, out, err = (Path(name) / each for each in ("in", "out", "err"))
        given.write_text(stdin)
        err.touch()
        status = start(words, env, out=out, err=out if together else err, stdin=given, prelude=prelude).wait()
        return subprocess.CompletedProcess(words, status, out.read_text(), err.read_text())


def first_line(started: Forked, out: Path, seconds: float) -> str:
    """What it said first, without the end of the line."""
    deadline = time.monotonic() + seconds
    while True:
        said = out.read_text() if out.exists() else ""
        if "\n" in said:
            return said.partition("\n")[0]
        assert started.returncode is None, f"it ended with {started.returncode}: {said!r}"
        assert time.monotonic() < deadline, "it said nothing"
        time.sleep(0.01)


def other(target: Callable[..., None], *given: object) -> ForkServerProcess:
    """Something else that is to have everything that a gateway imports."""
    process = _CONTEXT.Process(target=target, args=given, daemon=True)
    process.start()
    return process


def _command(words: list[str], env: dict[str, str], paths: tuple[str, str, str], folder: str, prelude: str) -> None:
    """In the child."""
    os.chdir(folder)
    for number, path in enumerate(paths):
        how = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        opened = os.open(path, how, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    as_command(words, env, prelude)


def as_command(words: list[str], env: dict[str, str], prelude: str = "") -> None:
    """In the child, which has its streams and its folder: everything else that a new interpreter would have found."""
    os.environ.clear()
    os.environ.update(env)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process lives
    sys.stdout, sys.stderr = (_stream(number) for number in (1, 2))
    sys.argv = ["outspoken", *words]
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have begun them with nohup
    exec(prelude, {})
    from gateway.cli.command import main

    with contextlib.suppress(BrokenPipeError):
        main()


def _stream(number: int) -> io.TextIOWrapper:
    return open(number, "w", encoding="utf-8", buffering=1, closefd=False)  # as long as the process lives
