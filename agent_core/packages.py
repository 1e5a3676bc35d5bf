"""What the installed packages declare for us (entry points). They are looked through once in a process, which takes some milliseconds; what they declare for
others is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, distribution, distributions

OURS = "[outspoken."
"""How a group of ours begins where it is declared."""


@cache
def _all() -> Sequence[EntryPoint]:
    names = {one.name for one in distributions() if OURS in (one.read_text("entry_points.txt") or "")}
    # Of two that have a name, the first one counts.
    return [point for name in sorted(names) for point in distribution(name).entry_points]


def declared(group: str) -> Sequence[EntryPoint]:
    """Those of a group, in the order of their names."""
    return sorted((one for one in _all() if one.group == group), key=lambda one: (one.name, one.value))


def look_again() -> None:
    """Something was installed meanwhile: what tests do."""
    _all.cache_clear()
