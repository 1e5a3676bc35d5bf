"""Which test calls which function, and how long it takes: whom to ask about a mutant, the nearest and quickest first.

Found out by running the tests once (`Reach` is a plugin for that), and kept in `KEPT` until somebody removes it: a test that is missing there is not
asked, and one that has changed is asked for nothing at worst.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import pytest

ROOT = Path(__file__).parents[2]
KEPT = ROOT / ".cache" / "mutants"
PRODUCT = ("agent_core", "adapters", "gateway")


@dataclass(frozen=True)
class Seen:
    """A test that passed."""

    seconds: float
    functions: frozenset[str]
    """As `path:Class.name`, without what is inside of functions."""


class Reach:
    """A plugin: follows each test of this process, and writes what it saw when the process has run all of its tests."""

    def __init__(self) -> None:
        self._codes: set[CodeType] = set()
        self._seen: dict[str, tuple[float, list[str]]] = {}
        self._passed = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._codes, self._passed = set(), True
        began = time.monotonic()
        sys.settrace(self._follow)
        threading.settrace(self._follow)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            if self._passed:
                names = {name for code in self._codes.copy() if (name := _name(code))}
                self._seen[item.nodeid] = (time.monotonic() - began, sorted(names))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._passed = self._passed and report.passed

    def write(self, number: int) -> None:
        """What was seen since, into a file."""
        KEPT.mkdir(parents=True, exist_ok=True)
        names = sorted({name for _, functions in self._seen.values() for name in functions})
        at = {name: place for place, name in enumerate(names)}
        tests = {
            test: [round(seconds, 4), [at[one] for one in functions]]
            for test, (seconds, functions) in self._seen.items()
        }
        made = json.dumps({"functions": names, "tests": tests})
        (KEPT / f"reach-{time.time_ns()}-{number}.json").write_text(made, "utf-8")
        self._seen.clear()

    def _follow(self, frame: FrameType, event: str, argument: object) -> None:
        del event, argument
        self._codes.add(frame.f_code)


def _name(code: CodeType) -> str:
    file = Path(code.co_filename)
    if not file.is_relative_to(ROOT) or code.co_name == "<module>":
        return ""
    path = file.relative_to(ROOT)
    return f"{path}:{code.co_qualname.partition('.<locals>')[0]}" if path.parts[0] in PRODUCT else ""


def known() -> Mapping[str, Seen]:
    """All that was found out; what was found out last counts."""
    found: dict[str, Seen] = {}
    for file in sorted(KEPT.glob("reach-*.json")):
        told = json.loads(file.read_text("utf-8"))
        names: list[str] = told["functions"]
        tests: dict[str, tuple[float, list[int]]] = told["tests"]
        for test, (seconds, functions) in tests.items():
            found[test] = Seen(seconds, frozenset(names[one] for one in functions))
    return found


def nearest(function: str, tests: Mapping[str, Seen], seconds: float) -> list[str]:
    """The tests that call it, for so many seconds together: quick ones first, and first one of each row of parameters."""
    rows: Counter[str] = Counter()
    ranked: list[tuple[float, str]] = []
    for test, seen in sorted(tests.items(), key=lambda one: one[1].seconds):
        if function in seen.functions:
            row = test.partition("[")[0]
            rows[row] += 1
            ranked.append(((seen.seconds + 0.002) * rows[row], test))
    chosen: list[str] = []
    for _, test in sorted(ranked):
        seconds -= tests[test].seconds
        if seconds < 0 and chosen:
            break
        chosen.append(test)
    return chosen
