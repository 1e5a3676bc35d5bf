"""``python -m tests.mutants.run --seed 1 --count 40``: makes mutants of the modules that decide, drawn by a seed, and asks their tests.

Each is tried in a copy of the program, so that nobody else sees it. A mutant that a test fails with is found; one that all of its tests pass is a
survivor, and ``docs/mutants.md`` (``--page``) has it with its reason, or a test is written for it. Those that have a reason are in `reasons`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.making import Mutant, mutants
from tests.mutants.map import MAP
from tests.mutants.named import NAMED, named
from tests.mutants.page import write

ROOT = Path(__file__).parents[2]
COPIED = ("agent_core", "gateway", "adapters", "migrations", "tests", "docs", "deploy")
SECONDS = 240
"""A mutant that makes its tests run for so long is found: no test takes a tenth of it."""
RESULTS = ROOT / "tests" / "mutants" / "results.json"


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    name: str
    found: bool
    by: str
    seconds: float


def copied(folder: Path) -> None:
    """The program, to be changed."""
    ignored = shutil.ignore_patterns(".hypothesis", "node_modules", "__pycache__")
    for part in COPIED:
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for name in ("pyproject.toml", "hatch_build.py", "mkdocs.yml", "README.md", "Makefile"):
        shutil.copy(ROOT / name, folder)


def tried(folder: Path, mutant: Mutant, tests: Sequence[str]) -> Result:
    """Ask the tests, the nearest first, until one fails."""
    file = folder / mutant.path
    before = file.read_text("utf-8")
    began = time.monotonic()
    file.write_text(mutant.source, "utf-8")
    try:
        for test in tests:
            said, status = asked(folder, test)
            if status not in (0, 5):
                return Result(mutant.name, True, said, time.monotonic() - began)
        return Result(mutant.name, False, "", time.monotonic() - began)
    finally:
        file.write_text(before, "utf-8")


def asked(folder: Path, test: str) -> tuple[str, int]:
    """The test that failed, and pytest's exit status."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-seed=1",
        *test.split(),
    ]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{test}: it did not end", 1
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (failed[0].removeprefix("FAILED ").partition(" - ")[0] if failed else test), done.returncode


def kept(one: Result) -> None:
    """A result is kept as soon as it is there: a run takes hours, and may be stopped."""
    known = {each["name"]: each for each in json.loads(RESULTS.read_text("utf-8"))} if RESULTS.exists() else {}
    known[one.name] = {"name": one.name, "found": one.found, "by": one.by}
    results = sorted(known.values(), key=lambda each: str(each["name"]))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    write(results)


def drawn(seed: int, count: int, only: str) -> list[Mutant]:
    """A sample of all mutants of all modules, or of one."""
    paths = [path for path in MAP if only in path]
    every = [one for path in paths for one in mutants(path, (ROOT / path).read_text("utf-8"))]
    return random.Random(seed).sample(every, min(count, len(every)))


def main() -> None:
    """Entry point; exits with 1 if a mutant survives that has no reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", default="", help="modules whose path has this in it")
    parser.add_argument("--named", action="store_true", help="only those that somebody else has planted once")
    parser.add_argument("--page", action="store_true", help="add what was found to docs/mutants.md")
    asked_for = parser.parse_args()
    chosen: list[tuple[Mutant, Sequence[str]]] = [(named(one, ROOT), one.tests) for one in NAMED]
    if not asked_for.named:
        chosen = [(one, MAP[one.path]) for one in drawn(asked_for.seed, asked_for.count, asked_for.only)]
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="outspoken-mutants-") as name:
        copied(Path(name))
        for mutant, tests in chosen:
            results.append(tried(Path(name), mutant, tests))
            one = results[-1]
            if asked_for.page:
                kept(one)
            print(f"{'found   ' if one.found else 'SURVIVES'} {one.seconds:4.0f} s  {one.name}  {one.by}", flush=True)
    survivors = [one.name for one in results if not one.found]
    print(f"{len(results) - len(survivors)} of {len(results)} found")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
