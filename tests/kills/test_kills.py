"""A few kills; the five hundred are `make soak`'s."""

from __future__ import annotations

import subprocess
import sys

LIMIT_SECONDS = 180
"""Beyond the limit of the process itself, which ends with what it started."""


def said_by(module: str, kills: int) -> str:
    """What it says of a run that went well."""
    command = [sys.executable, "-m", f"tests.kills.{module}", "--kills", str(kills), "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_killed_gateways_lose_nothing_and_do_nothing_twice() -> None:
    assert "5 kills" in said_by("run", 5)


def test_sixteen_conversations_with_file_tools_lose_nothing_and_do_nothing_twice_in_gateways_that_are_killed() -> None:
    assert "0 lost, 0 done twice" in said_by("load", 6)
