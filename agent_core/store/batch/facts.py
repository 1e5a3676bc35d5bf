"""What the database says about the rows that a batch touches, what the batch makes of it, and what an operation is.

Theory. A batch is decided in memory: each operation names the rows on which it depends (`Needs`), these are read once, the operations change
the records (`Facts`) one after the other, and what has become new or other is written, a statement per table. So the number of statements
does not grow with the number of callers, and deciding is pure. Each aggregate has its operations in its `ops`, and reads and writes its part
of the records in its `sql`.

Law: within a batch each operation sees what the ones before it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from agent_core.records import dataclass
from agent_core.store.budgets.rows import PotRow, ReservationRow
from agent_core.store.database.mapping import Fact, Mapped
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict, Fenced
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.keeping.packing import Piece
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.slices.rows import ANYBODY, Right
from agent_core.store.turns.rows import JournalRow, ToolCallRow, TurnRow
from agent_core.store.webhooks.rows import HookRow

R = TypeVar("R")
Answer_co = TypeVar("Answer_co", covariant=True)
Key: TypeAlias = "tuple[str | int, ...]"
Pieces: TypeAlias = tuple[Piece, ...]
"""What was cut out of the bodies of an operation."""


@dataclass(slots=True)
class SessionFact(Fact[SessionRow]):
    last_number: int = 0
    open_turn: str | None = None
    last_waiting: int | None = None
    """The number of the last message that waits in it for a turn. Not known of a session that is not read again (`owned`): nobody else writes for it."""


@dataclass(slots=True)
class TurnFact(Fact[TurnRow]):
    last_seq: int = -1
    """The highest number in its journal; -1 if that is empty."""


InboxFact: TypeAlias = Fact[InboxRow]
CallFact: TypeAlias = Fact[ToolCallRow]


@dataclass(frozen=True, slots=True)
class GivenRow(Generic[R]):
    """A row as an operation gives it, whatever is stored."""

    row: R
    more: dict[str, object]
    """What its table has besides, or stores otherwise."""


@dataclass(slots=True)
class Facts:
    """The records of a batch, by key, and the rows that it gives."""

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
    pots: dict[tuple[str, int], Fact[PotRow]] = field(default_factory=dict[tuple[str, int], Fact[PotRow]])
    reservations: dict[str, Fact[ReservationRow]] = field(default_factory=dict[str, Fact[ReservationRow]])
    schedules: dict[str, ScheduleRow] = field(default_factory=dict[str, ScheduleRow])
    open_incidents: dict[str, str] = field(default_factory=dict[str, str])
    """Fingerprint → the incident that is open about it."""
    dead: frozenset[int] = frozenset()
    """Which of the owners that stand in the way of a claim are dead."""
    rights: Mapping[str, Right] = field(default_factory=dict[str, Right])
    """By key: who may claim a session that is not ours, where several nodes divide the chats."""
    free_ids: list[int] = field(default_factory=list[int])
    """Unused inbox ids, the next one last."""
    highest_message: int | None = None
    """The highest inbox id, if it is known without asking."""
    new_message: int | None = None
    """The highest one that there is if this is committed, if it adds any."""

    given: dict[Mapped[Any], list[GivenRow[Any]]] = field(default_factory=dict[Mapped[Any], list[GivenRow[Any]]])
    """Rows that are new, by table."""
    puts: dict[Mapped[Any], dict[Key, GivenRow[Any]]] = field(
        default_factory=dict[Mapped[Any], dict[Key, GivenRow[Any]]]
    )
    """Rows as they are to be, whether they are there or not, by table and identity."""
    pointed: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """By place: what goes on there from now on."""
    unlinked: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    memory_gone: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    hooks_settled: dict[str, HookRow] = field(default_factory=dict[str, HookRow])
    """By message: what became of it."""
    touched: bool = False
    offered: dict[bytes, Piece] = field(default_factory=dict[bytes, Piece])
    """What was cut out of the bodies of the batch, by digest."""

    def session(self, session: str) -> SessionFact:
        """Raises Conflict if there is none."""
        found = self.sessions.get(session)
        if found is None:
            raise Conflict(f"There is no session {session}.")
        return found

    def owned(self, session: str, epoch: int) -> SessionFact:
        """A session that this node owns under this epoch. Raises Fenced, Conflict."""
        found = self.session(session)
        if found.row.owner != self.node or found.row.epoch != epoch:
            raise Fenced(
                f"Session {session} is owned by node {found.row.owner} under epoch {found.row.epoch}; "
                f"node {self.node} with epoch {epoch} may not write for it any more."
            )
        return found

    def right(self, key: str) -> Right:
        """Who may claim the session with this key."""
        return self.rights.get(key, ANYBODY)

    def add(self, mapped: Mapped[R], row: R, **more: object) -> None:
        """This row is new."""
        self.given.setdefault(mapped, []).append(GivenRow(row, more))

    def add_all(self, mapped: Mapped[R], rows: list[GivenRow[R]]) -> None:
        """These rows are new."""
        self.given.setdefault(mapped, []).extend(rows)

    def added(self, mapped: Mapped[R]) -> list[GivenRow[R]]:
        """The new rows of a table."""
        return cast("list[GivenRow[R]]", self.given.get(mapped, []))

    def put(self, mapped: Mapped[R], row: R, **more: object) -> None:
        """From now on it is like this, whether it is there or not."""
        rows = self.puts.setdefault(mapped, {})
        key = mapped.key(row)
        if not (mapped.fixed and key in rows):
            rows[key] = GivenRow(row, more)


@dataclass(slots=True)
class Needs:
    """Keys of the rows on which a batch depends."""

    sessions: set[str] = field(default_factory=set[str])
    session_keys: set[str] = field(default_factory=set[str])
    turns: set[str] = field(default_factory=set[str])
    messages: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    trusting: bool = False
    """`messages` are taken for new, and not looked for."""
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

    def of_turn(self, session: str, turn: str, rows: tuple[JournalRow, ...]) -> None:
        """A turn to whose journal these rows are to be added."""
        self.sessions.add(session)
        self.turns.add(turn)
        self.rows.update([(turn, row.seq) for row in rows])


class Op(Generic[Answer_co]):
    """A write that may share a commit, as data: it holds all that its decision needs apart from the facts.

    Laws.
    1. Who writes for a session must own it under the epoch that it names; otherwise `Fenced`, and nothing is changed.
    2. What is brought again with the same keys and the same content changes nothing and succeeds; with other content it is
       `Fenced`. So a batch whose answer was lost can be repeated.
    3. An operation that raises has changed no record: each checks all, then changes.
    """

    __slots__ = ()
    proves: ClassVar[bool] = False
    """It only proves that a write gets through: nothing that anybody is shown becomes other."""

    def need(self, wanted: Needs) -> None:
        """What has to be read before it can be decided."""

    def decide(self, facts: Facts, previous: object) -> Answer_co:
        """Change the records, and answer; each its own. Pure: no I/O, no clock, no ids of its own.

        `previous` is what an earlier attempt of the very same operation had answered when its commit's outcome was lost; else None.
        Raises Fenced, Conflict, OwnedElsewhere, NoRoomToday.
        """
        raise NotImplementedError

    def weight(self) -> int:
        """About how many bytes it writes, beside what was cut out; what bounds a batch."""
        return 0

    def cut_out(self) -> Pieces:
        """What was cut out of its bodies."""
        return ()


def bytes_of(rows: tuple[JournalRow, ...]) -> int:
    """How large the bodies of these rows are."""
    return sum([len(row.body) for row in rows])


def parts_bytes(parts: tuple[DeliveryRow, ...]) -> int:
    """The same of parts."""
    return sum(len(part.want) for part in parts)
