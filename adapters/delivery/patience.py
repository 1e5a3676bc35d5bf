"""How long parts that failed wait for their next try, counted within this process. Pure.

Theory. What is stored is a time of the wall clock, for the next process. A wall clock may be put back or forward at any time, so
within a process a pause is counted by the monotonic clock from the moment at which the stored time is first seen. What an earlier
process has stored is believed only up to the pause that it meant, for the clock may have been another then.

Laws (tests/adapters/test_patience.py): a pause lasts no longer than it was meant, nor than `LONGEST_MS`, whatever the wall clock
does; without a jump it lasts as long as it was meant.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapters.delivery.reconcile import BLOCKS_MS, Pause
from agent_core.store.deliveries.rows import DeliveryRow

LONGEST_MS = 300_000
"""The longest pause between two tries of a part (`adapters.delivery.pacing.backoff_ms`)."""


def within(until: int, now: int, longest: int) -> int:
    """How long it is until a stored time, which is never further away than `longest`; all in milliseconds."""
    return max(0, min(until - now, longest))


@dataclass(frozen=True, slots=True)
class Patience:
    """A part that has failed; times are milliseconds of the monotonic clock."""

    stored: int
    """The time of the wall clock from which it was made."""
    due: int
    failed: int
    """When it failed the last time."""
    first: int
    """When it failed first, without a success since."""

    def pause(self, steady: int) -> Pause:
        """How it stands now."""
        return Pause(max(0, self.due - steady), steady - self.first >= BLOCKS_MS, max(0, steady - self.failed))


def patience(known: Patience | None, row: DeliveryRow, wall: int, steady: int) -> Patience | None:
    """What is known of a row's pause, as it is now; None if it has none."""
    if row.retry_at is None:
        return None
    if known is not None and known.stored == row.retry_at:
        return known
    meant = min(LONGEST_MS, row.retry_at - row.at) if row.at else LONGEST_MS
    left = within(row.retry_at, wall, max(0, meant))
    return Patience(row.retry_at, steady + left, steady, known.first if known is not None else steady)
