"""What is to be told outside, and to whom, as it is handed in and read back."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass


class HookState(StrEnum):
    """How far a message came."""

    WAITING = "waiting"
    SENT = "sent"
    """Its receiver has said that it has it."""
    GIVEN_UP = "given_up"
    """It is not tried any more, unless somebody has it sent again."""


@dataclass(frozen=True, slots=True)
class HookRow:
    """One message for one receiver."""

    message: str
    """Its id, by which the receiver knows it again. Made from what it tells, so that telling it twice is telling it once."""
    receiver: str
    event: str
    session: str
    """Whose it is; empty if it is no conversation's."""
    turn: str
    body: bytes
    """As it is sent each time."""
    at: int
    """When it happened, ms."""
    state: HookState = HookState.WAITING
    attempt: int = 0
    """How often it was tried."""
    retry_at: int = 0
    """Not before then, ms."""
    cause: str = ""
    """Why the last attempt failed."""
    done_at: int = 0
    """When it was sent or given up, ms."""


@dataclass(frozen=True, slots=True)
class StoredHook:
    """A message as it is stored, with its place in the order of all."""

    number: int
    row: HookRow


@dataclass(frozen=True, slots=True)
class ReceiverRow:
    """How a receiver is doing; none is stored of one that has never failed."""

    receiver: str
    url: str
    """Of which all this is known: with another address it is another receiver."""
    off: str = ""
    """Why nothing is sent to it any more; empty: it is on."""
    failures: int = 0
    """Attempts in a row that failed."""
    failing_since: int = 0
    not_before: int = 0
    """It asked for a pause until then, or gets one. All in ms."""
    at: int = 0


@dataclass(frozen=True, slots=True)
class HookCount:
    """How many messages of a receiver wait or were given up, and when what the first of them tells happened."""

    receiver: str
    state: HookState
    count: int
    oldest_at: int
