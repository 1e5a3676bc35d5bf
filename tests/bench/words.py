"""Words of nobody, as many as are wanted."""

from __future__ import annotations

import random

WORDS = [
    f"{a}{b}"
    for a in ("re", "con", "in", "over", "sub", "pre", "un")
    for b in ("port", "figure", "table", "date", "plan", "mail")
]


def text(dice: random.Random, low: int, high: int) -> str:
    """So many of them."""
    return " ".join(dice.choices(WORDS, k=dice.randint(low, high)))
