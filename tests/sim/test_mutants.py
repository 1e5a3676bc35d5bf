"""Planted mistakes: each patch in ``mutants/`` is one, and the simulation has to find it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MUTANTS = sorted((ROOT / "tests" / "sim" / "mutants").glob("*.patch"))
FEW = ("exit_without_notice",)
"""It is looked for each time, as almost any seed finds it: whether the simulation is sharp at all. `make soak` looks for all of them."""
TURNS = 6_000  # it ends at the first find, which most need a few hundred turns for


def mutated(folder: Path, patch: Path) -> None:
    """A copy of the program in `folder`, with the mistake in it."""
    ignored = shutil.ignore_patterns("mutants", ".hypothesis")  # what is compiled is taken along
    for part in ("agent_core", "gateway", "adapters", "migrations", "tests/sim", "tests/laws"):
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for name in ("__init__.py", "journalrows.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    subprocess.run(["patch", "-p1", "--fuzz=3", "-i", str(patch)], cwd=folder, check=True, capture_output=True)


def search(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.sim.run", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 12


def wanted() -> list[Path]:
    return MUTANTS if os.environ.get("TESTS_ALL_MUTANTS") else [patch for patch in MUTANTS if patch.stem in FEW]


@pytest.mark.timeout(330)
@pytest.mark.parametrize("patch", wanted(), ids=lambda path: path.stem)
def test_the_simulation_finds(patch: Path, tmp_path: Path) -> None:
    mutated(tmp_path, patch)
    hint, first = (re.search(rf"^{word}: (\d+)$", patch.read_text(), re.MULTILINE) for word in ("Seed", "First"))
    found = search(tmp_path, "--seed", hint[1], "--turns", "1") if hint else None
    if found is None or found.returncode == 0:  # the simulation has changed since the hint was written
        found = search(tmp_path, "--turns", str(TURNS), "--seed", first[1] if first else "1")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "\nseed " in found.stdout, found.stdout + found.stderr
