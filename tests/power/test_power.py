"""The power is cut a few hundred times under the real store; the ten thousand are `make soak`'s."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.power.cuts import Disk, apply
from tests.power.recorder import Kind, Op


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.power.run", *arguments], capture_output=True, text=True, timeout=180, check=False
    )
    if "not possible here" in done.stderr:
        pytest.skip(done.stderr.strip())
    return done


def test_no_acknowledged_row_is_lost() -> None:
    done = run("--cuts", "400", "--seed", "7")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "losses: 0" in done.stdout


def test_without_syncs_losses_are_found() -> None:
    done = run("--cuts", "100", "--unsafe")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "losses: 0" not in done.stdout


writes = st.builds(Op, st.just(Kind.WRITE), st.just("f"), st.integers(0, 3_000), st.binary(min_size=1, max_size=1_500))


@given(before=st.lists(writes, max_size=4), after=st.lists(writes, max_size=4), seed=st.integers(0, 10**6))
def test_a_cut_leaves_what_was_synced_wherever_nothing_was_written_since(
    before: list[Op], after: list[Op], seed: int
) -> None:
    disks: dict[str, Disk] = {}
    for op in (*before, Op(Kind.SYNC, "f")):
        apply(disks, op)
    synced = bytes(disks["f"].synced)
    for op in after:
        apply(disks, op)
    found = disks["f"].after_cut(random.Random(seed))
    touched = {at for op in after for at in range(op.at, op.at + len(op.data))}
    assert len(found) >= len(synced)
    assert all(found[at] == synced[at] for at in range(len(synced)) if at not in touched)
