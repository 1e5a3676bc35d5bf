"""A few kills; the five hundred are `make soak`'s."""

from __future__ import annotations

import subprocess
import sys

"""Beyond the limit of the process below, which ends with what it started."""


def test_killed_gateways_lose_nothing_and_do_nothing_twice() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills.run", "--kills", "5", "--seed", "3"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 kills" in done.stdout


def test_sixteen_conversations_with_file_tools_lose_nothing_and_do_nothing_twice_in_gateways_that_are_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills.load", "--kills", "6", "--seed", "3"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 lost, 0 done twice" in done.stdout
