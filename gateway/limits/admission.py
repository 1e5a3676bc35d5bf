"""Who may begin a turn: a bound on what the whole gateway has open, and the order of those who wait. Pure.

Theory. A turn costs memory, the model's patience and a share of one processor; more of them at once than the machine can carry make each of
them slow, and the next person waits without a word. So a turn begins only with a slot, and whoever waits is in one line: turns that an
earlier process left open first, then the oldest message. Nobody holds more than their share of the slots; who has it is passed over
until one of their own turns has ended. People who cannot be told apart (a client of the API that does not say for whom it asks) share a
larger one, so that a flood of them leaves room for everybody else. Beginning a turn costs more than anything before its first word, so only a few begin at once:
meanwhile there is time to take messages, and to tell people where they stand. What an earlier process left open begins in a ramp (`ramp`): while the
next of that may not begin yet, who is new goes before it.

Laws (tests/gateway/test_admission.py). Never are more than `open` turns open, nor more than `opening` of them beginning, nor more than
`share` of one person, nor more than `crowd` of people who cannot be told apart. Among those who may have a slot, who is taken
up comes before who is new, and the older before the newer. Whoever waits gets a slot after at most as many ends as there are slots
taken and people before them: nobody starves. While there is room, nobody waits who may have a slot.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable
from enum import StrEnum
from typing import Generic, TypeVar

from agent_core.records import dataclass
from gateway.limits.ramp import Ramp

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many there may be. None of them is less than 1, and `share` and `crowd` are not more than `open`."""

    open: int = 1_000
    """Turns that are open at once."""
    opening: int = 36
    """Turns that are being begun at once."""
    share: int = 125
    """Open turns of one person."""
    crowd: int = 750
    """Open turns of all people together who cannot be told apart."""
    waiting: int = 5_000
    """Messages that wait in all; the next one is refused."""

    @staticmethod
    def of(open_turns: int, waiting: int) -> Bounds:
        """What follows from the two that are configured."""
        share, crowd = max(1, open_turns // 8), max(1, open_turns - open_turns // 4)
        return Bounds(open_turns, min(36, open_turns), share, crowd, waiting)

    def of_person(self, person: str) -> int:
        return self.share if person else self.crowd


@dataclass(frozen=True, slots=True)
class SlotClaim:
    """What somebody asks a slot for."""

    person: str
    """Whose share it counts in; empty: nobody knows."""
    since: int
    """When the message was received, ms."""
    taken_up: bool = False
    """The turn is open already, left by an earlier process."""


class SlotStage(StrEnum):
    """How far somebody with a slot is."""

    BEGINNING = "beginning"
    OPEN = "open"


@dataclass(slots=True)
class _Admitted:
    person: str
    stage: SlotStage


_Rank = tuple[bool, int, int]


class Admission(Generic[K]):
    """The line and the slots. Whoever asks is named by a key; each has at most one claim or slot."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.ramp = Ramp()
        self._line: list[_Rank] = []
        """In order."""
        self._claims: dict[K, tuple[_Rank, SlotClaim]] = {}
        self._keys: dict[int, K] = {}
        self._given: dict[K, _Admitted] = {}
        self._beginning = 0
        self._held: Counter[str] = Counter()
        """Slots by person."""
        self._number = 0

    # ------------------------------------------------------------------ what is asked

    @property
    def waiting(self) -> int:
        return len(self._line)

    @property
    def open(self) -> int:
        return len(self._given)

    def waits(self, key: K) -> bool:
        return key in self._claims

    def position(self, key: K) -> int | None:
        """The position in the line, 1 being the first; None for who does not wait."""
        found = self._claims.get(key)
        return bisect_left(self._line, found[0]) + 1 if found is not None else None

    def oldest_since(self) -> int | None:
        """Since when the oldest message in the line waits, ms."""
        return (
            min((rank[1] for rank in (self._line[0], self._first_new()) if rank), default=None) if self._line else None
        )

    def _first_new_at(self) -> int:
        return bisect_left(self._line, (True, 0, 0))

    def _first_new(self) -> _Rank | None:
        at = self._first_new_at()
        return self._line[at] if at < len(self._line) else None

    def may_begin(self) -> bool:
        """Whether another turn, whosoever, may begin now."""
        return len(self._given) < self.bounds.open and self._beginning < self.bounds.opening

    @property
    def only_beginning(self) -> bool:
        """There are slots, and it is only that enough turns are being begun just now."""
        return len(self._given) < self.bounds.open and self._beginning >= self.bounds.opening

    # ------------------------------------------------------------------ what happens

    def ask(self, key: K, claim: SlotClaim) -> None:
        """Get into the line. Who is there, or has a slot, stays as they are."""
        if key in self._claims or key in self._given:
            return
        self._number += 1
        rank = (not claim.taken_up, claim.since, self._number)
        insort(self._line, rank)
        self._claims[key] = rank, claim
        self._keys[self._number] = key

    def at_once(self, key: K, claim: SlotClaim) -> bool:
        """Get a slot without a line: if there is one, and nobody is passed over."""
        free = self.may_begin() and not self._line and self._held[claim.person] < self.bounds.of_person(claim.person)
        if not free or key in self._given:
            return False
        self.ask(key, claim)
        self._give(key)
        return True

    def next(self, now: float) -> K | None:
        """Who gets a slot now, if anybody may; ask again until nobody does. `now` is of the monotonic clock."""
        if not self.may_begin():
            return None
        held_up = not self.ramp.room(now)
        for rank in self._line[self._first_new_at() if held_up else 0 :]:
            key = self._keys[rank[2]]
            claim = self._claims[key][1]
            if self._held[claim.person] < self.bounds.of_person(claim.person):
                if claim.taken_up:
                    self.ramp.took(now)
                self._give(key)
                return key
        return None

    def held_up_seconds(self, now: float) -> float:
        """When it is to be asked again for the sake of the ramp alone; 0 if nobody waits for that."""
        return self.ramp.wait_seconds(now) if self._line and not self._line[0][0] and self.may_begin() else 0.0

    def _give(self, key: K) -> None:
        claim = self._leave_line(key)
        assert claim is not None
        self._given[key] = _Admitted(claim.person, SlotStage.BEGINNING)
        self._held[claim.person] += 1
        self._beginning += 1

    def begun(self, key: K) -> None:
        """The turn is open, or there is only something to wait for: another may be begun."""
        given = self._given.get(key)
        if given is not None and given.stage is SlotStage.BEGINNING:
            given.stage = SlotStage.OPEN
            self._beginning -= 1

    def leave(self, key: K) -> None:
        """The turn is over, or the slot is not wanted any more."""
        self._leave_line(key)
        self.begun(key)
        given = self._given.pop(key, None)
        if given is not None:
            self._held[given.person] -= 1
            if not self._held[given.person]:
                del self._held[given.person]

    def _leave_line(self, key: K) -> SlotClaim | None:
        found = self._claims.pop(key, None)
        if found is None:
            return None
        rank, claim = found
        del self._line[bisect_left(self._line, rank)]
        del self._keys[rank[2]]
        return claim
