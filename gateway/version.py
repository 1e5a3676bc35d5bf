"""The program's version, as it is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def program_version() -> str:
    """The installed version; ``unknown`` when it runs from a folder that was never installed."""
    try:
        return version("outspoken")
    except PackageNotFoundError:
        return "unknown"
