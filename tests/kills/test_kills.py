"""A few kills; the two hundred are `make soak`'s."""

from __future__ import annotations

import subprocess
import sys


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
