"""Writes a file that is there as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(target: Path, data: bytes) -> None:
    """The file with this data, on the disk when it returns."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.part")
    with beside.open("wb") as copy:
        copy.write(data)
        copy.flush()
        os.fsync(copy.fileno())
    beside.replace(target)
