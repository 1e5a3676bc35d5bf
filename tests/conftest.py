"""Settings for all tests, and the figures that they measure."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# A loaded machine is slow at times; that is no defect of what is tested.
settings.register_profile("outspoken", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outspoken")

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
    "tests/sim",
    "tests/explore",
    "tests/kills",
    "tests/power",
    "tests/chats/test_soak",
    "tests/gateway/test_setup",
)
"""These are spread over the whole run, so that no worker has them all, nor is left alone with one in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest tests evenly between the others."""
    longest = [item for item in items if item.nodeid.startswith(LONGEST)]
    others = [item for item in items if not item.nodeid.startswith(LONGEST)]
    stride = max(1, len(others) // (len(longest) + 1))
    spread: list[pytest.Item] = []
    for number, item in enumerate(others):
        if number % stride == 0 and longest:
            spread.append(longest.pop(0))
        spread.append(item)
    items[:] = [*spread, *longest]
