"""The toy package as `pip install` leaves it, for a block: where Python finds it, with the metadata of its `pyproject.toml`.

A process that is forked in the block finds it too. No other test sees a platform that is not shipped.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from adapters.platforms import GROUP, found
from agent_core.packages import look_again

PACKAGE = Path(__file__).parent


@contextmanager
def installed() -> Generator[None]:
    with tempfile.TemporaryDirectory(prefix="outspoken-toy-") as name:
        folder = Path(name)
        _metadata(folder)
        with seen_in(folder):
            yield


@contextmanager
def seen_in(*folders: Path) -> Generator[None]:
    """For the block, packages in these folders are installed."""
    named = [str(folder) for folder in folders]
    sys.path[:0] = named
    _look_again()
    try:
        yield
    finally:
        for one in named:
            sys.path.remove(one)
        _look_again()


def _look_again() -> None:
    importlib.invalidate_caches()
    look_again()
    found.cache_clear()


def _metadata(folder: Path) -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = folder / f"outspoken_toy-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    entries = "".join(f"{name} = {value}\n" for name, value in project["entry-points"][GROUP].items())
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entries}")
