"""Ten thousand items of history cost a request no more than twice what an empty conversation does: counted, not timed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LIMIT = 2.0


@pytest.mark.some(1)
@pytest.mark.parametrize("tools", [0, 2])
def test_a_request_in_a_long_conversation_costs_no_more_than_twice_one_in_an_empty_one(tools: int) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tests.bench.longtalk", "--tools", str(tools)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr[-2000:]
    found = json.loads(made.stdout)
    long, empty = found["long"], found["empty"]
    for cost in ("statements", "commits", "calls"):
        assert long[cost] <= LIMIT * empty[cost], found
        assert long["chained"][cost] <= LIMIT * empty["chained"][cost], found
