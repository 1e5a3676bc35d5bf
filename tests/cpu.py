"""How much processor time each test takes: ``pytest --slowest-cpu 30``, alone or with ``--processes``.

Time by the clock says nothing where many tests run beside each other; a run of all tests takes as long as the sum of this, divided by the
processors. Counted are the test's process, the processes that it started and that have ended, and those of `tests.forked`.

Known to be weak: what the PostgreSQL server does is nobody's; what tests share counts for the one that made it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import forked

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Cpu:
    """Adds to each report what its part of the test took, and tells of those that took most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last = spent()
        self._tests: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._last = spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        now = spent()
        report.cpu, self._last = now - self._last, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += vars(report).get("cpu", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders: Counter[str] = Counter()
        for test, seconds in self._tests.items():
            folders["/".join(test.partition("::")[0].split("/")[:2])] += seconds
        terminalreporter.write_sep("=", f"{sum(folders.values()):.0f} s of processor time")
        for each in (folders.most_common(), self._tests.most_common(self._most)):
            terminalreporter.write_line("\n".join(f"{seconds:8.2f} s  {name}" for name, seconds in each) + "\n")


def spent() -> float:
    """Seconds of processor time of this process and of those that it has started."""
    return sum(os.times()[:4]) + sum(_of(pid) for pid in forked.servers())


def _of(pid: int) -> float:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it has ended, or this system has no such thing
        return 0.0
    return sum(map(int, told.rpartition(")")[2].split()[11:15])) / CLOCK_TICKS
