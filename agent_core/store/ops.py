"""The writes that may share a commit, as data. Each is decided in `decide`, on facts that `sql` has read for the whole batch.

Laws: an operation holds all that its decision needs apart from those facts; it can be repeated (same keys, same content) and
then changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agent_core.store.rows import FinishedCall, IntendedCall, JournalRow, NewMessage, WantedDelivery


@dataclass(frozen=True, slots=True)
class Accept:
    message: NewMessage
    claims: bool = True
    """A session that is made for the message is this node's at once: one commit less until its turn can begin."""


@dataclass(frozen=True, slots=True)
class MoveCursor:
    account: str
    channel: str
    last_seen: str


@dataclass(frozen=True, slots=True)
class Drop:
    inbox_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Claim:
    session: str


@dataclass(frozen=True, slots=True)
class Start:
    session: str
    epoch: int
    turn: str
    inbox_ids: tuple[int, ...]
    row: JournalRow
    opened_at: int
    deadline: int


@dataclass(frozen=True, slots=True)
class Append:
    """Also `intend` and `finish_call`: rows, and the calls whose state they change, in one commit."""

    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    intended: tuple[IntendedCall, ...] = ()
    finished: tuple[FinishedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    exit: str
    closed_at: int
    deliveries: tuple[WantedDelivery, ...] = ()


@dataclass(frozen=True, slots=True)
class PutMemory:
    scope: str
    kind: str
    name: str
    value: bytes
    at: int


@dataclass(frozen=True, slots=True)
class DeleteMemory:
    scope: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Touch:
    """Writes this node's own row as it is: the proof that a write gets through."""


Op: TypeAlias = Accept | MoveCursor | Drop | Claim | Start | Append | Close | PutMemory | DeleteMemory | Touch


def size_bytes(op: Op) -> int:
    """About how much the operation writes; what bounds a batch."""
    match op:
        case Accept(message):
            return len(message.body)
        case Start(row=row):
            return len(row.body)
        case Append(rows=rows):
            return sum(len(row.body) for row in rows)
        case Close(rows=rows, deliveries=deliveries):
            return sum(len(row.body) for row in rows) + sum(len(wanted.want) for wanted in deliveries)
        case PutMemory(value=value):
            return len(value)
        case MoveCursor() | Drop() | Claim() | DeleteMemory() | Touch():
            return 0
