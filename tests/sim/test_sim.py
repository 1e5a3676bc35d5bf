"""The simulation in small: a hundred and fifty turns, and that a seed can be repeated."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


def run(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.run", *arguments],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_some_hundred_turns_keep_every_law() -> None:
    done = run("--turns", "150")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.match(r"(\d+) turns", done.stdout)
    assert found is not None
    assert int(found[1]) >= 150
    print(done.stdout)


def test_some_hundred_turns_with_an_odd_upstream_keep_every_law() -> None:
    done = run("--turns", "150", "--seed", "10000000")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_seed_can_be_repeated_to_the_byte() -> None:
    prints = [re.findall(r"fingerprint (\w{64})", run("--only", "252", hash_seed=seed).stdout) for seed in ("0", "1")]
    assert prints[0] == prints[1] != []


@pytest.mark.parametrize("seed", [4001762, 5001034])
def test_a_seed_that_found_something_once_stays_sound(seed: int) -> None:
    done = run("--only", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
