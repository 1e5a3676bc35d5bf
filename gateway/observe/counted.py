"""One series of a metric, as it is counted: a turn adds to thirty of them, so it takes as little as it can."""

from __future__ import annotations

from bisect import bisect_left


class CounterSeries:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def add(self, amount: float) -> None:
        self.value += amount


class HistogramSeries:
    """One series of a histogram: how many were how large."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Up to each bound, from the one before it; the last are larger than all."""
        self.total = 0.0

    def add(self, amount: float) -> None:
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount


Series = CounterSeries | HistogramSeries
