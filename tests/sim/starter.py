"""``python -m tests.sim.starter``: runs of the simulation, each forked from one process that has imported what they need: that takes as long as a
hundred turns.

Each line that it is given is a list of arguments of ``tests.sim.run``; each line that it answers has the status and what was said.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

NEEDED = ("tests.sim.run", "tests.sim.several.cluster", "tests.sim.several.laws", "tests.sim.several.server")


@dataclass(frozen=True)
class Done:
    """What came of a run."""

    returncode: int
    said: str


@dataclass(frozen=True)
class Starter:
    """The process that they are forked from."""

    asked: IO[str]
    answered: IO[str]

    def run(self, *arguments: str) -> Done:
        """One run, to its end."""
        print(json.dumps(arguments), file=self.asked, flush=True)
        return Done(*json.loads(self.answered.readline()))


@contextmanager
def started() -> Generator[Starter]:
    """Ends with the block."""
    command = [sys.executable, "-m", "tests.sim.starter"]
    env = {**os.environ, "PYTHONHASHSEED": "0"}
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Starter(process.stdin, process.stdout)
        process.stdin.close()


def _forked(arguments: Sequence[str]) -> Done:
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for stream in (1, 2):
                    os.dup2(said.fileno(), stream)
                sys.argv[1:] = arguments
                status = _run()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return Done(os.waitstatus_to_exitcode(status), said.read())


def _run() -> int:
    from tests.sim.run import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def main() -> None:
    """Entry point."""
    for name in NEEDED:
        importlib.import_module(name)
    for line in sys.stdin:
        done = _forked(json.loads(line))
        print(json.dumps([done.returncode, done.said]), flush=True)


if __name__ == "__main__":
    main()
