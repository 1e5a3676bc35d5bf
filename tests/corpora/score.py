"""Precision and recall of a detector on labelled examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """How a detector did: what it found rightly, what it found where there is none, and what it missed."""

    right: int
    false: int
    missed: int

    @classmethod
    def of(cls, verdicts: Iterable[tuple[bool, bool]]) -> Score:
        """From (is one, was found)."""
        seen = list(verdicts)
        return cls(seen.count((True, True)), seen.count((False, True)), seen.count((True, False)))

    @property
    def precision(self) -> float:
        found = self.right + self.false
        return self.right / found if found else 1.0

    @property
    def recall(self) -> float:
        there = self.right + self.missed
        return self.right / there if there else 1.0

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}, recall {self.recall:.3f} ({self.false} false, {self.missed} missed)"
