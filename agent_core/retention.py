"""What may be removed, and when. Pure: whoever asks says what time it is.

Laws (tests/agent_core/test_retention.py):
1. What is still needed is never removed, however old it is: an open turn, and what a conversation that goes on still puts before the model.
2. A clock that jumps ahead removes nothing that would not have been removed without the jump, before it has stood by it for a day.
3. A conversation that nobody has spoken in for longer than journals are kept is over: who comes back to it begins anew.
"""

from __future__ import annotations

from dataclasses import dataclass

DAY_MS = 24 * 3600 * 1000
JUMP_MS = 2 * DAY_MS
"""So much the clock may be ahead of what is known before it is doubted."""
STEADY_MS = DAY_MS
"""So long it must have gone steadily before it is believed all the same."""
SWING_MS = 3600 * 1000
"""A steady clock is not further off than this from what has passed; it may be put right by summer time or a server."""
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
        return f"no longer kept: [retention] {key} = {getattr(self, key)}"


def cutoff(now_ms: int, days: int) -> int | None:
    """What is older than this may go; None if nothing does."""
    return now_ms - days * DAY_MS if days else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session, as far as it matters for what it needs."""

    last_at: int
    """When somebody spoke in it last, ms."""
    since: int
    """Turns up to this number are not put before the model any more."""
    first_told: int
    """The lowest number of the turns that are put before the model, by their count; 0 if all are."""


def needed(conversation: Conversation, number: int, before: int, *, undone: bool) -> bool:
    """Whether a closed turn is still put before the model in a conversation that goes on."""
    if conversation.last_at < before or undone:
        return False
    return number > conversation.since and number >= conversation.first_told


def believed(wall_ms: int, known_ms: int, passed_ms: int, steady_ms: int) -> int:
    """The time by which things count as old.

    `known_ms` is the latest that is stored from before the start, `passed_ms` how long the process has run by a clock that does not jump,
    `steady_ms` since when the wall clock has gone with that.
    """
    if not known_ms or wall_ms <= known_ms + passed_ms + JUMP_MS or steady_ms >= STEADY_MS:
        return wall_ms
    return known_ms + passed_ms


class Steadiness:
    """How long the wall clock has gone with the one that does not jump."""

    def __init__(self, wall_ms: int, monotonic_ms: int) -> None:
        self._offset = wall_ms - monotonic_ms
        self._since = monotonic_ms

    def look(self, wall_ms: int, monotonic_ms: int) -> int:
        """For how many ms it has been steady."""
        offset = wall_ms - monotonic_ms
        if abs(offset - self._offset) > SWING_MS:
            self._offset, self._since = offset, monotonic_ms
        return monotonic_ms - self._since


def next_size(size: int, seconds: float, most: int) -> int:
    """How many things the next transaction removes, after one with `size` took so long."""
    if seconds > MOST_SECONDS:
        return max(1, size // 2)
    return min(most, size * 2) if seconds < MOST_SECONDS / 3 else size
