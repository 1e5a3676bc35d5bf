"""The writes that may share a commit, as data. Each is decided in `decide`, on facts that `sql` has read for the whole batch.

Laws: an operation holds all that its decision needs apart from those facts; it can be repeated (same keys, same content) and
then changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from agent_core.limits.budgets import Amount, Pot
from agent_core.store.audit import AuditRow
from agent_core.store.budgets.rows import Charge
from agent_core.store.deliveries.rows import DeliveryRow, GateRow
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.keeping.packing import Piece
from agent_core.store.people.rows import PersonRow, PlaceRow
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.troubles.rows import IncidentRow, TroubleRow
from agent_core.store.turns.rows import FinishedCall, IntendedCall, JournalRow

Pieces: TypeAlias = tuple[Piece, ...]
"""What was cut out of the bodies of an operation."""


@dataclass(frozen=True, slots=True)
class Accept:
    message: NewMessage
    claims: bool = True
    """A session that is made for the message is this node's at once: one commit less until its turn can begin."""
    pieces: Pieces = ()


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
    rows: tuple[JournalRow, ...]
    opened_at: int
    deadline: int
    pieces: Pieces = ()


@dataclass(frozen=True, slots=True)
class Append:
    """Also `intend` and `finish_call`: rows, and the calls whose state they change, in one commit."""

    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    intended: tuple[IntendedCall, ...] = ()
    finished: tuple[FinishedCall, ...] = ()
    pieces: Pieces = ()


@dataclass(frozen=True, slots=True)
class Close:
    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    exit: str
    closed_at: int
    deliveries: tuple[DeliveryRow, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    heard: tuple[int, ...] = ()
    """Messages that were put into the running turn, beside those that it began with."""
    troubles: tuple[TroubleRow, ...] = ()
    pieces: Pieces = ()


@dataclass(frozen=True, slots=True)
class PutIncident:
    """An incident as it is now. The answer is whether it opens or closes by this.

    One that opens while its fingerprint has an open one changes nothing.
    """

    incident: IncidentRow


@dataclass(frozen=True, slots=True)
class Respond:
    """A command was carried out: its message is done, and what it changes and answers is there."""

    session: str
    epoch: int
    inbox_id: int
    """0: only the change; the message is done later."""
    change: SessionChange
    deliveries: tuple[DeliveryRow, ...]
    schedules: tuple[ScheduleRow, ...] = ()
    """Schedules that it makes or changes."""


@dataclass(frozen=True, slots=True)
class Reword:
    """A waiting message was edited where it came from."""

    account: str
    platform_key: str
    body: bytes
    pieces: Pieces = ()
    charges: tuple[Charge, ...] = ()
    """What it counts for as it is now; what counted before is among it."""
    at: int = 0


@dataclass(frozen=True, slots=True)
class PutDeliveries:
    session: str
    epoch: int
    deliveries: tuple[DeliveryRow, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Somebody who runs the gateway did something by hand: its entry, and the parts that it changes, in one commit."""

    audit: AuditRow
    session: str = ""
    """Whose parts they are; empty if there are none."""
    epoch: int = 0
    deliveries: tuple[DeliveryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class PutGate:
    gate: GateRow


@dataclass(frozen=True, slots=True)
class PutPerson:
    """Who is revoked is joined with no other account from then on."""

    person: PersonRow


@dataclass(frozen=True, slots=True)
class PutPlace:
    """A private chat is known; whose it is never changes."""

    place: PlaceRow


@dataclass(frozen=True, slots=True)
class Unlink:
    account: str
    person: str


@dataclass(frozen=True, slots=True)
class PutSchedule:
    """A schedule as it is to be; its `rev` is one more than that of the state that was seen."""

    schedule: ScheduleRow


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
class Reserve:
    """Hold in all `pots` what a model call may use, or in none."""

    session: str
    epoch: int
    call: str
    """The call's id: a second reservation under the same is the same."""
    amount: Amount
    pots: tuple[Pot, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Settle:
    """A model call is over: let go what was held for it, and note what it used."""

    session: str
    epoch: int
    call: str
    used: Amount
    estimated: bool
    pots: tuple[Pot, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Touch:
    """Writes this node's own row, a little differently each time: the proof that a write gets through."""


Op: TypeAlias = (
    Accept
    | MoveCursor
    | Drop
    | Claim
    | Start
    | Append
    | Close
    | Respond
    | Reword
    | PutDeliveries
    | Act
    | PutGate
    | PutPerson
    | PutIncident
    | PutPlace
    | Unlink
    | PutSchedule
    | PutMemory
    | DeleteMemory
    | Reserve
    | Settle
    | Touch
)


def size_bytes(op: Op) -> int:
    """About how much the operation writes; what bounds a batch."""
    match op:
        case Accept(message=message, pieces=pieces):
            return len(message.body) + _weight(pieces)
        case Start(rows=rows, pieces=pieces) | Append(rows=rows, pieces=pieces):
            return sum(len(row.body) for row in rows) + _weight(pieces)
        case Close(rows=rows, deliveries=deliveries, pieces=pieces):
            bodies = sum(len(row.body) for row in rows) + sum(len(wanted.want) for wanted in deliveries)
            return bodies + _weight(pieces)
        case Respond(deliveries=deliveries) | PutDeliveries(deliveries=deliveries) | Act(deliveries=deliveries):
            return sum(len(wanted.want) for wanted in deliveries)
        case Reword(body=body, pieces=pieces):
            return len(body) + _weight(pieces)
        case PutMemory(value=value):
            return len(value)
        case PutSchedule(schedule):
            return len(schedule.body)
        case (
            MoveCursor()
            | Drop()
            | Claim()
            | PutGate()
            | PutPerson()
            | PutIncident()
            | PutPlace()
            | Unlink()
            | DeleteMemory()
            | Touch()
        ):
            return 0
        case Reserve() | Settle():
            return 0


def _weight(pieces: Pieces) -> int:
    return sum(len(piece.content) for piece in pieces)


def pieces_of(op: Op) -> Pieces:
    """What was cut out of the operation's bodies."""
    match op:
        case Accept() | Start() | Append() | Close() | Reword():
            return op.pieces
        case _:
            return ()
