"""Budgets that do not wander: what a turn, a tool, a start, an accepted message and a frame may cost, and what an open stream may hold, counted,
from `budgets.toml`.

``python -m tests.bench.budgets`` counts and says where that differs; ``--write`` writes what was counted into the file. Whoever makes
something dearer changes the file, where everybody sees it. What is cheaper is written down as well: else the room would be used up unseen.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import cast

FILE = Path(__file__).with_name("budgets.toml")
EXACT = ("statements", "commits")
"""The same in every run."""
ANYWHERE = (*EXACT, "bytes")
"""The same with every Python."""
WANDERS = {"start": 0.03, "first turn": 0.05, "tool": 0.03, "frame": 0.001, "stream": 0.02, "chat turn": 0.02}
"""So much of a count of calls depends on which thread comes first; elsewhere `CALLS`. A start does several things at once; of a frame nothing
waits, and one copy more is some ten instructions of eighteen hundred."""
CALLS = 0.01
MORE = {"start": 1}
"""Statements by which a count may differ: two may find out the same at once."""
CHEAPER = 0.05
"""What is cheaper by more than this is to be written down."""
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

Counted = dict[str, dict[str, float]]


def count(*arguments: str) -> Counted:
    """What is counted now, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.counting", *arguments],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"counting failed:\n{done.stderr[-3000:]}")
    return cast("Counted", json.loads(done.stdout.splitlines()[-1]))


def budgets(python: str = PYTHON) -> Counted:
    """What is allowed: statements, commits and bytes everywhere, calls for each Python that was counted with."""
    read = cast("dict[str, Counted]", tomllib.loads(FILE.read_text()))
    calls = read.get(f"python-{python}", {})
    return {what: {**read["sql"].get(what, {}), **calls.get(what, {})} for what in {**read["sql"], **calls}}


def differences(counted: Counted, allowed: Counted) -> list[str]:
    """Where what was counted is not what is allowed, in words. Pure."""
    found: list[str] = []
    for what, costs in counted.items():
        for cost, value in costs.items():
            most = allowed.get(what, {}).get(cost)
            if most is None:
                if cost in ANYWHERE:
                    found.append(f"{what}: there is no budget of {cost}; it takes {value:g}")
            elif cost in EXACT:
                if abs(value - most) > MORE.get(what, 0):
                    found.append(f"{what}: {value:g} {cost}, where the budget says {most:g}")
            elif value > most * (1 + WANDERS.get(what, CALLS)):
                found.append(f"{what}: {value:g} {cost}, where the budget says {most:g}")
            elif value < most * (1 - CHEAPER):
                found.append(f"{what}: only {value:g} {cost}, where the budget says {most:g}: write it down")
    return found


def written(counted: Counted, read: dict[str, Counted]) -> str:
    """The file with what was counted; what other Pythons took stays. Pure."""
    exact = {what: {c: v for c, v in costs.items() if c in ANYWHERE} for what, costs in counted.items()}
    calls = {what: {c: v for c, v in costs.items() if c not in ANYWHERE} for what, costs in counted.items()}
    tables = {**read, "sql": exact, f"python-{PYTHON}": calls}
    lines = [
        "# What each piece of work costs, counted: `python -m tests.bench.budgets --write`. See tests/bench/budgets.py."
    ]
    for table in sorted(tables, key=lambda name: (name != "sql", name)):
        lines += ["", f'["{table}"]']
        for what, costs in tables[table].items():
            inner = ", ".join(
                f"{cost} = {value:g}" if value < 1e5 else f"{cost} = {value:.0f}" for cost, value in costs.items()
            )
            if inner:
                lines.append(f'"{what}" = {{ {inner} }}')
    return "\n".join(lines) + "\n"


def main() -> None:
    """Entry point; exits with 1 if something differs."""
    counted = count()
    if "--write" in sys.argv:
        read = cast("dict[str, Counted]", tomllib.loads(FILE.read_text())) if FILE.exists() else {}
        FILE.write_text(written(counted, read))
        return
    found = differences(counted, budgets())
    print("\n".join(found) or "Everything costs what the budgets say.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
