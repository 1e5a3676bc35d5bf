"""What this process has met of damage, for all who store something again and again.

Law: who meets damage (`Damaged`: the store has tried twice) says so here and to whom it concerns, once, and does not try the same again
before everything was looked through and found sound (`DamageMet.sounds`). Waiting alone mends nothing.
"""

from __future__ import annotations

import structlog

from agent_core.ports import Clock
from agent_core.signals import Signal, TurnClosed
from gateway.storage.spread import Met, Spread

log = structlog.get_logger("gateway")


class DamageMet:
    """Whether damage is everybody's, by what this process has met of it: there before whoever meets it, and whoever asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spread = Spread()
        self.times = 0
        """How often damage was met since the start: a reason to look through all."""
        self.sounds = 0
        """How often all was looked through and found sound: whoever stopped trying for damage tries again then."""

    @property
    def everybodys(self) -> bool:
        return self._spread.everybodys

    def on(self, signal: Signal) -> None:
        """What ended well shows that its platform's chats can be used."""
        if isinstance(signal, TurnClosed) and signal.clean:
            self._spread = self._spread.answered(signal.surface)

    def meet(self, chat: str, error: Exception, *, usable: bool) -> None:
        """A conversation met it; `usable` is the one that began in its place."""
        before = self.everybodys
        self._spread = self._spread.after(Met(chat, self._clock.monotonic(), usable))
        if self.everybodys and not before:
            log.error("storage.damaged_for_all", chat=chat, error=f"{type(error).__name__}: {error}")

    def sound(self) -> None:
        """A look through everything found nothing damaged."""
        self.sounds += 1
        if self.everybodys:
            log.warning("storage.sound_again")
        self._spread = Spread()
