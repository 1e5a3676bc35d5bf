"""What a message counts for by the day."""

from __future__ import annotations

from dataclasses import dataclass

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
