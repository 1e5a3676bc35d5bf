"""Settings for all tests, and the figures that they measure."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

import pytest
import uvloop
from hypothesis import HealthCheck, settings

from hatch_build import compile_catalogues
from tests import databases, deepfolders, memory, sampled, seldom
from tests.databases import migrating, postgres, postgres_server, short_lease, sqlite, unprepared, where
from tests.together import Together, Unit

# A fixture that modules import is made anew for each of them
__all__ = [
    "migrating",
    "postgres",
    "postgres_server",
    "short_lease",
    "sqlite",
    "unprepared",
    "where",
]

# A loaded machine is slow at times; that is no defect of what is tested.
BUSY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("outspoken", BUSY, max_examples=25)
settings.register_profile("soak", BUSY, max_examples=1_000)  # `make soak`
settings.load_profile("outspoken")

deepfolders.are_removed()

FIGURES = "figures"


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Takes a line with a measured figure. All of them stand at the end of the run's output, whoever ran the test."""
    properties = request.node.user_properties  # travels with the report from the workers
    return lambda line: properties.append((FIGURES, line))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of the run, test by test."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    lines = [
        str(line)
        for report in sorted(reports, key=lambda report: report.nodeid)
        for name, line in report.user_properties
        if name == FIGURES
    ]
    if lines:
        terminalreporter.write_sep("=", "figures")
        for line in lines:
            terminalreporter.write_line(line)


LONGEST = (
    "tests/clients",
    "tests/deploy/test_alert_rules",
    "tests/faults",
    "tests/incidents",
    "tests/postgres",
    "tests/several",
    "tests/storage",
    "tests/sim",
    "tests/explore",
    "tests/kills",
    "tests/power",
    "tests/chats/test_soak",
    "tests/gateway/test_setup",
    "tests/gateway/test_lifesign",
    "tests/corpora/test_hostile",
    "tests/corpora/test_canaries",
    "tests/docs/test_commands",
    "tests/agent_core/test_replay",
    "tests/agent_core/test_folds",
)
COMPUTING = (
    "tests/adapters",
    "tests/agent_core",
    "tests/bench",
    "tests/corpora",
    "tests/docs",
    "tests/fakes",
    "tests/fuzz",
    "tests/mutants",
    "tests/store",
    "tests/test_",
)
"""These wait for nobody. All others wait, for gateways, platforms and models, more than they compute."""
READ_THE_SOURCE = (
    "tests/adapters/test_openapi.py::test_codes",
    "tests/agent_core/test_retry",
    "tests/agent_core/test_tongue.py::test_no_sentence",
    "tests/docs/test_generated",
    "tests/docs/test_house",
    "tests/gateway/test_closing.py::test_nobody",
    "tests/test_constructors",
    "tests/test_dependencies",
    "tests/test_expressions",
    "tests/test_layers",
    "tests/test_platforms.py::test_nobody",
)
"""These take apart the whole source: whoever does it again needs three seconds of a processor for it."""
BROWSED = (
    ("approvals", "attach", "commands", "console", "sent_files"),
    ("conversations", "everyday", "page", "wishes"),
    ("for_everybody", "hostile_page", "turns", "unsent"),
)
"""Each row has one browser: to start and to end one takes two seconds of processor time."""
TOGETHER = (
    READ_THE_SOURCE,
    *(tuple(f"tests/browser/test_{name}.py" for name in row) for row in BROWSED),
    ("tests/postgres/test_browser",),
    (
        "tests/adapters/test_pagewords",
        "tests/agent_core/test_ten_languages",
        "tests/agent_core/test_tongue.py",
        "tests/e2e/test_ten_languages",
    ),
    ("tests/packaging",),
    ("tests/promises",),
    ("tests/sim/test_sim.py",),
    ("tests/laws/test_sabotaged",),
    ("tests/agent_core/test_turn_table",),
)
"""What these tests share takes long to make: one process runs a row of them, and nothing comes between."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=0, help="run the tests in so many forked processes")
    parser.addoption("--again", type=int, default=0, help="run at most so many failed tests once more, alone")
    parser.addoption("--seldom", action="store_true", help="run only what a run of all tests leaves to `make soak`")
    parser.addoption("--slowest-cpu", type=int, default=0, help="tell which tests took most processor time")


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(memory.OBJECTS_BETWEEN_COLLECTIONS, *gc.get_threshold()[1:])
    compile_catalogues()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it starts in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what tests interrupt would inherit that
    databases.migrate_once()
    if (place := memory.roomy()) is not None and memory.runs_programs(place):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))
    processes, told = config.getoption("processes"), config.getoption("slowest_cpu")
    if processes:
        config.pluginmanager.register(
            Together(processes, units, alone if told else shared, config.getoption("again") or 0)
        )
    if told:
        from tests.cpu import Cpu

        config.pluginmanager.register(Cpu(told))


def pytest_unconfigure() -> None:
    databases.end_server()
    if "tests.program" in sys.modules:
        from tests import program

        program.end()


def alone() -> None:
    """What the processes of a run share: one PostgreSQL server, and what gateways import, however late they do."""
    databases.share_server()
    if "tests.forked" in sys.modules:  # a test runs a gateway
        importlib.import_module("tests.preloaded")


def shared() -> None:
    """The same, and one process that forks gateways."""
    alone()
    if "tests.forked" in sys.modules:
        from tests import forked

        forked.begin()
        if "tests.program" in sys.modules:
            from tests import program

            program.begin()


def units(items: Sequence[pytest.Item]) -> list[Unit]:
    """What one process has to run: nearly always one test."""
    found: list[Unit] = []
    for number, item in enumerate(items):
        before = together(items[number - 1]) if number else None
        if before is not None and together(item) == before:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def together(item: pytest.Item) -> int | None:
    """The row of `TOGETHER` that a test stands in."""
    return next((number for number, row in enumerate(TOGETHER) if item.nodeid.startswith(row)), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that wait are spread over nearly all of the run, so that there is always something to compute meanwhile; the longest ones and rows
    of tests over its first half, so that browsers are not all there at once and nothing long is left for the end."""
    sampled.spare(config, items)
    seldom.spare(config, items, every=sampled.ALL)
    rows: dict[int, list[pytest.Item]] = {}
    longest: list[list[pytest.Item]] = []
    waiting: list[list[pytest.Item]] = []
    computing: list[list[pytest.Item]] = []
    for item in items:
        if (row := together(item)) is not None:
            rows.setdefault(row, []).append(item)
        else:
            kind = (
                longest
                if item.nodeid.startswith(LONGEST)
                else computing
                if item.nodeid.startswith(COMPUTING)
                else waiting
            )
            kind.append([item])
    last = len(computing) * 9 // 10
    most = evenly(waiting, computing[:last])
    half = len(most) // 2
    first = evenly([rows[row] for row in sorted(rows)], evenly(longest, most[:half]))
    items[:] = [item for unit in (*first, *most[half:], *computing[last:]) for item in unit]


def evenly(few: list[list[pytest.Item]], many: list[list[pytest.Item]]) -> list[list[pytest.Item]]:
    """All of them in their order, `few` at even distances between `many`."""
    merged: list[list[pytest.Item]] = []
    placed = 0
    for number, unit in enumerate(many):
        while placed < len(few) and placed * len(many) <= number * len(few):
            merged.append(few[placed])
            placed += 1
        merged.append(unit)
    return [*merged, *few[placed:]]


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """With TESTS_LOOP=uvloop, the loop that serves, whose timers and transports differ from Python's own (`make soak`)."""
    served_by = os.environ.get("TESTS_LOOP", "asyncio")
    return {served_by: uvloop.new_event_loop if served_by == "uvloop" else asyncio.new_event_loop}
