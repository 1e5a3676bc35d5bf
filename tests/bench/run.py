"""``python -m tests.bench.run``: measures the gateway beside a reference gateway, prints a table, writes JSON.

The gateway and the reference share one core (they are not measured at the same time); upstream and client have the other.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from tests.bench.cases import CASES as OTHERS
from tests.bench.cases import Figure, servers
from tests.bench.chats import chats
from tests.bench.crowd import crowd
from tests.bench.explaining import explaining
from tests.bench.isolation import isolation
from tests.bench.kernel import kernel
from tests.bench.large import large
from tests.bench.machine import OTHER_CORE
from tests.bench.page import FIGURES, PAGE, Run, digest, markdown
from tests.bench.peers import beside
from tests.bench.storage import journal_rows
from tests.bench.summary import Row, rows

CASES = (OTHERS[0], kernel, *OTHERS[1:], crowd)
"""What is counted, or takes long, is measured in the first round alone; so are the chats, the platforms in trouble and the journal. The kernel's calls
are counted within a minute of the start: then the auditor begins, which goes through the turns of the other cases, twenty a second."""
ROWS = 10_000_000
"""In the journal, when it is measured how long `explain` takes."""


def table(found: list[Row]) -> str:
    """The figures, aligned, with the limit and whether it was kept."""
    lines = [f"{'':52} {'measured':>12} {'rounds':>17} {'limit':>10} {'reference':>10}"]
    for row in found:
        sign = "" if row.limit is None else f"{'≥' if row.at_least else '≤'} {row.limit:g}"
        reference = "" if row.reference is None else f"{row.reference:.2f}"
        rounds = "" if row.low == row.high else f"{row.low:.2f}–{row.high:.2f}"
        mark = {None: "", True: "ok", False: "NOT KEPT"}[row.kept]
        lines.append(f"{row.name:52} {row.median:12.2f} {rounds:>17} {sign:>10} {reference:>10}  {row.unit:12} {mark}")
        lines += [f"{'  ' + peer:52} {value:12.2f}" for peer, value in row.peers.items()]
    return "\n".join(lines)


async def measured_large(turns: int) -> list[Figure]:
    """On a store of so many turns; made once for all rounds, as it takes minutes and gigabytes."""
    os.sched_setaffinity(0, {OTHER_CORE})
    with tempfile.TemporaryDirectory(prefix="outspoken-bench-large-") as name:
        return await large(Path(name), turns)


async def measure(only: set[str], seconds: float, *, first: bool = True) -> list[Figure]:
    """All figures of a round, or those of the cases that are named in `only`."""
    os.sched_setaffinity(0, {OTHER_CORE})
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="outspoken-bench-") as name:
        folder = Path(name)
        cases = [case for case in (CASES if first else OTHERS) if not only or case.__name__ in only]
        if cases:
            async with servers(folder, seconds) as bench:
                for case in cases:
                    began = time.monotonic()
                    figures += await case(bench)
                    took = time.monotonic() - began
                    print(f"  {case.__name__} done in {took:.0f} s", file=sys.stderr, flush=True)
        if not first:
            return figures
        if not only or "chats" in only:
            figures += await chats(folder)
        if not only or "isolation" in only:
            figures += await isolation(folder)
        if not only or "journal_rows" in only:
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            figures += await journal_rows(folder, round(seconds * 100))
        if "explaining" in only:  # it takes gigabytes: only if it is named
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
            figures += await explaining(folder, ROWS)
    return figures


def main() -> None:
    """Entry point; exits with 1 if a limit was not kept."""
    names = [case.__name__ for case in CASES] + ["chats", "isolation", "journal_rows", "explaining"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help=f"only these: {', '.join(names)}")
    parser.add_argument("--seconds", type=float, default=5, help="length of each paced pair (default 5)")
    parser.add_argument("--json", type=Path, default=Path("tests/.out/bench.json"), help="where the figures go")
    parser.add_argument(
        "--rounds", type=int, default=1, help="how often all of it, each time with servers of its own (default 1)"
    )
    parser.add_argument(
        "--peers", type=Path, help="measure other gateways too; they are installed below this folder, once"
    )
    parser.add_argument(
        "--large",
        type=int,
        default=0,
        metavar="TURNS",
        help="measure on a store of so many turns, too (a million: 8 GiB, a quarter of an hour)",
    )
    parser.add_argument("--page", action="store_true", help="write docs/performance.md from this run")
    asked = parser.parse_args()
    if unknown := set(asked.case) - set(names):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if asked.page and asked.case:
        parser.error("the page is written from a run of all cases")
    load = os.getloadavg()[0]
    rounds = [asyncio.run(measure(set(asked.case), asked.seconds, first=not n)) for n in range(asked.rounds)]
    if asked.large:
        rounds[0] += asyncio.run(measured_large(asked.large))
    found = rows(rounds, _peers(asked.peers, asked.seconds) if asked.peers else {})
    print(table(found))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"
    run = Run(f"{date.today():%-d %B %Y}", digest(), machine, load, asked.rounds, found)
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    run.write(asked.json)
    print(f"\nwritten to {asked.json}")
    if asked.page:
        run.write(FIGURES)
        PAGE.write_text(markdown(run), "utf-8")
        print(f"written to {PAGE}")
    sys.exit(0 if all(row.kept is not False for row in found) else 1)


def _peers(environments: Path, seconds: float) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="outspoken-peers-") as folder:
        return asyncio.run(beside(Path(folder), environments.absolute(), seconds))


if __name__ == "__main__":
    main()
