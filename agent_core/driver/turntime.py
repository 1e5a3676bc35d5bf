"""The time of day as a turn counts it.

Law: nothing of a turn lasts less than nothing, and it ends after it began, whoever runs it. Whoever goes on with a turn counts on from the last that its
journal tells, if their clock is behind that: it was set back, or the clock of another machine has written it. Where it is ahead, the turn seems to have stood for longer.
Gateways that can take turns from each other have one time of day: that of their database (`agent_core.ports.CommonClock`).
"""

from __future__ import annotations

from dataclasses import replace

from agent_core.ports import Clock
from agent_core.turn.events import Event


class TurnTime:
    """A `Clock` for one turn."""

    __slots__ = ("_clock", "ahead")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = 0
        """Of this gateway's clock, ms."""

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ahead

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def counted(self, event: Event) -> Event:
        """What happened at a time of this gateway's clock."""
        return replace(event, at=event.at + self.ahead) if self.ahead else event
