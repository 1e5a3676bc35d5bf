"""Runs the tests in several processes that are forked when all of them are collected: ``pytest --processes 16``.

Most tests wait for something, so more of them have to be under way than there are processors. A process that imports and collects seven
thousand tests for itself costs as much as hundreds of them; a fork costs nothing, and shares the memory.

A test begins only when the machine has room: one that looks at a clock would else see a machine that is too slow for anybody. So many
processes may be there as wait for something; few compute at a time.

With ``--again N``, at most N tests that failed are run once more when all others are done, alone. One that passes then is told in full at
the run's end: it depends on how busy the machine is, or is a fault that is seldom seen. With more than N, or none that passes, nothing is forgiven.

Known to be weak: what a module's tests share is made in each process that runs one of them, unless they are one unit.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.config import create_terminal_writer

PROCESSORS = len(os.sched_getaffinity(0))
STATISTICS = Path("/proc/stat")
LEAST = 2 * PROCESSORS
"""So many tests run whatever else the machine does."""
LOOK_SECONDS = 0.02
"""Between two looks whether it has room."""

Unit = list[int]
"""Numbers of tests that one process runs one after the other."""
Units = Callable[[Sequence[pytest.Item]], list[Unit]]


@dataclass(eq=False)
class _Worker:
    """A forked process, and what it does."""

    pid: int
    line: Connection
    running: int | None = None
    ahead: Unit = field(default_factory=list[int])
    """What it was given and has not begun."""
    told: list[pytest.TestReport] = field(default_factory=list[pytest.TestReport])
    """Of what it runs."""


class Together:
    """Hands out tests, and tells pytest how they went."""

    def __init__(self, processes: int, units: Units, prepare: Callable[[], None], again: int) -> None:
        """`prepare` is called before the first fork: for what all of them share. So many failed tests may be run `again`."""
        self._processes, self._units, self._prepare, self._again = processes, units, prepare, again
        self._failed: dict[int, list[pytest.TestReport]] = {}
        """What may be run again, while the others are run."""
        self._forgiven: list[pytest.TestReport] = []
        self._workers: list[_Worker] = []
        self._held: list[_Worker] = []
        """Those that wait until the machine has room for their next test."""
        self._begun = 0
        self._waiting: Iterator[Unit] = iter(())

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None  # pytest's own loop says so
        self._waiting = iter(self._units(session.items))
        _temporary(session.config).getbasetemp()  # one for all
        self._prepare()
        gc.collect()
        gc.freeze()  # else the first collection in each process copies everything
        try:
            self._run(session, self._processes)
            self._look_again(session)
        finally:
            for worker in self._workers:  # after an interrupt
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _run(self, session: pytest.Session, processes: int) -> None:
        with selectors.DefaultSelector() as selector:
            for _ in range(processes):
                self._begin(session, selector)
            while self._workers:
                for key, _ in selector.select(LOOK_SECONDS if self._held else None):
                    self._hear(session, selector, key.data)
                if self._held and (len(self._workers) - len(self._held) < LEAST or has_room()):
                    with contextlib.suppress(OSError):  # it has died, which is heard of next
                        self._held.pop(0).line.send("go")

    def _look_again(self, session: pytest.Session) -> None:
        """Run alone what failed beside others."""
        failed, self._failed = self._failed, {}
        again, self._again = self._again, 0
        if not failed:
            return
        if len(failed) > again:
            for number, reports in failed.items():
                self._tell(session, number, reports)
            return
        before = session.testsfailed
        for number in failed:
            self._waiting = iter([[number]])
            self._run(session, 1)
            if session.testsfailed == before:
                self._forgiven += [report for report in failed[number] if report.failed]
            before = session.testsfailed

    def _tell(self, session: pytest.Session, number: int, reports: list[pytest.TestReport]) -> None:
        """Tell pytest how a test went, unless it has another chance."""
        if self._again and any(report.failed for report in reports):
            self._failed[number] = reports
            return
        item, hook = session.items[number], session.config.hook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell in full what failed and then passed."""
        for report in self._forgiven:
            terminalreporter.write_sep("=", f"FAILED BESIDE OTHERS, PASSED ALONE: {report.nodeid}", yellow=True)
            terminalreporter.write_line(report.longreprtext)
            for title, text in report.sections:
                terminalreporter.write_sep("-", title)
                terminalreporter.write_line(text)

    def _begin(self, session: pytest.Session, selector: selectors.BaseSelector) -> None:
        ours, theirs = Pipe()
        self._begun += 1
        pid = os.fork()
        if pid == 0:
            for other in (ours, *(worker.line for worker in self._workers)):
                other.close()
            _work(session, theirs, self._begun)
        theirs.close()
        worker = _Worker(pid, ours)
        self._workers.append(worker)
        selector.register(ours, selectors.EVENT_READ, worker)

    def _hear(self, session: pytest.Session, selector: selectors.BaseSelector, worker: _Worker) -> None:
        hook = session.config.hook
        try:
            kind, told = worker.line.recv()
        except (EOFError, OSError):
            self._gone(session, selector, worker)
            return
        match kind:
            case "wants":
                over = session.shouldfail or session.shouldstop
                nothing: Unit = []
                unit = nothing if over else next(self._waiting, nothing)
                worker.ahead += unit
                worker.line.send(unit)
            case "begins":
                worker.running = worker.ahead.pop(0)
                worker.told = []
                self._held.append(worker)
            case "report":
                worker.told.append(hook.pytest_report_from_serializable(config=session.config, data=told))
            case _:
                assert worker.running is not None
                number, worker.running = worker.running, None
                self._tell(session, number, worker.told)

    def _gone(self, session: pytest.Session, selector: selectors.BaseSelector, worker: _Worker) -> None:
        """It has done all; or it has died: then the test that it ran has failed, and another process does the rest."""
        selector.unregister(worker.line)
        worker.line.close()
        self._workers.remove(worker)
        self._held = [other for other in self._held if other is not worker]
        _, status = os.waitpid(worker.pid, 0)
        lost = ([] if worker.running is None else [worker.running]) + worker.ahead
        if not lost:
            return
        item = session.items[lost[0]]
        words = f"The process that ran this test ended with {os.waitstatus_to_exitcode(status)}."
        died = pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call")
        self._tell(session, lost[0], [*(worker.told if worker.running is not None else []), died])
        self._waiting = chain([lost[1:]] if lost[1:] else [], self._waiting)
        self._begin(session, selector)


class _Teller:
    """In a forked process: sends every report."""

    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(("report", data))


class _Silent:
    """In the place of the terminal: others write to it, as of a test whose time is over."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = create_terminal_writer(config, Path(os.devnull).open("w"))  # noqa: SIM115 - as long as the process lives


def _work(session: pytest.Session, line: Connection, number: int) -> NoReturn:
    """In the forked process."""
    status = 1
    try:
        apart(session.config, number)
        session.config.pluginmanager.register(_Teller(session.config, line))
        _run(session, line)
        status = 0
    except KeyboardInterrupt:
        pass
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        raise
    finally:
        line.close()
        os._exit(status)


def has_room() -> bool:
    """Whether fewer processes of this machine, whosever they are, compute or want to than two a processor. This one does not count."""
    try:
        told = STATISTICS.read_text()
    except OSError:  # this system has no such thing
        return True
    return int(told.rpartition("procs_running ")[2].split()[0]) - 1 < 2 * PROCESSORS


def apart(config: pytest.Config, number: int) -> None:
    """What a fork shares and may not: the files of captured output, the folder of temporary files, and the terminal."""
    plugins = config.pluginmanager
    capture: Any = plugins.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
    factory = _temporary(config)
    folder: Path = factory.getbasetemp() / f"process-{number}"
    folder.mkdir(mode=0o700)
    factory._basetemp = folder
    plugins.unregister(name="terminalreporter")
    plugins.register(_Silent(config), "terminalreporter")


def _temporary(config: pytest.Config) -> Any:
    return vars(config)["_tmp_path_factory"]


def _run(session: pytest.Session, line: Connection) -> None:
    ahead: Unit = []
    more = True
    while True:
        while more and len(ahead) < 2:  # pytest wants to know the next one, for what tests share
            line.send(("wants", None))
            unit: Unit = line.recv()
            ahead += unit
            more = bool(unit)
        if not ahead:
            return
        item = session.items[ahead.pop(0)]
        after = session.items[ahead[0]] if ahead else None
        line.send(("begins", None))
        line.recv()  # the machine has room
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        line.send(("ended", None))
