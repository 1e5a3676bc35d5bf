"""Numbers on the command line: one kind for whole ones and one for others. Each has bounds, so that none is infinite, none is no number, and none is too
large for what is reckoned with it."""

from __future__ import annotations

import math
from typing import Any

import click
from typing_extensions import override

MOST = 10**15
"""Of anything that is counted: what is made of it, such as thousandths, is stored in 64 bits."""
MOST_MONEY = 10**9
"""Of a currency: billionths of it are stored."""
MOST_SECONDS = 10**9
"""Thirty years."""


class Number(click.FloatRange):
    """A number, such as one of seconds or of money. Bounds that go without saying are not told in the help."""

    def __init__(self, least: float = 0, most: float | None = None, *, untold: float = MOST) -> None:
        super().__init__(least, most)
        self._untold = untold

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found) or found > self._untold:  # what is no number is within any bounds
            self.fail(f"{value} is no number of at most {self._untold:.0f}.", param, ctx)
        return found


class WholeNumber(click.IntRange):
    """A whole number."""

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        super().__init__(least, most)

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = int(super().convert(value, param, ctx))
        if found > MOST:
            self.fail(f"{value} is more than {MOST}.", param, ctx)
        return found
