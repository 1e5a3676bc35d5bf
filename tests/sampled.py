"""Of the cases of some tests `make test` runs a few, and `make soak` all: ``@pytest.mark.some(3)``.

Those are tests whose cases take the same way through the program with other material, or prove how sharp other tests are. Which cases run each time
is said by the test's name, so that it is always the same ones, and of two tests not those in the same place. ``@pytest.mark.some()`` is for a test of
several parameters: each value of one meets each value of each other one if there are more than two, and else each value is there. A case that is asked
for by name is run.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
ALL = bool(os.environ.get("TESTS_ALL_CASES"))
"""`make soak`."""


def chosen(name: str, cases: Sequence[T], count: int) -> list[T]:
    """So many of them, at even distances, from a place on that the name says; all of them in `make soak`."""
    if ALL or count >= len(cases):
        return list(cases)
    first = crc32(name.encode()) % len(cases)
    places = sorted((first + number * len(cases) // count) % len(cases) for number in range(count))
    return [cases[place] for place in places]


def covering(cases: Sequence[Sequence[str]]) -> list[int]:
    """Numbers of few cases in which each two values are together that are so in any; of cases of two parameters, in which each value is."""
    together = [_together(case) for case in cases]
    wanted = frozenset[Hashable]().union(*together)
    found: list[int] = []
    while wanted:
        best = max(range(len(cases)), key=lambda number: len(together[number] & wanted))
        found.append(best)
        wanted -= together[best]
    return sorted(found)


def _together(case: Sequence[str]) -> frozenset[Hashable]:
    values = list(enumerate(case))
    return frozenset(combinations(values, 2) if len(case) > 2 else values)


def spare(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not run each time."""
    if ALL or any("[" in argument for argument in config.args):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = {case for test, cases in tests.items() for case in _of(test.rpartition("::")[2], cases)}
    spared = {case for cases in tests.values() for case in cases} - kept
    if spared:
        config.hook.pytest_deselected(items=[item for item in items if item in spared])
        items[:] = [item for item in items if item not in spared]


def _of(name: str, cases: Sequence[pytest.Item]) -> Sequence[pytest.Item]:
    marker = cases[0].get_closest_marker("some")
    assert marker is not None
    if marker.args:
        return chosen(name, cases, marker.args[0])
    start = crc32(name.encode()) % len(cases)
    turned = [*cases[start:], *cases[:start]]  # of two that add as much the first is taken
    values: list[Sequence[str]] = [vars(vars(item)["callspec"])["_idlist"] for item in turned]
    return [turned[number] for number in covering(values)]
