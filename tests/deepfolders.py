"""Folders that no path reaches, as a command of the agent can make them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from _pytest import pathlib

from agent_core.tools.files.trees import empty_tree

DEEP = 2_500
"""Deeper than Python calls itself."""


def dig(top: Path, depth: int = DEEP, name: str = "d") -> None:
    """Folders in folders, and a file in the lowest."""
    here = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    lowest = os.open("lowest", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=here)
    os.write(lowest, b"low")
    os.close(lowest)
    os.close(here)


_plain = pathlib.rm_rf


def _removed(path: Path) -> None:
    with suppress(OSError):  # what is left is pytest's to tell
        empty_tree(path)
    _plain(path)


def are_removed() -> None:
    """From now on pytest removes such folders too: what a run that was killed has left of them would else end each later run in place of its summary."""
    pathlib.rm_rf = _removed
