"""The branches of a conversation: a message that is asked once more, in other words or the same, is another version of it, and what follows is another
branch. One branch is shown, and put before the model. Pure.

Laws (tests/gateway/test_branches.py): what is told is one line from the beginning to its tip; no turn that a person took back comes back unless it is
asked for itself; showing what is shown changes nothing; and whatever was shown before can be shown again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from adapters.contract.base import TurnSight
from agent_core.records import dataclass
from agent_core.store.sessions.rows import BranchChange
from agent_core.store.turns.rows import TAKEN_BACK, TurnPlace


@dataclass(frozen=True, slots=True)
class Branches:
    """What there is to see of them."""

    forked: bool = False
    """There are several, or something was taken back."""
    known: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """Turns that are not on the branch that is shown, and whose place another version has, or one of a turn before."""
    undone: frozenset[str] = frozenset()
    """Those that were taken back, and in whose place nothing has come."""
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By turn, where there are several: all versions that can still be read, the oldest first."""

    def seen(self, sight: TurnSight) -> TurnSight:
        """A message that is shown, with what there is to choose from in its place."""
        return replace(sight, undone=sight.turn in self.undone, versions=self.versions.get(sight.turn, ()))


def branches_of(places: Sequence[TurnPlace]) -> Branches:
    """`places` are in the order of their numbers."""
    known = frozenset(one.turn for one in places)
    if not any((one.undone and not one.removed) or one.follows >= 0 for one in places):
        return Branches(known=known)
    siblings: dict[int, list[TurnPlace]] = {}
    for one in places:
        siblings.setdefault(one.parent, []).append(one)
    lost: set[int] = set()
    hidden: set[str] = set()
    versions: dict[str, tuple[str, ...]] = {}
    for one in places:
        beside = siblings[one.parent]
        elsewhere = one.undone and (one.undone != TAKEN_BACK or any(not other.undone for other in beside))
        if elsewhere or one.parent in lost:
            lost.add(one.number)
            hidden.add(one.turn)
        readable = tuple(other.turn for other in beside if not other.removed)
        if len(readable) > 1 and one.turn in readable:
            versions[one.turn] = readable
    undone = frozenset(one.turn for one in places if one.undone) - hidden
    return Branches(True, known, frozenset(hidden), undone, versions)


def to_show(places: Sequence[TurnPlace], turn: str) -> BranchChange | None:
    """The branch with this turn: of what came after it the latest that was not taken back. None if it cannot be shown, or is."""
    found = next((one for one in places if one.turn == turn), None)
    if found is None or found.removed or not found.undone:
        return None
    after: dict[int, TurnPlace] = {}
    for one in places:
        if one.undone != TAKEN_BACK and not one.removed:
            after[one.parent] = one
    tip = found
    while (later := after.get(tip.number)) is not None:
        tip = later
    return _ending(places, tip.number)


def before(places: Sequence[TurnPlace], turn: str) -> BranchChange | None:
    """The branch up to what this turn follows: another version of it comes next."""
    found = next((one for one in places if one.turn == turn), None)
    return _ending(places, found.parent) if found is not None else None


def line(places: Sequence[TurnPlace], number: int) -> list[TurnPlace]:
    """The turns from the beginning to the one with this number."""
    by_number = {one.number: one for one in places}
    found: list[TurnPlace] = []
    while (one := by_number.get(number)) is not None:
        found.append(one)
        number = one.parent
    return found[::-1]


def _ending(places: Sequence[TurnPlace], tip: int) -> BranchChange:
    on_it = {one.turn for one in line(places, tip) if not one.removed}
    told = tuple(one.turn for one in places if one.undone and one.turn in on_it)
    return BranchChange(tip, told, tuple(one.turn for one in places if not one.undone and one.turn not in on_it))
