"""The whole daemon in the simulation, in small; `make soak` runs more of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.whole.scenario import Plan, plan
from tests.sim.whole.shrink import shrunk, smaller

TURNS = int(os.environ.get("OUTSPOKEN_SIM_TURNS", "120"))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.whole.run", *arguments],
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=max(300, TURNS),
        check=False,
    )


@pytest.mark.timeout(max(330, TURNS))
def test_a_daemon_that_is_killed_and_a_service_that_fails_keep_every_law() -> None:
    done = run("--turns", str(TURNS))
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.match(r"(\d+) turns", done.stdout)
    assert found is not None
    assert int(found[1]) >= TURNS
    if TURNS > 1_000:
        assert "not reached: nothing" in done.stdout, done.stdout
    print(done.stdout)


def test_who_is_just_about_to_press_a_button_is_waited_for() -> None:
    """Seed 88: pressed after the last look, as the gateway was told to stop, it was heard by nobody."""
    done = run("--only", "88")
    assert done.returncode == 0, done.stdout + done.stderr


@given(st.integers(1, 10_000))
def test_what_is_left_out_of_a_plan_makes_it_smaller(seed: int) -> None:
    whole = plan(seed)
    for less in smaller(whole):
        assert less != whole
        assert set(less.said) <= set(whole.said)
        assert set(less.kills) <= set(whole.kills)


def test_a_failing_scenario_shrinks_to_what_makes_it_fail() -> None:
    of = replace(plan(7), kills=(("time", 3.0), ("before", 4.0), ("time", 9.0)))

    def broken(less: Plan) -> list[str]:
        return ["a law"] if ("before", 4.0) in less.kills and less.said else []

    small = shrunk(of, broken)
    assert small.kills == (("before", 4.0),)
    assert len(small.said) == 1
    assert small.trouble == 0.0
