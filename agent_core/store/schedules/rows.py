"""Schedules and their occurrences, as they are handed in and read back."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass


class ScheduleState(StrEnum):
    """Whether a schedule still has occurrences."""

    ACTIVE = "active"
    DONE = "done"
    """Its last occurrence was claimed."""
    CANCELLED = "cancelled"
    PAUSED = "paused"
    """It has none until somebody lets it go on."""


class OccurrenceOutcome(StrEnum):
    """What was decided of an occurrence when it was claimed."""

    RUN = "run"
    MISSED = "missed"
    """It will never run, and that is told."""


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """Something that is to happen in a chat at certain times."""

    schedule: str
    kind: str
    session_key: str
    surface: str
    """The chat's address, as text."""
    number: int
    """By which people name it within its session; 0 if they do not."""
    rule: str
    """When it happens, as the gateway encodes it."""
    body: bytes
    """What happens, as the gateway encodes it."""
    next_at: int | None
    """The first occurrence that was not claimed yet, ms; None if there is none."""
    done_to: int = 0
    """The last occurrence that was claimed, ms: none up to it is ever claimed again."""
    state: ScheduleState = ScheduleState.ACTIVE
    rev: int = 1
    """Counts the changes: who changes it names the state that they saw."""
    at: int = 0
    """Of the last change, ms."""


@dataclass(frozen=True, slots=True)
class OccurrenceRow:
    """One occurrence that was claimed; or several in a row that were missed together."""

    schedule: str
    due_at: int
    last_at: int
    """The last of them; `due_at` if it is one."""
    count: int
    outcome: OccurrenceOutcome
    at: int
    """When it was claimed, ms."""
    inbox: int = 0
    """The message that came of it; set by the store."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """An occurrence is claimed: the schedule as it is then, and what is noted of the occurrence."""

    schedule: ScheduleRow
    occurrence: OccurrenceRow
