"""The program's version, as it is installed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

HEAD = "Version: "


@cache
def program_version() -> str:
    """The installed version; ``unknown`` when it runs from a folder that was never installed. Read once, and nothing but its line: the whole
    head has the README in it, which is parsed as a mail."""
    try:
        said = distribution("outspoken").read_text("METADATA") or ""
    except PackageNotFoundError:
        said = ""
    return next((line.removeprefix(HEAD) for line in said.splitlines() if line.startswith(HEAD)), "unknown")
