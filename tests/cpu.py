"""How much processor time each test takes: ``pytest --slowest-cpu 30``, alone or with ``--processes``.

Time by the clock says nothing where many tests run beside each other; a run of all tests takes as long as the sum of this, divided by the
processors. Counted are the test's process, the processes that it started and that have ended, and those that `tests.forked` has forked: what these are
forked from is made once a run, and so is nobody's.

Known to be weak: what tests share counts for the one that made it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import databases, forked, program

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
ALL, CHILDREN = slice(11, 15), slice(13, 15)
"""Where ``/proc/PID/stat`` tells, behind the name: of a process with its children that have ended, and of these alone."""


class Cpu:
    """Adds to each report what its part of the test took, and tells of those that took most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last = spent()
        self._tests: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        """What of it the processes took that a test started."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._last = spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        now = spent()
        report.cpu, self._last = [after - before for after, before in zip(now, self._last, strict=True)], now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        own, others = vars(report).get("cpu", (0.0, 0.0))
        self._tests[report.nodeid] += own + others
        self._others[report.nodeid] += others

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total, server = sum(self._tests.values()), sum(_of(pid) for pid in databases.servers())
        terminalreporter.write_sep("=", f"{total:.0f} s of processor time, and what of it others took")
        terminalreporter.write_line(f"{server:8.2f} s  more: the PostgreSQL server, which is nobody's\n")
        for name_of, most in ((_folder, None), (_file, self._most), (str, self._most)):
            all_of: Counter[str] = Counter()
            others: Counter[str] = Counter()
            for test, seconds in self._tests.items():
                all_of[name_of(test)] += seconds
                others[name_of(test)] += self._others[test]
            lines = (f"{seconds:8.2f} s {others[name]:8.2f} s  {name}" for name, seconds in all_of.most_common(most))
            terminalreporter.write_line("\n".join(lines) + "\n")


def _file(test: str) -> str:
    return test.partition("::")[0]


def _folder(test: str) -> str:
    return "/".join(_file(test).split("/")[:2])


def spent() -> tuple[float, float]:
    """Seconds of processor time of this process, and of those that it has started."""
    own, kernel, theirs, their_kernel, _ = os.times()
    return own + kernel, theirs + their_kernel + sum(
        _of(pid, CHILDREN) for pid in (*forked.servers(), *program.servers())
    )


def _of(pid: int, whose: slice = ALL) -> float:
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it has ended, or this system has no such thing
        return 0.0
    return sum(map(int, told.rpartition(")")[2].split()[whose])) / CLOCK_TICKS
