"""What the core takes from the world instead of reaching for it: time, ids and randomness.

Everything that decides receives these as arguments (usually inside an event), so a turn can be replayed and simulated.
"""

from __future__ import annotations

import os
import struct
import time
from typing import Protocol


class Clock(Protocol):
    """The time of day, and the time that has passed. Both are passed in everywhere; nothing in the core calls `time` itself."""

    def now_ms(self) -> int:
        """Wall-clock time in milliseconds since the Unix epoch. May jump; used for what is stored and shown."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards. Used for every duration and deadline."""
        ...


def steady_ms(clock: Clock) -> int:
    """Milliseconds that never go back: what lasts within this process is counted by them, whatever becomes of the wall clock."""
    return round(clock.monotonic() * 1000)


class Ids(Protocol):
    """A source of new identifiers and of seeds."""

    def new(self, prefix: str) -> str:
        """A new id such as ``t_01jz…``: `prefix`, an underscore, then characters that sort by creation time."""
        ...

    def seed(self) -> int:
        """63 random bits, from which a turn derives its jitter, so that a replay waits exactly as long."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)


NEAR_MS = 1_000
"""So far two clocks are kept together by what sets them; what is less is left as it is."""


class CommonClock:
    """The machine's clocks for those who share a database that has a clock of its own: their time of day is its. What one of them has stored, another
    goes on with in the next second, and would take for old, or for still to come, by a clock that stands otherwise."""

    __slots__ = ("_clock", "ahead", "monotonic")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.monotonic = clock.monotonic
        self.ahead = 0
        """Of the machine's, ms."""

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ahead

    def told(self, at_ms: int, passed_ms: int) -> bool:
        """The database has said the time, within the last so many milliseconds. Whether there is another one than was thought."""
        earliest = at_ms - self._clock.now_ms()
        latest = earliest + passed_ms
        if earliest - NEAR_MS <= self.ahead <= latest + NEAR_MS:
            return False
        alike = earliest - NEAR_MS <= 0 <= latest + NEAR_MS
        self.ahead = 0 if alike else (earliest + latest) // 2
        return True


_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no letter is taken for a digit


_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]


def _base32(value: int) -> str:
    """The lowest 50 bits, in ten characters, two at a time."""
    two = _PAIRS
    return f"{two[value >> 40 & 1023]}{two[value >> 30 & 1023]}{two[value >> 20 & 1023]}{two[value >> 10 & 1023]}{two[value & 1023]}"


def time_mark(at_ms: int) -> str:
    """What the ids that are made at this time have behind their prefix: ids of one prefix sort by it."""
    return _base32(max(0, at_ms))


_MANY = 128
"""The kernel's random numbers come for so many ids at once, or seeds: a turn has six of them, and each was a call of the kernel."""
_SEEDS = struct.Struct(f"{_MANY}Q")
_RANDOM_CHARS = 10
_AS_CHARS = (_ALPHABET * 8).encode()
"""A random byte as a character: of its eight bits five."""


class SystemIds:
    """Ids of 10 time characters (milliseconds) and 10 random ones (50 bits): unique, and sortable by creation. Of one process: two that came
    of one would have the same numbers left."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seeds: list[int] = []
        self._endings: list[str] = []
        """Of ids to come: ten random characters each."""
        self._mark = (-1, "")
        """The time of the latest id, and what ids of that time begin with: a message has several of one millisecond."""

    def new(self, prefix: str) -> str:
        now = self._clock.now_ms()
        at, mark = self._mark
        if at != now:
            mark = time_mark(now)
            self._mark = now, mark
        try:  # any thread may ask, for a seed as well
            ending = self._endings.pop()
        except IndexError:
            random = os.urandom(_MANY * _RANDOM_CHARS).translate(_AS_CHARS).decode()
            self._endings = [random[at : at + _RANDOM_CHARS] for at in range(0, len(random), _RANDOM_CHARS)]
            ending = self._endings.pop()
        return f"{prefix}_{mark}{ending}"

    def seed(self) -> int:
        try:
            return self._seeds.pop() >> 1
        except IndexError:
            self._seeds = [*_SEEDS.unpack(os.urandom(_SEEDS.size))]
            return self._seeds.pop() >> 1
