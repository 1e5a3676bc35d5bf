"""``docs/performance.md``, printed from one run of ``make bench`` (`figures.json` beside this file). Pure but for reading them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from tests.bench.budgets import FILE as BUDGETS
from tests.bench.summary import Row

ROOT = Path(__file__).parents[2]
FIGURES = Path(__file__).with_name("figures.json")
PAGE = ROOT / "docs" / "performance.md"
PRODUCT = ("gateway", "adapters", "agent_core", "migrations")
QUIET_LOAD = 0.7
"""The machine's load (processes that want to run, a minute's mean) above which a run is not called quiet."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of all cases."""

    day: str
    code: str
    """The digest of the product's code that ran, see `digest`."""
    machine: str
    load: float
    """Of the minute before it began."""
    rounds: int
    rows: list[Row]

    def write(self, file: Path = FIGURES) -> None:
        file.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")


def read(file: Path = FIGURES) -> Run:
    """The run that was written last."""
    told = cast("dict[str, object]", json.loads(file.read_text()))
    rows = [Row(**row) for row in cast("list[dict[str, object]]", told.pop("rows"))]  # pyright: ignore[reportArgumentType]
    return Run(**told, rows=rows)  # pyright: ignore[reportArgumentType]


def digest(root: Path = ROOT) -> str:
    """Twelve digits that stand for every line of the product's code."""
    whole = hashlib.sha256()
    for file in sorted(file for folder in PRODUCT for file in (root / folder).rglob("*.py")):
        whole.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes() + b"\0")
    return whole.hexdigest()[:12]


def markdown(run: Run) -> str:
    """The page."""
    peers = list(dict.fromkeys(peer for row in run.rows for peer in row.peers))
    kept = [row.kept for row in run.rows if row.kept is not None]
    quiet = (
        "quiet" if run.load <= QUIET_LOAD else "not quiet: others were at work on it, so ratios say more than figures"
    )
    lines = [
        "# Performance",
        "",
        "This page is written by `make bench` from one run; nobody edits it. It measures a running gateway beside a *reference*: 60 lines of",
        "plain aiohttp and orjson that read each event of the model's stream, parse it, write it again, and keep, recover and tell nothing",
        "(where nothing is forwarded, the reference is the model server asked directly). Both run in the same minute on the same core; model",
        "server and client have the other one. Beside them stand other gateways as the package index gives them, with the same work in the",
        "same run. They keep other promises: a proxy keeps no conversation, and none of them stores a turn before it acknowledges it.",
        "",
        f"Measured on {run.day}, of the code with the digest `{run.code}` (`python -m tests.bench.page --digest` prints the one of yours), {run.machine}.",
        f"The machine was {quiet} (load {run.load:.1f}). {run.rounds} rounds, each with servers of its own: the median, and from which to which",
        f"value the rounds went; a crowd, chats, platforms in trouble, the kernel and the journal were measured in the first alone. {sum(kept)} of {len(kept)} aims were kept.",
        "",
        "| | median | rounds | unit | aim | reference | " + "".join(f"{peer} | " for peer in peers).rstrip(),
        "|---" * (6 + len(peers)) + "|",
        *(_line(row, peers) for row in run.rows),
        "",
        "## Counted",
        "",
        "What a piece of work costs does not depend on a machine's hour if it is counted. A commit that makes one of these dearer changes",
        "`tests/bench/budgets.toml`; `make test` compares what is exact, `make bench` the rest.",
        "",
        "```text",
        BUDGETS.read_text().strip(),
        "```",
        "",
        "What was tried, what it brought, and what was measured once at length (soaks, a year of turns, ten million rows):",
        "[measurements.md](measurements.md).",
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row, peers: Iterable[str]) -> str:
    aim = (
        "" if row.limit is None else f"{'≥' if row.at_least else '≤'} {row.limit:g}{'' if row.kept else ' **missed**'}"
    )
    reference = "" if row.reference is None else number(row.reference)
    rounds = f"{number(row.low)}–{number(row.high)}" if row.low != row.high else ""
    theirs = "".join(f"{number(row.peers[peer]) if peer in row.peers else ''} | " for peer in peers)
    return f"| {row.name} | {number(row.median)} | {rounds} | {row.unit} | {aim} | {reference} | {theirs}".rstrip()


def number(value: float) -> str:
    """Three digits that count; none that do not."""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


if __name__ == "__main__":
    import sys

    print(digest() if "--digest" in sys.argv else markdown(read()), end="\n" if "--digest" in sys.argv else "")
