"""Of the cases of some tests `make test` runs a few, and `make soak` all: ``@pytest.mark.some(3)``.

Those are tests whose cases take the same way through the program with other material, or prove how sharp other tests are. Which cases run each time
is said by the test's name, so that it is always the same ones, and of two tests not those in the same place. A case that is asked for by name is run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
ALL = bool(os.environ.get("OUTSPOKEN_ALL_CASES"))
"""`make soak`."""


def chosen(name: str, cases: Sequence[T], count: int) -> list[T]:
    """So many of them, at even distances, from a place on that the name says; all of them in `make soak`."""
    if ALL or count >= len(cases):
        return list(cases)
    first = crc32(name.encode()) % len(cases)
    places = sorted((first + number * len(cases) // count) % len(cases) for number in range(count))
    return [cases[place] for place in places]


def spare(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not run each time."""
    if any("[" in argument for argument in config.args):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") is not None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept = [case for test, cases in tests.items() for case in chosen(test.rpartition("::")[2], cases, _count(cases[0]))]
    spared = {case for cases in tests.values() for case in cases} - set(kept)
    if spared:
        config.hook.pytest_deselected(items=[item for item in items if item in spared])
        items[:] = [item for item in items if item not in spared]


def _count(item: pytest.Item) -> int:
    marker = item.get_closest_marker("some")
    assert marker is not None
    (count,) = marker.args
    return count
