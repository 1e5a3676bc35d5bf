"""Failures and incidents, as they are handed in and read back."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass

FORESEEN = "foreseen"
"""What stands in the place of a row's cause if nothing failed: a remedy was tried beforehand, and this is what became of it."""


@dataclass(frozen=True, slots=True)
class TroubleRow:
    """A failure of a closed turn with the remedy that was chosen for it; or, with code ``answered``, that one is over."""

    number: int
    """Its place in the turn, from 0."""
    at: int
    conversation: str
    """Under which name it is remembered; empty: the turn's session."""
    fingerprint: str
    code: str
    cause: str
    endpoint: str
    model: str
    tool: str
    size: str
    chars: int
    rung: str
    """The remedy, under the name that its column has had from the first."""
    outcome: str
    ended: bool


class IncidentState(StrEnum):
    """Whether a failure still comes up."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """One fingerprint that several conversations have met."""

    incident: str
    fingerprint: str
    state: IncidentState
    code: str
    endpoint: str
    model: str
    tool: str
    opened_at: int
    last_at: int
    closed_at: int | None = None
    conversations: int = 0
    turns: int = 0
    remedy: str = ""
    """The remedy that has helped most; empty if none has."""


@dataclass(frozen=True, slots=True)
class RemedyCount:
    """What became of a remedy against one fingerprint."""

    remedy: str
    outcome: str
    count: int


@dataclass(frozen=True, slots=True)
class TroubleCount:
    """How often a fingerprint came up since a time."""

    fingerprint: str
    conversations: int
    turns: int
    ended: int
    first_at: int
    last_at: int
    remedies: tuple[RemedyCount, ...] = ()
    people: int = 0
    """How many different askers its turns had; those of whom nobody knows who they are count as one."""


@dataclass(frozen=True, slots=True)
class FailedTurn:
    """A failure in a closed turn; or, without a fingerprint, a turn that ended badly and left no failure that ended it."""

    at: int
    turn: str
    session: str
    key: str
    """The session's key."""
    exit: str
    """Of the turn."""
    fingerprint: str = ""
    remedy: str = ""
    outcome: str = ""
    ended: bool = False
    cause: str = ""
