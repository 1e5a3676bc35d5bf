"""``python -m tests.bench.run``: measures the gateway beside a reference gateway, prints a table, writes JSON.

The gateway and the reference share one core (they are not measured at the same time); upstream and client have the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.bench.cases import CASES as OTHERS
from tests.bench.cases import Figure, servers
from tests.bench.chats import chats
from tests.bench.crowd import crowd
from tests.bench.explaining import explaining
from tests.bench.isolation import isolation
from tests.bench.kernel import kernel
from tests.bench.machine import OTHER_CORE
from tests.bench.storage import journal_rows

CASES = (*OTHERS, kernel, crowd)
ROWS = 10_000_000
"""In the journal, when it is measured how long `explain` takes."""


def table(figures: list[Figure]) -> str:
    """The figures, aligned, with the limit and whether it was kept."""
    lines = [f"{'':52} {'measured':>12} {'limit':>10} {'reference':>10}"]
    for f in figures:
        sign = "" if f.limit is None else f"{'≥' if f.at_least else '≤'} {f.limit:g}"
        reference = "" if f.reference is None else f"{f.reference:.2f}"
        mark = "" if f.limit is None else ("ok" if f.kept else "NOT KEPT")
        lines.append(f"{f.name:52} {f.value:12.2f} {sign:>10} {reference:>10}  {f.unit:12} {mark}")
    return "\n".join(lines)


async def measure(only: set[str], seconds: float) -> list[Figure]:
    """All figures, or those of the cases that are named in `only`."""
    os.sched_setaffinity(0, {OTHER_CORE})
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="outspoken-bench-") as name:
        folder = Path(name)
        cases = [case for case in CASES if not only or case.__name__ in only]
        if cases:
            async with servers(folder, seconds) as bench:
                for case in cases:
                    figures += await case(bench)
                    print(f"  {case.__name__} done", file=sys.stderr, flush=True)
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
    parser.add_argument("--seconds", type=float, default=8, help="length of the paced measurement (default 8)")
    parser.add_argument("--json", type=Path, default=Path("tests/.out/bench.json"), help="where the figures go")
    asked = parser.parse_args()
    if unknown := set(asked.case) - set(names):
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    figures = asyncio.run(measure(set(asked.case), asked.seconds))
    print(table(figures))
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()}
    written = {"machine": machine, "figures": [{**asdict(f), "kept": f.kept} for f in figures]}
    asked.json.write_text(json.dumps(written, indent=2, ensure_ascii=False) + "\n")
    print(f"\nwritten to {asked.json}")
    sys.exit(0 if all(figure.kept for figure in figures) else 1)


if __name__ == "__main__":
    main()
