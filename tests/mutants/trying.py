"""Asks tests about mutants, each in a process that is forked when all tests are collected: a plugin for pytest.

The process plants the mutant in itself, runs the tests that are nearest, and ends at the first that fails. One that hangs is found as well.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn

import pytest

from tests.mutants.making import Mutant
from tests.mutants.planting import NotPlanted, Planter
from tests.mutants.reach import ROOT, Reach, Seen, nearest
from tests.together import apart

PATIENCE = 30.0
"""So many seconds, and ten times what it took before, may a test take."""
Prepare = Callable[[], None]


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """`found`, `survives`, or `not planted`."""
    by: str
    asked: int
    seconds: float


class Recording:
    """Runs all tests that are collected, in so many processes, to see what they reach."""

    def __init__(self, processes: int, prepare: Prepare) -> None:
        self._processes, self._prepare = processes, prepare

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        _begin(session, self._prepare)
        children = [self._child(session, number) for number in range(self._processes)]
        for child in children:
            os.waitpid(child, 0)
        return True

    def _child(self, session: pytest.Session, number: int) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                self._record(session, number)
            finally:
                os._exit(0)
        return pid

    def _record(self, session: pytest.Session, number: int) -> None:
        apart(session.config, 1000 + number)
        reach = Reach()
        session.config.pluginmanager.register(reach)
        mine = session.items[number :: self._processes]
        for done, (item, after) in enumerate(zip_longest(mine, mine[1:])):
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if done % 100 == 0 or after is None:  # it takes long, and may be stopped
                reach.write(number)


class Trying:
    """Tries mutants, and hands on each result as it is there."""

    def __init__(
        self,
        mutants: Sequence[Mutant],
        tests: Mapping[str, Seen],
        seconds: float,
        prepare: Prepare,
        tell: Callable[[Result], None],
    ) -> None:
        self._mutants, self._tests, self._seconds = mutants, tests, seconds
        self._prepare, self._tell = prepare, tell
        self._sound: set[str] = set()
        """Tests that pass where nothing is planted."""
        self._forks = 0
        self._planter: Planter | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        tests = {test: seen for test, seen in self._tests.items() if test in items}
        _begin(session, self._prepare)
        self._planter = Planter()
        gc.collect()
        gc.freeze()
        for mutant in self._mutants:
            self._tell(self._tried(session, mutant, tests, items))
        return True

    def _tried(
        self, session: pytest.Session, mutant: Mutant, tests: Mapping[str, Seen], items: Mapping[str, pytest.Item]
    ) -> Result:
        began = time.monotonic()
        chosen = nearest(f"{mutant.path}:{mutant.within}", tests, self._seconds)
        asked, at = len(chosen), 0
        while True:
            outcome, by = self._ask(session, mutant, [items[one] for one in chosen[at:]])
            if outcome != "found" or self._is_sound(session, items[by]):
                return Result(mutant, outcome, by, asked, time.monotonic() - began)
            at = chosen.index(by) + 1

    def _is_sound(self, session: pytest.Session, item: pytest.Item) -> bool:
        if item.nodeid not in self._sound and self._ask(session, None, [item])[0] == "survives":
            self._sound.add(item.nodeid)
        return item.nodeid in self._sound

    def _ask(self, session: pytest.Session, mutant: Mutant | None, items: Sequence[pytest.Item]) -> tuple[str, str]:
        ours, theirs = Pipe()
        self._forks += 1
        pid = os.fork()
        if pid == 0:
            ours.close()
            _ask(session, (lambda: self._plant(mutant)), items, theirs, self._forks)
        theirs.close()
        running = ""
        try:
            while True:
                limit = PATIENCE + 10 * (self._tests[running].seconds if running in self._tests else 0)
                if not select.select([ours], [], [], limit)[0]:
                    return "found", running
                kind, test = ours.recv()
                if kind != "begins":
                    return kind, test
                running = test
        except (EOFError, OSError):
            return "found", running  # it died
        finally:
            ours.close()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _plant(self, mutant: Mutant | None) -> None:
        if mutant is not None and self._planter is not None:
            self._planter.plant(ROOT, mutant.path, mutant.tree)


class _Failed:
    """Hears that a test has failed."""

    def __init__(self) -> None:
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def _ask(
    session: pytest.Session, plant: Prepare, items: Sequence[pytest.Item], line: Connection, number: int
) -> NoReturn:
    """In the forked process."""
    try:
        os.setsid()
        line.send(("begins", ""))
        plant()
        apart(session.config, number)
        heard = _Failed()
        session.config.pluginmanager.register(heard)
        for item, after in zip_longest(items, items[1:]):
            line.send(("begins", item.nodeid))
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if heard.failed:
                line.send(("found", item.nodeid))
                os._exit(0)
        line.send(("survives", ""))
    except NotPlanted:
        line.send(("not planted", ""))
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise
    finally:
        os._exit(0)


def _begin(session: pytest.Session, prepare: Prepare) -> None:
    vars(session.config)["_tmp_path_factory"].getbasetemp()  # one for all
    prepare()
    gc.unfreeze()  # `Planter` has to see everything
