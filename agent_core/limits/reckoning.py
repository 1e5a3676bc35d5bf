"""How much time has really passed, as far as that is known. Pure: what the clocks show is handed in.

Theory. Only the clock that does not jump proves that time has passed, and only while a process runs. So the time by which things count as old
(`now`) goes with that clock; whatever the wall clock is ahead of it, because the gateway was off or because the clock was put forward, nobody
can tell which, is in doubt until a gateway has run for a day since. What is stored by others is no evidence: it was stamped by the same clock.

Laws (tests/agent_core/test_reckoning.py):
1. Before a leap of the wall clock has stood for a day of running, nothing is older than it was by time that really passed, whatever is
   started, stopped, put forward, put back and stored.
2. Where the clock is known to have been behind, what it stamped within a day of running counts as stamped when it was put right.
3. A clock that goes as it should is believed, and one that was off is after a day.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from operator import add
from typing import cast

from agent_core.records import dataclass

HOUR_MS = 3600 * 1000
STEADY_MS = 24 * HOUR_MS
"""So long a gateway must have run since a leap of the clock before that is believed."""
SWING_MS = HOUR_MS
"""So far a clock may be put right, by summer time or a server, without being said to have leapt."""
MOST_LEAPS = 256
"""Of more, the smallest is let go."""

Noted = tuple[tuple[int, int], ...]
Leap = tuple[int, int]
"""What is stamped from the first of these times on, up to the second, may have been written at the second."""


@dataclass(frozen=True, slots=True)
class Reckoning:
    """What is known of time; it is stored, so that it outlives the process."""

    wall: int
    """What the wall clock showed when it was looked at last, ms."""
    ran: int = 0
    """For how long gateways have run, ms."""
    doubted: Noted = ()
    """By how much the wall clock leapt ahead, and when that was, by `ran`. The oldest first."""
    dips: Noted = ()
    """What the wall clock showed after it had been put back, and when that was, by `ran`."""
    leaps: tuple[Leap, ...] = ()

    @property
    def ahead(self) -> int:
        """How far the wall clock is ahead of what is known, ms."""
        return sum(by for _, by in self.doubted)

    @property
    def now(self) -> int:
        """The time by which things count as old."""
        return self.wall - self.ahead

    @property
    def in_doubt(self) -> bool:
        """Whether it is worth saying."""
        return self.ahead > SWING_MS


def looked(before: Reckoning, wall: int, passed: int, run: int | None) -> Reckoning:
    """After another look at the clocks, `passed` ms later by the one that does not jump.

    `run` is for how long this process has been running; None at its start, when nobody knows what was before.
    """
    ran = before.ran + passed
    after = replace(
        before,
        wall=wall,
        ran=ran,
        doubted=tuple(one for one in before.doubted if one[0] + STEADY_MS > ran),
        dips=tuple(one for one in before.dips if one[0] + STEADY_MS > ran),
    )
    moved = wall - before.wall - passed
    if moved < 0:
        after = replace(after, doubted=_less(after.doubted, -moved))
        return replace(after, dips=_noted(after.dips, ran, wall, min)) if moved < -SWING_MS else after
    if moved == 0:
        return after
    after = replace(after, doubted=_noted(after.doubted, ran, moved, add))
    lows = [low for _, low in after.dips]
    if run is not None:
        lows.append(before.wall - min(run, STEADY_MS))
    if moved <= SWING_MS or not lows:
        return after
    leaps = sorted((*after.leaps, (min(lows), wall)), key=lambda leap: leap[0] - leap[1])[:MOST_LEAPS]
    return replace(after, leaps=tuple(leaps))


def reach(before: int, leaps: tuple[Leap, ...]) -> int:
    """What is older than `before` may go; with what may have been stamped too early left out."""
    return min([before, *(low for low, until in leaps if before < until)])


def encoded(one: Reckoning) -> str:
    """As it is stored."""
    return json.dumps([one.wall, one.ran, one.doubted, one.dips, one.leaps], separators=(",", ":"))


def decoded(text: str) -> Reckoning | None:
    """From what is stored; None if that cannot be read."""
    try:
        wall, ran, *rest = cast("list[object]", json.loads(text))
        doubted, dips, leaps = (
            tuple((int(first), int(second)) for first, second in cast("list[list[int]]", pairs)) for pairs in rest
        )
        return Reckoning(int(cast("int", wall)), int(cast("int", ran)), doubted, dips, leaps)
    except (ValueError, TypeError):
        return None


def _noted(notes: Noted, ran: int, value: int, both: Callable[[int, int], int]) -> Noted:
    """One more; those of one hour are one."""
    if notes and notes[-1][0] // HOUR_MS == ran // HOUR_MS:
        return (*notes[:-1], (ran, both(notes[-1][1], value)))
    return (*notes, (ran, value))


def _less(doubted: Noted, back: int) -> Noted:
    """The clock was put back: what it had leapt ahead last is no more."""
    left = list(doubted)
    while left and back > 0:
        ran, by = left.pop()
        if by > back:
            left.append((ran, by - back))
        back -= by
    return tuple(left)
