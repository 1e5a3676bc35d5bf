"""Messages, as they are handed in and read back."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from agent_core.records import dataclass, later
from agent_core.store.budgets.rows import Charge
from agent_core.store.schedules.rows import Claimed
from agent_core.store.sessions.rows import OwnersChange
from agent_core.store.slices.rows import tenure_now


class InboxState(StrEnum):
    """What has become of an accepted message."""

    NEW = "new"
    """Accepted, not yet part of a turn."""
    TAKEN = "taken"
    """Part of an open turn."""
    DONE = "done"
    """Its turn is closed. Stored only where no turn has taken it; elsewhere the turn tells it."""
    DROPPED = "dropped"
    """Will never be part of a turn; `reason` says why."""


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message as `accept` takes it."""

    account: str
    platform_key: str
    """The platform's own id of the message: with `account`, what makes a redelivery a no-op."""
    session_key: str
    lane: str
    body: bytes
    received_at: int
    cursor: tuple[str, str] | None
    """(channel, last seen): stored in the same commit, so that a cursor never runs ahead of its messages."""
    new_session_id: str
    """The id that the session gets if its key is new."""
    refused: str = ""
    """Why it will never be run; it is recorded all the same."""
    claim: Claimed | None = None
    """The occurrence that it stands for, claimed in the same commit."""
    change: OwnersChange | None = None
    """What changes in its session in the same commit, if the message is stored by it."""
    person: str = ""
    """Who wrote it, within the account; empty if nobody can say."""
    charges: tuple[Charge, ...] = ()
    """What it counts for by the day, counted in the same commit; where there is no room for it, it is not stored."""
    under: tuple[str, ...] | None = field(default_factory=tenure_now)
    """What its cursor is moved under; see `agent_core.store.slices.rows.Tenure`."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a message that was offered."""

    inbox_id: int
    session: str
    arrival: int
    """Grows from message to message of a session."""
    duplicate: bool
    """True if the same (account, platform_key) was stored before; then nothing was changed."""
    state: InboxState
    turn: str | None
    epoch: int = 0
    """Under which this node owns the session already, because it is new or was its own; 0 if it must be claimed first."""
    started: bool = False
    """The turn that was brought along is open, and has taken the message."""
    received_at: int = 0
    """ms; of one that had been stored before, when that was."""
    after: int = 0
    """The message that waited last in its session when this one was stored; 0: none did, as far as that was looked up."""


@dataclass(frozen=True, slots=True)
class InboxRow:
    """A stored message."""

    id: int
    account: str
    platform_key: str
    session: str
    arrival: int
    lane: str
    body: bytes
    state: InboxState
    reason: str | None
    received_at: int
    suspicion: int = later(0)
    """How often it was taken up after a death."""
    person: str = later("")
    """Who wrote it, within the account; empty if nobody can say."""
    turn: str | None = None
    """Which has taken it."""


@dataclass(frozen=True, slots=True)
class CursorRow:
    """How far an adapter has read a channel."""

    account: str
    channel: str
    last_seen: str


@dataclass(frozen=True, slots=True)
class DroppedMessage:
    """An accepted message that was not run."""

    at: int
    session: str
    account: str
    inbox: int
    reason: str


class UnreadState(StrEnum):
    """What became of it."""

    WAITING = "waiting"
    """It is tried again."""
    DONE = "done"
    """It was taken in after all."""
    GIVEN_UP = "given_up"
    """Tried often enough with this version of the program; another one tries again."""


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """One thing that could not be taken in."""

    account: str
    """As in an inbox row, such as ``telegram/123``."""
    platform_key: str
    body: bytes
    """As it came."""
    words: str
    """What went wrong when it was tried last."""
    version: str
    """The program that tried it last."""
    received_at: int
    """ms."""
    chat: str = ""
    """The address of the chat whose person is to be told; empty if it is not known, or nobody is to be told."""
    state: UnreadState = UnreadState.WAITING
    tries: int = 1
    """With that version."""
    tried_at: int = 0
    """ms."""
    told: bool = False
    """The person was told."""
