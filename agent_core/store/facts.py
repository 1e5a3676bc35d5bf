"""What the database says about the rows that a batch touches, and what the batch makes of it.

Theory. A batch is decided in memory: `needs` names every row that its operations depend on, `sql.load` reads those once,
`decide` lets the operations change the records one after the other, and `sql.store` writes what has become new or dirty, a
statement per table. So the number of statements does not grow with the number of callers, and deciding is pure.

Law: within a batch each operation sees what the ones before it did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from agent_core.limits.budgets import Amount, Level
from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import DeliveryRow, GateRow
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.keeping.packing import Piece
from agent_core.store.ops import (
    Accept,
    Act,
    Append,
    Claim,
    Close,
    DeleteMemory,
    Drop,
    MoveCursor,
    Op,
    PutDeliveries,
    PutGate,
    PutIncident,
    PutMemory,
    PutPerson,
    PutPlace,
    PutSchedule,
    Reserve,
    Respond,
    Reword,
    Settle,
    Start,
    Touch,
    Unlink,
)
from agent_core.store.people.rows import PersonRow, PlaceRow
from agent_core.store.schedules.rows import OccurrenceRow, ScheduleRow
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.troubles.rows import IncidentRow, TroubleRow
from agent_core.store.turns.rows import JournalRow, ToolCallRow, TurnRow

R = TypeVar("R")


@dataclass(slots=True)
class Fact(Generic[R]):
    """A row, and what the batch makes of it."""

    row: R
    stored: R | None = None
    """As it was read; None if the batch makes it."""

    @property
    def new(self) -> bool:
        """The batch makes it."""
        return self.stored is None

    def change(self, **changes: object) -> None:
        """From now on it is like this, for the operations that come after as well."""
        self.row = replace(self.row, **changes)  # type: ignore[type-var]


@dataclass(slots=True)
class SessionFact(Fact[SessionRow]):
    last_number: int = 0
    open_turn: str | None = None


@dataclass(slots=True)
class TurnFact(Fact[TurnRow]):
    last_seq: int = -1
    """The highest number in its journal; -1 if that is empty."""


InboxFact: TypeAlias = Fact[InboxRow]
CallFact: TypeAlias = Fact[ToolCallRow]


@dataclass(slots=True)
class LevelFact:
    """How full a pot is."""

    scope: str
    window: int
    until: int
    level: Level
    at: int = 0
    new: bool = False
    dirty: bool = False


@dataclass(slots=True)
class ReservationFact:
    """What was held for a model call, and, once it is over, what it used."""

    call: str
    session: str
    node: int
    pots: tuple[tuple[str, int], ...]
    """Scope and window of each pot."""
    held: Amount
    used: Amount | None
    """None as long as the call is under way."""
    estimated: bool
    at: int
    new: bool = False
    dirty: bool = False


@dataclass(frozen=True, slots=True)
class AddedRow:
    turn: str
    epoch: int
    row: JournalRow


@dataclass(frozen=True, slots=True)
class AddedDelivery:
    session: str
    epoch: int
    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class AddedTrouble:
    turn: str
    session: str
    row: TroubleRow


@dataclass(slots=True)
class Facts:
    """The records of a batch, by key, and the rows that it adds."""

    node: int
    sessions: dict[str, SessionFact] = field(default_factory=dict[str, SessionFact])
    sessions_by_key: dict[str, SessionFact] = field(default_factory=dict[str, SessionFact])
    turns: dict[str, TurnFact] = field(default_factory=dict[str, TurnFact])
    inbox: dict[int, InboxFact] = field(default_factory=dict[int, InboxFact])
    messages: dict[tuple[str, str], InboxFact] = field(default_factory=dict[tuple[str, str], InboxFact])
    taken: dict[str, list[InboxFact]] = field(default_factory=dict[str, list[InboxFact]])
    """The known messages of each turn."""
    calls: dict[tuple[str, str], CallFact] = field(default_factory=dict[tuple[str, str], CallFact])
    journal: dict[tuple[str, int], JournalRow] = field(default_factory=dict[tuple[str, int], JournalRow])
    """Only stored rows that the batch brings again, and the rows it adds."""
    inputs: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    """Only of turns that the batch starts and that exist already."""
    memory: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    levels: dict[tuple[str, int], LevelFact] = field(default_factory=dict[tuple[str, int], LevelFact])
    reservations: dict[str, ReservationFact] = field(default_factory=dict[str, ReservationFact])
    dead: frozenset[int] = frozenset()
    """Which of the owners that stand in the way of a claim are dead."""
    free_ids: list[int] = field(default_factory=list[int])
    """Unused inbox ids, the next one last."""

    added_rows: list[AddedRow] = field(default_factory=list[AddedRow])
    added_inputs: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    deliveries: dict[tuple[str, str, str, int], AddedDelivery] = field(
        default_factory=dict[tuple[str, str, str, int], AddedDelivery]
    )
    """By surface, origin, bubble and part: the last state that the batch gives it."""
    gates: dict[tuple[str, str], GateRow] = field(default_factory=dict[tuple[str, str], GateRow])
    people: dict[tuple[str, str], PersonRow] = field(default_factory=dict[tuple[str, str], PersonRow])
    audits: list[AuditRow] = field(default_factory=list[AuditRow])
    places: list[PlaceRow] = field(default_factory=list[PlaceRow])
    pointed: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """By place: what goes on there from now on."""
    unlinked: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    schedules: dict[str, ScheduleRow] = field(default_factory=dict[str, ScheduleRow])
    schedules_put: set[str] = field(default_factory=set[str])
    """Which of them the batch makes or changes."""
    occurrences: list[OccurrenceRow] = field(default_factory=list[OccurrenceRow])
    closed_turns: list[str] = field(default_factory=list[str])
    cursors: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    memory_put: dict[tuple[str, str, str], tuple[bytes, int]] = field(
        default_factory=dict[tuple[str, str, str], tuple[bytes, int]]
    )
    memory_gone: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    touched: bool = False
    offered: dict[bytes, Piece] = field(default_factory=dict[bytes, Piece])
    """What was cut out of the bodies of the batch, by digest."""
    added_troubles: list[AddedTrouble] = field(default_factory=list["AddedTrouble"])
    open_incidents: dict[str, str] = field(default_factory=dict[str, str])
    """Fingerprint → the incident that is open about it."""
    incidents: dict[str, IncidentRow] = field(default_factory=dict[str, IncidentRow])


@dataclass(slots=True)
class Needs:
    """Keys of the rows on which a batch depends."""

    sessions: set[str] = field(default_factory=set[str])
    session_keys: set[str] = field(default_factory=set[str])
    turns: set[str] = field(default_factory=set[str])
    messages: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    rewordings: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    inbox: set[int] = field(default_factory=set[int])
    calls: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    memory: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    claims: set[str] = field(default_factory=set[str])
    starts: set[str] = field(default_factory=set[str])
    rows: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    incidents: set[str] = field(default_factory=set[str])
    """Fingerprints."""
    pots: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    reservations: set[str] = field(default_factory=set[str])
    schedules: set[str] = field(default_factory=set[str])


def needs(ops: Iterable[Op]) -> Needs:
    """What has to be read before `ops` can be decided."""
    found = Needs()
    for op in ops:
        _add_needs(found, op)
    return found


def _add_needs(found: Needs, op: Op) -> None:
    match op:
        case Accept(message=message):
            found.session_keys.add(message.session_key)
            found.messages.add((message.account, message.platform_key))
            found.pots.update(key for charge in message.charges for key in charge.keys)
            if message.claim is not None:
                found.schedules.add(message.claim.schedule.schedule)
        case Claim(session):
            found.sessions.add(session)
            found.claims.add(session)
        case Start(session=session, turn=turn, inbox_ids=inbox_ids, rows=rows):
            found.sessions.add(session)
            found.turns.add(turn)
            found.starts.add(turn)
            found.inbox.update(inbox_ids)
            found.rows.update((turn, row.seq) for row in rows)
        case Append(session=session, turn=turn, rows=rows, intended=intended, finished=finished):
            found.sessions.add(session)
            found.turns.add(turn)
            found.rows.update((turn, row.seq) for row in rows)
            found.calls.update((turn, call.call) for call in (*intended, *finished))
        case Close(session=session, turn=turn, rows=rows, heard=heard):
            found.inbox.update(heard)
            found.sessions.add(session)
            found.turns.add(turn)
            found.rows.update((turn, row.seq) for row in rows)
        case Drop(inbox_id=inbox_id):
            found.inbox.add(inbox_id)
        case Respond(session=session, inbox_id=inbox_id, change=change, schedules=schedules):
            found.schedules.update(row.schedule for row in schedules)
            found.sessions.add(session)
            found.inbox.update({inbox_id} - {0})
            if change.undo is not None:
                found.turns.add(change.undo)
        case Reword(account=account, platform_key=platform_key, charges=charges):
            found.rewordings.add((account, platform_key))
            found.pots.update(key for charge in charges for key in charge.keys)
        case PutDeliveries(session=session):
            found.sessions.add(session)
        case Act(session=session):
            found.sessions.update({session} - {""})
        case PutIncident(incident):
            found.incidents.add(incident.fingerprint)
        case PutSchedule(schedule):
            found.schedules.add(schedule.schedule)
        case PutMemory(scope=scope, kind=kind, name=name) | DeleteMemory(scope=scope, kind=kind, name=name):
            found.memory.add((scope, kind, name))
        case Reserve(session=session, call=call, pots=pots) | Settle(session=session, call=call, pots=pots):
            found.sessions.add(session)
            found.reservations.add(call)
            found.pots.update(pot.key for pot in pots)
        case MoveCursor() | PutGate() | PutPerson() | PutPlace() | Unlink() | Touch():
            pass
