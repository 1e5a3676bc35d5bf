"""``docs/mutants.md``: what was tried, and what got through, printed from the results (``python -m tests.mutants.run --page``)."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mutants.md"
REASONS = Path(__file__).with_name("reasons.toml")
HEAD = """# Mutants

Whether tests find mistakes is told by mistakes that nobody has chosen. `make mutants` makes them by rule of the whole product (a comparison
the other way round, a number more by one, a statement or a condition left out, two statements in each other's place, an exception that catches
more, a lease that is not asked), draws a sample by a seed, and asks the tests that run the changed function, the quickest first
(`tests/mutants/map.py` says which may be asked). Each mutant is planted in a process of its own, which is forked when all tests are imported:
most are found in a second. The first run has to find out which test runs what, and takes as long as all tests do.
`make mutants SEED=7 COUNT=100` draws others. What no test is to find has its reason below.

The table is of seed 2811, of the whole product, drawn on 28 November 2026: asked were the tests of `make test` that run the changed function in their
own process, for thirty seconds a mutant, on a machine that eight others kept busy. So a survivor got through these; what starts the gateway
as a process of its own (kills, programs of others, `tests/several`, most of the command line) was not asked. What is a constant of a module is not tried.

Those that somebody has planted by hand, and that no test of their time minded (or none within a minute), are in `tests/mutants/named.toml`:
`python -m tests.mutants.run --named` plants them again, and with `--file` those of a file of your own.
"""


def write(results: Sequence[Mapping[str, object]]) -> None:
    """Print the page anew."""
    PAGE.write_text(page(results), "utf-8")


def page(results: Sequence[Mapping[str, object]]) -> str:
    """The page of these results."""
    reasons: Mapping[str, str] = tomllib.loads(REASONS.read_text("utf-8"))
    kinds: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for one in results:
        module = str(one["name"]).partition(":")[0]
        kinds[module] += 1
        found[module] += bool(one["found"])
    lines = [HEAD, "## What was tried", "", "| module | mutants | found |", "|---|---:|---:|"]
    lines += [f"| `{module}` | {count} | {found[module]} |" for module, count in sorted(kinds.items())]
    lines += [f"| all | {sum(kinds.values())} | {sum(found.values())} |", "", "## Survivors", ""]
    left = {str(one["name"]): f"{one['asked']} tests that were asked" for one in results if not one["found"]}
    lines += ["| mutant | why no test finds it |", "|---|---|"] if left else ["None."]
    lines += [
        f"| `{_cell(name)}` | {reason_of(name, reasons) or f'not looked into yet; got through {asked}'} |"
        for name, asked in sorted(left.items())
    ]
    return "\n".join(lines) + "\n"


def reason_of(name: str, reasons: Mapping[str, str]) -> str:
    """Why this one may survive; empty if nobody has said."""
    return next((why for piece, why in reasons.items() if piece in name), "")


def _cell(name: str) -> str:
    return name.replace("|", "\\|").replace("`", "'")
