"""``python -m tests.mutants.run --seed 1 --count 40``: makes mutants of the product, drawn by a seed, and asks their tests.

Each is tried in a process of its own, which is forked when all tests are collected. One that a test fails with is found; one that all of its tests
pass is a survivor, and ``docs/mutants.md`` (``--page``) has it with its reason, or a test is written for it. The first run has to find out which test
reaches what (``--reach`` does it again); that takes as long as the tests do.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mutants.making import Mutant, mutants
from tests.mutants.map import ASKED, modules
from tests.mutants.named import FILE, named, planted
from tests.mutants.page import REASONS, reason_of, write
from tests.mutants.reach import KEPT, known
from tests.mutants.trying import Recording, Result, Trying

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "mutants" / "results.json"
SECONDS = 40.0
"""So long may the tests of a mutant take together, where they pass."""


def kept(one: Result) -> None:
    """A result is kept as soon as it is there: a run takes hours, and may be stopped."""
    known = {each["name"]: each for each in json.loads(RESULTS.read_text("utf-8"))} if RESULTS.exists() else {}
    name = one.mutant.name
    known[name] = {"name": name, "found": one.outcome == "found", "by": one.by, "asked": one.asked}
    results = sorted(known.values(), key=lambda each: str(each["name"]))
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    write(results)


def every(only: Sequence[str]) -> list[Mutant]:
    """All mutants that can be planted, of all modules or of some."""
    return [one for path in modules(only) for one in mutants(path, (ROOT / path).read_text("utf-8")) if one.within]


def drawn(seed: int, count: int, only: Sequence[str]) -> list[Mutant]:
    """A sample of them."""
    found = every(only)
    return random.Random(seed).sample(found, min(count, len(found)))


def survivors() -> frozenset[str]:
    """The names of those that got through, and for which nobody has given a reason."""
    reasons = tomllib.loads(REASONS.read_text("utf-8"))
    told = json.loads(RESULTS.read_text("utf-8"))
    return frozenset(one["name"] for one in told if not one["found"] and not reason_of(one["name"], reasons))


def prepare() -> None:
    """What the forked processes share. It is imported late, as pytest wants to be there first."""
    from tests.conftest import shared
    from tests.databases import postgres_url

    shared()
    postgres_url()  # of this process: what a forked one starts ends with it


def examples() -> None:
    """The first example that fails is enough."""
    from hypothesis import Phase, settings

    settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")


def collected(plugin: object, tests: Sequence[str]) -> None:
    """Collect tests, and let the plugin do what it likes with them."""
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = tempfile.mkdtemp(prefix="outspoken-mutants-")
    options = ["-q", "-s", "-p", "no:cacheprovider", "--hypothesis-seed=1", "--timeout=0"]
    pytest.main([*options, *tests], plugins=[plugin, SimpleNamespace(pytest_configure=examples)])


def main() -> None:
    """Entry point; exits with 1 if a mutant survives that has no reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", action="append", default=[], help="modules whose path has this in it; again: or this")
    parser.add_argument("--left", action="store_true", help="those that have survived, instead of drawn ones")
    parser.add_argument(
        "--named", action="store_true", help="those that somebody has planted by hand, instead of drawn ones"
    )
    parser.add_argument("--file", type=Path, default=FILE, help="where these are")
    parser.add_argument("--page", action="store_true", help="add what was found to docs/mutants.md")
    parser.add_argument("--reach", action="store_true", help="find out anew which test reaches what, and no more")
    parser.add_argument("--processes", type=int, default=2, help="for --reach")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for the tests of a mutant together")
    parser.add_argument("tests", nargs="*", help="ask no others than those here")
    asked_for = parser.parse_args()
    tests: Sequence[str] = asked_for.tests or ASKED
    if asked_for.reach or not KEPT.exists():
        collected(Recording(asked_for.processes, prepare), tests)
        if asked_for.reach:
            return
    if asked_for.named:
        chosen = [named(one, ROOT) for one in planted(asked_for.file)]
    elif asked_for.left:
        chosen = [one for one in every(asked_for.only) if one.name in survivors()]
    else:
        chosen = drawn(asked_for.seed, asked_for.count, asked_for.only)
    results: list[Result] = []
    out = os.dup(1)  # pytest takes the other

    def tell(one: Result) -> None:
        results.append(one)
        if asked_for.page:
            kept(one)
        line = f"{one.outcome:11} {one.seconds:4.0f} s  {one.asked:4} {one.mutant.name}  {one.by}\n"
        os.write(out, line.encode())

    collected(Trying(chosen, known(), asked_for.seconds, prepare, tell), tests)
    through = [one for one in results if one.outcome != "found"]
    print(f"{len(results) - len(through)} of {len(results)} found")
    sys.exit(bool(through))


if __name__ == "__main__":
    main()
