"""Budgets and what is held in them, as they are stored; and what a message counts for by the day."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import orjson

from agent_core.limits.budgets import Amount, Level
from agent_core.records import dataclass

DAILY = "daily:"
"""How the scope of a `Charge` begins: it is no budget of model calls."""


FILE_SCOPE = f"{DAILY}file:"
"""How that of a `BroughtFile` begins; its digest and whose it is follow."""


@dataclass(frozen=True, slots=True)
class BroughtFile:
    """A file that comes with a message. It counts when it is new, and not when it is brought again."""

    scope: str
    """Which file, and whose: the same for equal ones of one person."""
    size: int

    @property
    def key(self) -> tuple[str, int]:
        return (self.scope, 0)


@dataclass(frozen=True, slots=True)
class Charge:
    """So much more in a day's count."""

    scope: str
    """Whose count of what: different ones never have the same."""
    window: int
    """When the day began, ms."""
    until: int
    amount: int
    limit: int
    """0: no limit."""
    new_session: bool = False
    """It counts only if the message begins a conversation."""
    already: int = 0
    """What is there beside the day's count."""
    files: tuple[BroughtFile, ...] = ()
    """Those of them that are new count beside `amount`."""
    counts: bool = True
    """False: it is only compared with the limit."""

    @property
    def key(self) -> tuple[str, int]:
        return (self.scope, self.window)

    @property
    def keys(self) -> list[tuple[str, int]]:
        """Of all that has to be known to decide it."""
        return [self.key, *(file.key for file in self.files)]


@dataclass(frozen=True, slots=True)
class PotRow:
    """How full a pot is."""

    scope: str
    window: int
    until: int
    spent_tokens: int = 0
    spent_nanos: int = 0
    held_tokens: int = 0
    held_nanos: int = 0
    estimated_tokens: int = 0
    estimated_nanos: int = 0
    calls: int = 0
    warned: bool = False
    at: int = 0

    @property
    def level(self) -> Level:
        return Level(
            spent=Amount(self.spent_tokens, self.spent_nanos),
            held=Amount(self.held_tokens, self.held_nanos),
            estimated=Amount(self.estimated_tokens, self.estimated_nanos),
            calls=self.calls,
            warned=self.warned,
        )

    def filled(self, level: Level, at: int) -> PotRow:
        """The same pot, as full as this."""
        return replace(
            self,
            spent_tokens=level.spent.tokens,
            spent_nanos=level.spent.nanos,
            held_tokens=level.held.tokens,
            held_nanos=level.held.nanos,
            estimated_tokens=level.estimated.tokens,
            estimated_nanos=level.estimated.nanos,
            calls=level.calls,
            warned=level.warned,
            at=at,
        )


class ReservationState(StrEnum):
    """Whether the model call is under way."""

    OPEN = "open"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True)
class ReservationRow:
    """What was held for a model call, and, once it is over, what it used."""

    call: str
    session: str
    node: int
    state: ReservationState
    pots: str
    """Scope and window of each pot, as JSON."""
    held_tokens: int
    held_nanos: int
    used_tokens: int
    used_nanos: int
    estimated: bool
    at: int

    @property
    def keys(self) -> tuple[tuple[str, int], ...]:
        """Its pots."""
        return tuple((str(scope), int(window)) for scope, window in orjson.loads(self.pots))

    @property
    def held(self) -> Amount:
        return Amount(self.held_tokens, self.held_nanos)

    @property
    def used(self) -> Amount:
        return Amount(self.used_tokens, self.used_nanos)
