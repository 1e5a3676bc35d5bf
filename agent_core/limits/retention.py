"""What may be removed, and when. Pure: whoever asks says what time it is.

Laws (tests/agent_core/test_retention.py):
1. What is still needed is never removed, however old it is: an open turn, and what a conversation that goes on still puts before the model.
2. A clock that jumps ahead removes nothing that would not have been removed without the jump, before it has stood by it for a day: what time it
   is for things that are kept, `agent_core.limits.reckoning` knows.
3. A conversation that nobody has spoken in for longer than journals are kept is over: who comes back to it begins anew.
"""

from __future__ import annotations

from agent_core.limits.reckoning import Leap, reach
from agent_core.records import dataclass
from agent_core.text.tongue import clause

DAY_MS = 24 * 3600 * 1000
NO_LONGER_KEPT = clause("no longer kept: [retention] {key} = {days}")
MOST_SECONDS = 0.025
"""What a transaction that removes something is to take; at twice that nobody notices it."""


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days each kind is kept; 0 is for ever."""

    journals_days: int = 90
    bodies_days: int = 7
    attachments_days: int = 30
    workspaces_days: int = 180
    failures_days: int = 30
    audit_days: int = 400
    records_days: int = 400

    def words(self, key: str) -> str:
        """Why something is not there any more."""
        return NO_LONGER_KEPT.format(key=key, days=getattr(self, key))


def cutoff(now_ms: int, days: int, leaps: tuple[Leap, ...] = ()) -> int | None:
    """What is older than this may go; None if nothing does."""
    return reach(now_ms - days * DAY_MS, leaps) if days else None


@dataclass(frozen=True, slots=True)
class SessionAge:
    """A session, as far as it matters for what it needs."""

    last_at: int
    """When somebody spoke in it last, ms."""
    since: int
    """Turns up to this number are not put before the model any more."""
    first_told: int
    """The lowest number of the turns that are put before the model, by their count; 0 if all are."""


def needed(conversation: SessionAge, number: int, before: int, *, undone: bool) -> bool:
    """Whether a closed turn is still put before the model in a conversation that goes on."""
    if conversation.last_at < before or undone:
        return False
    return number > conversation.since and number >= conversation.first_told


def next_size(size: int, seconds: float, most: int) -> int:
    """How many things the next transaction removes, after one with `size` took so long."""
    if seconds > MOST_SECONDS:
        return max(1, size // 2)
    return min(most, size * 2) if seconds < MOST_SECONDS / 3 else size
