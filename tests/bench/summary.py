"""Several rounds of the same measurements as one table: the median, and how far the rounds lie apart. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.bench.cases import Figure

Peers = Mapping[str, Mapping[str, float]]
"""A peer's name and release → our figure's name → its value."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a whole run of `make bench`."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    limit: float | None = None
    at_least: bool = False
    reference: float | None = None
    """The reference's median in the same rounds."""
    peers: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def kept(self) -> bool | None:
        """Whether the median keeps the aim; None if there is no aim."""
        if self.limit is None:
            return None
        return self.median >= self.limit if self.at_least else self.median <= self.limit


def rows(rounds: Sequence[Sequence[Figure]], peers: Peers) -> list[Row]:
    """One row a figure, in the order of the first round. A figure that a round did not measure counts where it was measured."""
    seen: dict[str, list[Figure]] = {}
    for figures in rounds:
        for figure in figures:
            seen.setdefault(figure.name, []).append(figure)
    return [_row(figures, peers) for figures in seen.values()]


def _row(figures: Sequence[Figure], peers: Peers) -> Row:
    first, values = figures[0], [figure.value for figure in figures]
    references = [figure.reference for figure in figures if figure.reference is not None]
    return Row(
        name=first.name,
        unit=first.unit,
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        limit=first.limit,
        at_least=first.at_least,
        reference=statistics.median(references) if references else None,
        peers={peer: theirs[first.name] for peer, theirs in peers.items() if first.name in theirs},
    )
