"""``python -m tests.model.run``: checks the model of claims, lease and send in every order of its steps (spin, and a C compiler).

Three kinds of platforms, and six planted mistakes, each of which has to be found: a model that finds nothing proves nothing. Where spin is not
installed it says so, and what to install; ``--quick`` has one incarnation fewer.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MODEL = Path(__file__).with_name("delivery.pml")
MISSING = "The model was not checked: there is no spin, or no C compiler (Debian: apt install spin gcc)."
SECONDS = 600


@dataclass(frozen=True)
class Question:
    """What is checked, and what has to come of it."""

    what: str
    defined: tuple[str, ...]
    sound: bool


QUESTIONS = (
    Question("a platform that knows keys again", ("ABILITY=2",), True),
    Question("a platform that can be read", ("ABILITY=1",), True),
    Question("a platform that can do neither: the second message says so", ("ABILITY=0",), True),
    Question("a process that is stopped between its look at the lease and its call, with keys", ("ABILITY=2", "PAUSES"), True),
    Question("the same without keys: a double that nobody marked", ("ABILITY=1", "PAUSES"), False),
    Question("planted: writes are not fenced", ("NO_FENCE",), False),
    Question("planted: the lease is not asked", ("NO_LEASE",), False),
    Question("planted: it is not stored that a part is sent", ("NO_BEGUN",), False),
    Question("planted: the end and its parts are two commits", ("SPLIT_CLOSE",), False),
    Question("planted: nobody looks whether a part is there", ("NO_LOOK_UP",), False),
)  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What came of it."""

    sound: bool
    states: int
    said: str


def can_check() -> bool:
    """What is needed is there."""
    return bool(shutil.which("spin") and shutil.which("gcc"))


def check(defined: Sequence[str]) -> Checked:
    """Every order of all steps."""
    flags = [f"-D{one}" for one in defined]
    with tempfile.TemporaryDirectory(prefix="outspoken-model-") as name:
        _run(["spin", "-a", *flags, str(MODEL)], name)
        _run(["gcc", "-O2", "-DSAFETY", *flags, "-o", "pan", "pan.c"], name)
        said = _run(["./pan", "-E", "-m500000"], name)
    states = re.search(r"(\d+(?:\.\d+e\+\d+)?) states, stored", said)
    return Checked("errors: 0" in said, round(float(states[1])) if states else 0, said)


def _run(command: Sequence[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert "syntax error" not in done.stdout, done.stdout
    return done.stdout + done.stderr


def main() -> None:
    """Entry point; exits with 1 if something came out otherwise than it has to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    if not can_check():
        print(MISSING)
        return
    wrong = 0
    for one in QUESTIONS:
        began = time.monotonic()
        found = check([*one.defined, *(["NODES=2"] if asked.quick else [])])
        wrong += found.sound != one.sound
        word = "holds" if found.sound else "does not hold"
        mark = "" if found.sound == one.sound else "  <- it has to come out otherwise"
        print(f"{one.what}: {word} ({found.states} states, {time.monotonic() - began:.0f} s){mark}", flush=True)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
