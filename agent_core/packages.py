"""What the installed packages declare (entry points). They are looked through once in a process, which takes some milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points


@cache
def _all() -> Sequence[EntryPoint]:
    found = entry_points()
    return [one for group in found.groups for one in found.select(group=group)]


def declared(group: str) -> Sequence[EntryPoint]:
    """Those of a group, in the order of their names."""
    return sorted((one for one in _all() if one.group == group), key=lambda one: (one.name, one.value))


def look_again() -> None:
    """Something was installed meanwhile: what tests do."""
    _all.cache_clear()
