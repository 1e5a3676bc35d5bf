"""Failures into groups, the most harmful first. Pure: it knows neither logs nor databases, and gets the time as an argument.

Theory. A source tells of single failures (`SeenFailure`). Failures with one key are a group: they have one cause and one remedy. A group
is sums, sets and the latest of something, so that how the failures were cut into files, and in which order they came, cannot matter.

Laws (tests/gateway/test_triage_laws.py): the order does not matter; no failure is lost; what hurts more conversations at the same time never stands behind what hurts fewer.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from typing import TypeAlias

from agent_core.failures.troubles import RemedyOutcome
from agent_core.records import dataclass

EXAMPLES = 3
HALF_LIFE_MS = 6 * 3_600_000
"""A trouble that was last seen so long ago counts half."""
EVERYONE = 10
"""A trouble that hits everybody on a platform (or here) counts at least as much as so many conversations."""
CURED = 0.1
"""How much a conversation counts in which a remedy helped."""


@dataclass(frozen=True, slots=True)
class Issue:
    """What a group is about."""

    key: str
    """Two failures belong together if this is the same."""
    title: str
    action: str
    everyone: bool = False
    """It is no single conversation's trouble."""


@dataclass(frozen=True, slots=True)
class SeenFailure:
    """One failure, as a source tells of it."""

    issue: Issue
    at: int
    """Milliseconds since the Unix epoch."""
    hurt: bool = True
    """Somebody did not get what they asked for; False: a remedy cured it."""
    conversation: str = ""
    turn: str = ""
    surface: str = ""
    remedy: str = ""
    """What was tried against it; empty: nothing."""
    outcome: str = ""
    words: str = ""
    """What a platform, provider or program said of it."""
    evidence: bool = False
    """A second line about a failure that another line counts."""
    asker: str = ""
    """With which key and of which agent it was asked (`asker_words`)."""


@dataclass(slots=True)
class Group:
    """Failures with one key."""

    issue: Issue
    count: int = 0
    evidence: int = 0
    first_at: int = 0
    last_at: int = 0
    hurt: set[str] = field(default_factory=set[str])
    """Conversations in which somebody did not get what they asked for."""
    cured: set[str] = field(default_factory=set[str])
    ended: int = 0
    """Failures that hurt."""
    turns: dict[str, int] = field(default_factory=dict[str, int])
    """The latest few, with their times."""
    askers: dict[str, str] = field(default_factory=dict[str, str])
    """Who asked for those turns, as far as that is known."""
    surfaces: Counter[str] = field(default_factory=Counter[str])
    remedies: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By remedy and outcome."""
    words: tuple[int, str] = (0, "")
    """The latest, with its time."""

    @property
    def times(self) -> int:
        """How many failures; of lines that only accompany others, those."""
        return self.count or self.evidence

    def add(self, seen: SeenFailure) -> None:
        if seen.evidence:
            self.evidence += 1
        else:
            self.count += 1
            self.ended += seen.hurt
        if seen.surface:
            self.surfaces[seen.surface] += 1
        if seen.conversation:
            (self.hurt if seen.hurt else self.cured).add(seen.conversation)
        if seen.remedy:
            self.remedies[seen.remedy, seen.outcome] += 1
        self._span(seen.at)
        if seen.turn:
            self._example(seen.turn, seen.at)
            if seen.asker:
                self.askers[seen.turn] = seen.asker
        if seen.words:
            self.words = max(self.words, (seen.at, seen.words))

    def _span(self, at: int) -> None:
        self.first_at = min(self.first_at, at) if self.first_at else at
        self.last_at = max(self.last_at, at)

    def _example(self, turn: str, at: int) -> None:
        self.turns[turn] = max(at, self.turns.get(turn, 0))
        if len(self.turns) > EXAMPLES:
            del self.turns[min(self.turns, key=lambda one: (self.turns[one], one))]

    @property
    def examples(self) -> tuple[str, ...]:
        """The latest turns, the latest first."""
        return tuple(heapq.nlargest(EXAMPLES, self.turns, key=lambda one: (self.turns[one], one)))

    @property
    def conversations(self) -> int:
        return len(self.hurt | self.cured)

    def harm(self, now: int) -> float:
        """How much it matters: conversations hurt, halved for every six hours since it was last seen."""
        affected = len(self.hurt) + CURED * len(self.cured - self.hurt)
        affected = max(affected, EVERYONE if self.issue.everyone else 0, 1 if self.ended or not self.count else CURED)
        return affected * 0.5 ** (max(0, now - self.last_at) / HALF_LIFE_MS)


Groups: TypeAlias = dict[str, Group]


def add(groups: Groups, seen: SeenFailure) -> None:
    group = groups.get(seen.issue.key)
    if group is None:
        group = groups[seen.issue.key] = Group(seen.issue)
    group.add(seen)


def grouped(failures: Iterable[SeenFailure]) -> Groups:
    groups: Groups = {}
    for seen in failures:
        add(groups, seen)
    return groups


def ranked(groups: Groups, now: int) -> list[Group]:
    """The most harmful first."""
    return sorted(groups.values(), key=lambda one: (-one.harm(now), -one.last_at, -one.times, one.issue.key))


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one remedy."""

    remedy: str
    times: int
    helped: int
    known: int
    """Times of which it is known whether it helped."""


def tried(group: Group) -> list[Tried]:
    """What was tried against a group's failures, the most frequent first."""
    by_remedy: dict[str, Counter[str]] = {}
    for (remedy, outcome), times in group.remedies.items():
        by_remedy.setdefault(remedy, Counter())[outcome] += times
    found = [
        Tried(
            remedy,
            counts.total(),
            counts[RemedyOutcome.HELPED.value],
            counts.total() - counts[RemedyOutcome.NOT_KNOWN.value],
        )
        for remedy, counts in by_remedy.items()
    ]
    return sorted(found, key=lambda one: (-one.times, one.remedy))
