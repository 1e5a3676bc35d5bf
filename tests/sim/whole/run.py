"""``python -m tests.sim.whole.run --turns 1000 --seed 1``: the whole daemon in virtual time; exits with 1 if a law is broken.

Of the first scenario that fails, the smallest form that still fails is looked for, and told in ten lines. ``--only SEED`` runs one.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.sim import world
from tests.sim.apart import apart
from tests.sim.loop import TooManySteps
from tests.sim.run import template
from tests.sim.whole import scenario as whole
from tests.sim.whole.laws import broken
from tests.sim.whole.rare import met, missing
from tests.sim.whole.scenario import Plan, Result, Scenario, plan
from tests.sim.whole.shrink import shrunk, story

SCENARIOS_A_CHILD = 40


@dataclass
class Totals:
    """What was simulated."""

    turns: int = 0
    scenarios: int = 0
    incarnations: int = 0
    calls: int = 0
    virtual_seconds: float = 0.0
    met: Counter[str] = field(default_factory=Counter[str])
    failures: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])


def played(of: Plan, folder: Path) -> tuple[Result, list[str]]:
    """A scenario, and the laws that it breaks."""
    made = Scenario(of, folder)
    try:
        result = made.run()
        return result, broken(result)
    except (Exception, TooManySteps) as error:  # noqa: BLE001 - whatever breaks here is a finding
        return made.result, [f"{type(error).__name__}: {error}", *traceback.format_exception(error)[-4:]]


def _begin(folder: Path) -> None:
    """Make this process ready. What is loaded and prepared at the first use takes steps of the loop, so one scenario is run for nothing."""
    gc.disable()
    logging.disable(logging.CRITICAL)
    world.install()
    whole.install()
    for seed in (2, 5):
        played(plan(seed), folder)


def _scenarios(first: int, count: int, folder: Path) -> dict[str, Any]:
    """In a child of their own."""
    totals = Totals()
    _begin(folder)
    for seed in range(first, first + count):
        result, found = played(plan(seed), folder)
        totals.scenarios += 1
        totals.turns += len({e["turn"] for e in result.logged if e["event"] == "turn.ended"})
        totals.incarnations += result.incarnations
        totals.calls += result.service.calls.total()
        totals.virtual_seconds += result.seconds
        totals.met.update(met(result))
        if found:
            least = shrunk(plan(seed), lambda less: played(less, folder)[1])
            again, why = played(least, folder)
            totals.failures.append((seed, [*found[:3], *story(again, why)]))
            break
    return vars(totals)


def _batch(first: int, count: int, folder: Path, totals: Totals) -> None:
    """Some scenarios in a child."""
    got = apart(lambda: _scenarios(first, count, folder))
    if got is None:
        totals.failures.append((first, ["the child died"]))
        return
    for name in ("turns", "scenarios", "incarnations", "calls", "virtual_seconds"):
        setattr(totals, name, getattr(totals, name) + got[name])
    totals.met.update(got["met"])
    totals.failures += [(seed, found) for seed, found in got["failures"]]


def simulate(turns: int, seed: int) -> Totals:
    """At least so many turns, from `seed` on, or until a law is broken."""
    totals = Totals()
    with template() as folder:
        while totals.turns < turns and not totals.failures:
            count = min(SCENARIOS_A_CHILD, (turns - totals.turns) // 4 + 1)
            _batch(seed, count, folder, totals)
            seed += count
    return totals


def _report(totals: Totals, seconds: float) -> None:
    print(
        f"{totals.turns} turns in {totals.scenarios} scenarios, {totals.incarnations} incarnations, {totals.calls} calls to the service, "
        f"{totals.virtual_seconds / 3600:.1f} h of virtual time"
    )
    print(f"{seconds:.1f} s, {totals.turns / seconds:.0f} turns/s on one core")
    print("reached:", ", ".join(f"{what} {count}" for what, count in totals.met.most_common() if count))
    print("not reached:", ", ".join(missing(totals.met)) or "nothing")
    for seed, lines in totals.failures:
        print(f"\nseed {seed}:")
        for line in lines:
            print(f"  {line[:400]}")
        print(f"  again: python -m tests.sim.whole.run --only {seed}")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this scenario, in this process")
    asked = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.sim.whole.run", *sys.argv[1:]])
    began = time.monotonic()
    totals = simulate(1, asked.only) if asked.only is not None else simulate(asked.turns, asked.seed)
    _report(totals, time.monotonic() - began)
    sys.exit(bool(totals.failures))


if __name__ == "__main__":
    main()
