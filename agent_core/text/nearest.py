"""Which known names look like one that is not known. Pure.

What compares them is loaded when somebody has mistyped something: a gateway that runs needs it hardly ever.
"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], most: int = 1, least: float = 0.6) -> list[str]:
    """The nearest first; none that is less alike than `least`."""
    from difflib import get_close_matches

    return get_close_matches(name, known, most, least)
