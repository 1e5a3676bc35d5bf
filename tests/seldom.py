"""Which tests are left to `make soak`: those that take most processor time, and whose file has others that run each time.

`make test` is run with every change, so it has a budget: eight minutes of two processors, of which formatter, types and the environment take a third. What a test finds for its time differs a hundredfold: a
thousand of those that decide something take as long as one that kills gateways for half a minute. So of what does not fit the dearest are left
out, and stand in ``tests/seldom.txt`` with what they took; `make soak` runs them, and whoever names a file or a test runs all of it. Never left out
is what has found a mutant (`tests/mutants/results.json`) and what `ALWAYS` names; of each file there is always something, and for each function
of the product one that calls it.

``pytest --processes 20 --slowest-cpu 20000 > run.log``, with TESTS_ALL_CASES set, ``python -m tests.mutants.run --reach`` (which test calls
what), and ``python -m tests.seldom run.log`` write the list anew.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.mutants.reach import known

LIST = Path(__file__).with_suffix(".txt")
RESULTS = Path(__file__).parent / "mutants/results.json"
BUDGET_SECONDS = 600.0
"""Of processor time, for all that runs each time."""
DEAR_SECONDS = 0.2
"""What takes less is never left out."""
ALWAYS = (
    "tests/bench/test_budgets.py::test_everything_costs",
    "tests/explore/",
    "tests/gateway/test_start",
    "tests/kills/",
    "tests/power/",
    "tests/sim/",
    "tests/several/test_storm",
    "tests/test_",
)
"""What each change has to keep, whatever it takes: what things cost, the rules of the house, and the short forms of what explores by chance and kills."""
LEAST_SHARE = 0.1
"""So much of a file's tests is there each time, the cheapest."""
FEWEST = 1
"""So many of the tests that call a function are there each time."""
_TOOK = re.compile(r"^ *(\d+\.\d\d) s +\d+\.\d\d s  (tests/\S+\.py::.+)$")


def cheapest(took: Mapping[str, float]) -> frozenset[str]:
    """Of each file so many as are always there. Pure."""
    files: dict[str, list[str]] = {}
    for test in sorted(took, key=lambda one: (took[one], one)):
        files.setdefault(test.partition("::")[0], []).append(test)
    return frozenset(test for tests in files.values() for test in tests[: math.ceil(len(tests) * LEAST_SHARE)])


def left_out(
    took: Mapping[str, float],
    kept: Collection[str],
    budget: float = BUDGET_SECONDS,
    calls: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> dict[str, float]:
    """Of tests with their seconds the dearest, until the others fit into the budget; not `kept`, nothing cheap, of each file never all, and never
    one without which fewer than `FEWEST` of the tests that call a function would be left. `calls` are the functions of each test. Pure.
    """
    callers = Counter(function for test in took for function in calls.get(test, ()))
    stays = cheapest(took).union(kept, (test for test in took if test.startswith(ALWAYS)))
    total, found = sum(took.values()), dict[str, float]()
    for test in sorted(took.keys() - stays, key=lambda one: (-took[one], one)):
        if total <= budget or took[test] < DEAR_SECONDS:
            break
        called = calls.get(test, ())
        if any(callers[function] <= FEWEST for function in called):
            continue
        callers.subtract(called)
        found[test] = took[test]
        total -= took[test]
    return found


def listed() -> frozenset[str]:
    """What stands in the list."""
    return frozenset(line.split(maxsplit=1)[1] for line in LIST.read_text().splitlines() if line)


def spare(config: pytest.Config, items: list[pytest.Item], *, every: bool) -> None:
    """Leave out what is left to the soak, unless `every` test is to run, or somebody says which; or run nothing else, if that is asked for."""
    only = bool(config.getoption("seldom"))
    if not only and (every or config.args_source is not pytest.Config.ArgsSource.TESTPATHS):
        return
    seldom = listed()
    out = [item for item in items if (item.nodeid in seldom) is not only]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if (item.nodeid in seldom) is only]


def finders() -> frozenset[str]:
    """The tests that have found a mutant."""
    results: list[dict[str, str]] = json.loads(RESULTS.read_text("utf-8"))
    return frozenset(one["by"] for one in results)


def measured(printed: str) -> dict[str, float]:
    """The seconds of each test, as a run has printed them. Pure."""
    return {told[2]: float(told[1]) for line in printed.splitlines() if (told := _TOOK.match(line))}


def main() -> None:
    """Entry point: write the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("printed", type=Path, help="what a run of all tests has printed")
    parser.add_argument("--seconds", type=float, default=BUDGET_SECONDS)
    asked = parser.parse_args()
    took = measured(asked.printed.read_text())
    found = left_out(took, finders(), asked.seconds, {test: seen.functions for test, seen in known().items()})
    LIST.write_text("".join(f"{seconds:7.2f}  {test}\n" for test, seconds in sorted(found.items())))
    print(f"{len(found)} of {len(took)} tests are left out: {sum(found.values()):.0f} of {sum(took.values()):.0f} s")


if __name__ == "__main__":
    main()
