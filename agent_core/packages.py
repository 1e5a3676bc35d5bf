"""What the installed packages declare (entry points). They are looked through once in a process, which takes some milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

_all = cache(entry_points)


def declared(group: str) -> Sequence[EntryPoint]:
    """Those of a group, in the order of their names."""
    return sorted(_all().select(group=group), key=lambda one: (one.name, one.value))


def look_again() -> None:
    """Something was installed meanwhile: what tests do."""
    _all.cache_clear()
