"""``python -m tests.sim.run --turns 1000 --seed 1``: simulates until that many turns are over; exits with 1 if a law is broken.

Scenarios run in forked children, a few hundred turns each. Several ``--seed``s, each with its ``--turns``, are simulated one after the other.
``--only SEED`` runs one scenario and prints its fingerprint: the same seed gives the same one.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gateway.warming as warming
from agent_core.ports import SystemClock, SystemIds
from agent_core.rules.promises import ROWS
from agent_core.rules.promising.language import languages
from agent_core.store.store import open_store
from tests.laws.look import breaches
from tests.sim import world
from tests.sim.apart import apart
from tests.sim.laws import broken
from tests.sim.loop import TooManySteps
from tests.sim.rare import met, missing
from tests.sim.scenario import Result, Scenario, digest

SCENARIOS_A_CHILD = 40
AUDITED_EVERY = 8
"""The database of every so many-th scenario is kept, and audited where nothing is simulated."""
LEFT = "left-by-"
TURNS_A_SCENARIO = 7
"""About so many: what is asked for is not much exceeded."""


@dataclass
class Totals:
    turns: int = 0
    scenarios: int = 0
    incarnations: int = 0
    asked: int = 0
    tools: int = 0
    virtual_seconds: float = 0.0
    exits: Counter[str] = field(default_factory=Counter[str])
    met: Counter[str] = field(default_factory=Counter[str])
    """Rare situations that were reached."""
    failures: list[tuple[int, list[str]]] = field(default_factory=list[tuple[int, list[str]]])


@contextmanager
def template() -> Generator[Path]:
    """A folder with an empty database of the newest schema, in memory where there is room, and this process warm for its children."""

    async def make(folder: Path) -> None:
        clock = SystemClock()
        async with open_store(folder / "template.db", clock=clock, ids=SystemIds(clock), version="sim"):
            pass

    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="outspoken-sim-", dir=shm if shm.is_dir() else None) as name:
        asyncio.run(make(Path(name)))
        warm()
        yield Path(name)


def warm() -> None:
    """Make what the daemon makes behind its open port, once for all children: else each of them compiles its own patterns."""
    warming.BREATH_SECONDS = 0.0
    warming.make_records()
    for language in languages():
        _ = ROWS[language.code]


SEVERAL_SEEDS = range(20_000_000, 30_000_000)
"""Scenarios of several gateways at once."""


def _played(seed: int, folder: Path) -> tuple[Result, list[str]]:
    """What came of a scenario, and the laws that it breaks."""
    if seed not in SEVERAL_SEEDS:
        result = Scenario(seed, folder).run()
        return result, broken(result)
    from tests.sim.several.cluster import Cluster
    from tests.sim.several.laws import broken as broken_by_several

    cluster = Cluster(seed, folder)
    result = cluster.run()
    return result, broken_by_several(result, within_ms=cluster.soon_ms)


def one(seed: int, folder: Path, totals: Totals) -> Result | None:
    """Run one scenario; None if it broke."""
    try:
        result, found = _played(seed, folder)
    except (Exception, TooManySteps) as error:  # noqa: BLE001 - whatever breaks here is a finding
        last = traceback.format_exception(error)[-6:]
        totals.failures.append((seed, [f"{type(error).__name__}: {error}", *last]))
        totals.scenarios += 1
        totals.turns += 1
        return None
    totals.scenarios += 1
    totals.turns += len({said.ended.turn for said in result.plan.said if said.ended is not None})
    totals.incarnations += result.incarnations
    totals.asked += result.asked
    totals.tools += len(result.runs.begun)
    totals.virtual_seconds += result.seconds
    totals.exits.update(said.ended.exit.code.value for said in result.plan.said if said.ended is not None)
    totals.met.update(met(result))
    if found:
        totals.failures.append((seed, found))
    if seed and seed % AUDITED_EVERY == 0 and not result.plan.storage:
        with (
            closing(sqlite3.connect(result.path)) as left,
            closing(sqlite3.connect(folder / f"{LEFT}{seed}.db")) as kept,
        ):
            left.backup(kept)
    return result


def audit(folder: Path, totals: Totals) -> None:
    """What scenarios left, read by somebody who has simulated nothing. Their times are their own: how long something waits is not asked."""
    for path in sorted(folder.glob(f"{LEFT}*.db")):
        found = asyncio.run(breaches(path, now=1, late_ms=1 << 60))
        if found:
            seed = int(path.stem.removeprefix(LEFT))
            totals.failures.append((seed, [f"the auditor: {one.law.value}: {one.what}" for one in found]))
        path.unlink()


def _begin(folder: Path, first: int) -> None:
    """Make this process ready. Engines ask more at their first use, so one scenario is run for nothing."""
    gc.disable()
    logging.disable(logging.CRITICAL)
    world.install()
    several = first in SEVERAL_SEEDS
    if several:
        from tests.sim.several import server

        server.install()
    one(SEVERAL_SEEDS[0] if several else 0, folder, Totals())


def _scenarios(first: int, count: int, folder: Path, *, stop_at_failure: bool) -> dict[str, Any]:
    """In a child of their own."""
    totals = Totals()
    _begin(folder, first)
    for seed in range(first, first + count):
        one(seed, folder, totals)
        if totals.failures and stop_at_failure:
            break
    return vars(totals)


def batch(first: int, count: int, folder: Path, totals: Totals, *, stop_at_failure: bool) -> None:
    """Some scenarios in a child."""
    got = apart(lambda: _scenarios(first, count, folder, stop_at_failure=stop_at_failure))
    audit(folder, totals)
    if got is None:
        totals.failures.append((first, ["the child died"]))
        totals.turns += 1
        return
    for name in ("turns", "scenarios", "incarnations", "asked", "tools", "virtual_seconds"):
        setattr(totals, name, getattr(totals, name) + got[name])
    totals.exits.update(got["exits"])
    totals.met.update(got["met"])
    totals.failures += [(seed, found) for seed, found in got["failures"]]


def simulate(turns: int, seed: int, folder: Path, totals: Totals, *, stop_at_failure: bool = True) -> None:
    """At least `turns` turns, from `seed` on."""
    turns += totals.turns
    while totals.turns < turns and not (totals.failures and stop_at_failure):
        count = min(SCENARIOS_A_CHILD, (turns - totals.turns - 1) // TURNS_A_SCENARIO + 1)
        batch(seed, count, folder, totals, stop_at_failure=stop_at_failure)
        seed += count


def _report(totals: Totals, seconds: float) -> None:
    print(
        f"{totals.turns} turns in {totals.scenarios} scenarios, {totals.incarnations} incarnations, {totals.asked} model calls, "
        f"{totals.tools} tool runs, {totals.virtual_seconds / 3600:.1f} h of virtual time"
    )
    print(f"{seconds:.1f} s, {totals.turns / seconds:.0f} turns/s on one core")
    print("exits:", ", ".join(f"{code} {count}" for code, count in totals.exits.most_common()))
    print("reached:", ", ".join(f"{what} {count}" for what, count in totals.met.most_common() if count))
    print("not reached:", ", ".join(missing(totals.met)) or "nothing")
    for seed, found in totals.failures[:10]:
        print(f"\nseed {seed}:")
        for line in found[:12]:
            print(f"  {line[:1200]}")
        print(f"  again: PYTHONHASHSEED=0 python -m tests.sim.run --only {seed}")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=[1_000], nargs="+")
    parser.add_argument("--seed", type=int, default=[1], nargs="+")
    parser.add_argument("--only", type=int, nargs="+", help="these scenarios, in this process")
    parser.add_argument("--all", action="store_true", help="go on after a failure")
    asked = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.sim.run", *sys.argv[1:]])
    began = time.monotonic()
    if asked.only is not None:
        totals = Totals()
        with template() as folder:
            _begin(folder, asked.only[0])
            for seed in asked.only:
                played = one(seed, folder, totals)
                print("fingerprint", "" if played is None else digest(played))
        _report(totals, time.monotonic() - began)
        sys.stdout.flush()
        os._exit(bool(totals.failures))  # without any clean-up
    if len(asked.turns) not in (1, len(asked.seed)):
        parser.error("as many --turns as --seed, or one for all")
    totals = Totals()
    with template() as folder:
        for seed, turns in zip(asked.seed, asked.turns * len(asked.seed), strict=False):
            simulate(turns, seed, folder, totals, stop_at_failure=not asked.all)
    _report(totals, time.monotonic() - began)
    sys.exit(bool(totals.failures))


if __name__ == "__main__":
    main()
