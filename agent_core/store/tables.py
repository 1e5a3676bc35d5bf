"""The tables of the store, for SQLite and PostgreSQL alike; the migrations build the same schema by hand.

Laws: times are milliseconds of the injected clock; text that people wrote is kept as UTF-8 bytes (`LargeBinary`), because
PostgreSQL's text cannot hold NUL; a session has at most one open turn (`one_open`); a message belongs to at most one turn
(`inbox.turn`); the journal's key is the turn's number and the row's in it (`row_id`), and what fences a stale owner is not this key
but owner and epoch of the session, compared in the same transaction.

On SQLite the choice of b-trees decides how much a turn writes, because a commit writes whole pages: small tables with a text
key are kept without rowid (one tree instead of two), unless their rows are longer than a fifth of a page (turns), for then each gets a page of
its own; the journal is found by its rowid alone, in which a turn's rows lie together, and those of all turns are added at one end. A turn's messages are found by its session, from the first to the last.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    FromClause,
    Index,
    MetaData,
    Select,
    Table,
    Text,
    UniqueConstraint,
    and_,
    event,
    select,
    text,
)

from agent_core.store.apikeys.rows import ApiKeyRow
from agent_core.store.audit import AuditRow
from agent_core.store.budgets.rows import PotRow, ReservationRow
from agent_core.store.database.mapping import Int, mapped
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, GateRow
from agent_core.store.inbox.rows import CursorRow, InboxRow, UnreadRow
from agent_core.store.keeping.rows import ForgetRow, PieceRow
from agent_core.store.memory.rows import MemoryRow
from agent_core.store.people.rows import LinkCode, LinkRow, PersonRow, PlaceRow
from agent_core.store.schedules.rows import OccurrenceRow, ScheduleRow
from agent_core.store.sessions.rows import ONCE, NodeRow, SessionRow
from agent_core.store.slices.rows import SliceRow
from agent_core.store.troubles.rows import IncidentRow, TroubleRow
from agent_core.store.turns.rows import ROWS_A_TURN, JournalRow, ToolCallRow, TurnRow
from agent_core.store.webhooks.rows import HookRow, ReceiverRow

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


@event.listens_for(metadata, "before_create")
def _of_few_rows(_metadata: MetaData, conn: Connection, **_: object) -> None:
    """An index of some rows alone is one on PostgreSQL, too. To name that dialect above would load it for everybody: 25 ms and 3 MiB."""
    if conn.dialect.name == "postgresql":
        for index in (index for table in metadata.tables.values() for index in table.indexes):
            index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]


min_version = Table("min_version", metadata, Column("revision", Text(), primary_key=True))
"""One row: the oldest revision whose programs may use this database. See `migrations.MIN_REVISION`."""

NODE = mapped(metadata, "nodes", NodeRow, key=["node"], unique=["name"])
nodes = NODE.table

SLICE = mapped(metadata, "slices", SliceRow, key=["slice"], foreign={"owner": "nodes.node"}, rowid=False)
slices = SLICE.table
"""What several gateways divide among themselves. Empty where one serves."""

SESSION = mapped(
    metadata,
    "sessions",
    SessionRow,
    key=["session"],
    foreign={"owner": "nodes.node"},
    rowid=False,
)
sessions = SESSION.table
Index("sessions_by_key", sessions.c.key, unique=True, sqlite_where=text(f"substr(key, 1, {len(ONCE)}) <> '{ONCE}'"))
NAMED = text(f"substr(sessions.key, 1, {len(ONCE)}) <> '{ONCE}'")
"""As it stands in the index: who looks for sessions by their keys says it, or all of them are read."""


def under(key: str) -> ColumnElement[bool]:
    """The session with this key. That of a single request is looked for among all: nobody asks for one who is in a hurry."""
    return sessions.c.key == key if key.startswith(ONCE) else and_(NAMED, sessions.c.key == key)


Index(
    "sessions_set_aside",
    sessions.c.last_at,
    sqlite_where=text("quarantined is not null"),
)

CURSOR = mapped(metadata, "cursors", CursorRow, key=["account", "channel"], rowid=False)
cursors = CURSOR.table

UNREAD = mapped(
    metadata,
    "unread",
    UnreadRow,
    key=["account", "platform_key"],
)
unread = UNREAD.table
"""What a platform brought and could not be taken in, as it came."""
Index(
    "open_unread",
    unread.c.received_at,
    sqlite_where=text("state <> 'done'"),
)

MESSAGE = mapped(
    metadata,
    "inbox",
    InboxRow,
    UniqueConstraint("account", "platform_key"),
    key=["id"],
    foreign={"session": "sessions.session"},
)
inbox = MESSAGE.table
Index(
    "pending_inbox",
    inbox.c.session,
    inbox.c.arrival,
    sqlite_where=text("state = 'new'"),
)
Index("inbox_of_session", inbox.c.session, inbox.c.id)
Index(
    "dropped_inbox",
    inbox.c.received_at,
    sqlite_where=text("state = 'dropped'"),
)

TURN = mapped(
    metadata,
    "turns",
    TurnRow,
    UniqueConstraint("session", "number"),
    key=["turn"],
    foreign={"session": "sessions.session"},
)
turns = TURN.table
"""`people`: who asked, as JSON. `removed`: why its journal is not there any more; empty if it is."""
Index(
    "one_open",
    turns.c.session,
    unique=True,
    sqlite_where=text("state = 'open'"),
)

Index(
    "kept_journals",
    turns.c.closed_at,
    turns.c.state,
    turns.c.removed,
    sqlite_where=text("state = 'closed' and removed = ''"),
)

Index(
    "turns_of_bugs",
    turns.c.closed_at,
    sqlite_where=text("exit = 'internal_error'"),
)

NOT_ANSWERED = text("turns.exit not in ('answered', 'handed_to_client')")
"""As it stands in the index."""
Index(
    "turns_not_answered",
    turns.c.closed_at,
    sqlite_where=text("exit not in ('answered', 'handed_to_client')"),
)
Index(
    "removed_journals",
    turns.c.closed_at,
    sqlite_where=text("removed <> ''"),
)

NO_MESSAGE = text("turns.first_message < 0")
"""As it stands in the index."""
Index("turns_of_no_message", turns.c.first_message, sqlite_where=text("first_message < 0"))

EVENT = mapped(
    metadata,
    "journal",
    JournalRow,
    key=[],
    besides=[
        Column("id", Int, primary_key=True, autoincrement=False),
        Column("epoch", Int, nullable=False),
    ],
)
journal = EVENT.table


def row_id(first: int, seq: int) -> int:
    """The key of a row of the journal of the turn whose first message is that one."""
    return first * ROWS_A_TURN + seq


def rows_of_turn(rows: FromClause = journal) -> ColumnElement[bool]:
    """Rows of the journal and the turn that they are of belong together."""
    base = turns.c.first_message * ROWS_A_TURN
    return and_(rows.c.id >= base, rows.c.id < base + ROWS_A_TURN)


def rows_of_turns(which: ColumnElement[bool]) -> Select[tuple[int]]:
    """The keys of all rows of these turns."""
    return select(journal.c.id).select_from(turns.join(journal, rows_of_turn())).where(which)


PIECE = mapped(
    metadata,
    "pieces",
    PieceRow,
    key=[],
    besides=[Column("piece", Int, primary_key=True)],
    unique=["digest"],
)
pieces = PIECE.table
Index(
    "old_files",
    pieces.c.at,
    sqlite_where=text("form = 'bytes' and how <> 'gone'"),
)

CALL = mapped(
    metadata,
    "tool_calls",
    ToolCallRow,
    key=["turn", "call"],
    foreign={"turn": "turns.turn"},
    rowid=False,
)
tool_calls = CALL.table

PART = mapped(
    metadata,
    "deliveries",
    DeliveryRow,
    UniqueConstraint("surface", "origin", "bubble", "part"),
    key=[],
    besides=[
        Column("id", Int, primary_key=True),
        Column("session", Text, ForeignKey("sessions.session"), nullable=False),
        Column("epoch", Int, nullable=False),
        Column("suspicion", Int, nullable=False, server_default="0"),
    ],
    indexed=["origin"],
    identity=["surface", "origin", "bubble", "part"],
)
deliveries = PART.table
Index(
    "deliveries_by_receipt",
    deliveries.c.platform_id,
    sqlite_where=text("platform_id is not null"),
)
Index("deliveries_of_session", deliveries.c.session)
OPEN_PARTS = text("deliveries.state in ('wanted', 'sending', 'unknown')")
"""As it stands in the index: with bound values SQLite does not see that the index has them all, and reads the whole table."""
Index(
    "open_deliveries",
    deliveries.c.surface,
    deliveries.c.place,
    sqlite_where=text("state in ('wanted', 'sending', 'unknown')"),
)
FAILED_PARTS = text("deliveries.state = 'failed'")
"""As it stands in the index."""
Index("failed_deliveries", deliveries.c.at, sqlite_where=text("state = 'failed'"))

PERSON = mapped(
    metadata,
    "people",
    PersonRow,
    key=["account", "person"],
    rowid=False,
)
people = PERSON.table

API_KEY = mapped(metadata, "api_keys", ApiKeyRow, key=["name"], rowid=False)
api_keys = API_KEY.table

TROUBLE = mapped(
    metadata,
    "troubles",
    TroubleRow,
    key=["number"],
    besides=[
        Column("turn", Text, ForeignKey("turns.turn"), primary_key=True),
        Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    ],
    rowid=False,
)
troubles = TROUBLE.table
Index("troubles_of_conversation", troubles.c.conversation, troubles.c.at)
Index("troubles_of_fingerprint", troubles.c.fingerprint, troubles.c.at)
Index("troubles_of_session", troubles.c.session)
Index("troubles_by_time", troubles.c.at)

INCIDENT = mapped(
    metadata,
    "incidents",
    IncidentRow,
    key=["incident"],
    rowid=False,
)
incidents = INCIDENT.table
Index(
    "one_open_incident",
    incidents.c.fingerprint,
    unique=True,
    sqlite_where=text("state = 'open'"),
)
PLACE = mapped(
    metadata,
    "places",
    PlaceRow,
    Index(None, "account", "person"),
    key=["place"],
    rowid=False,
    fixed=True,
)
places = PLACE.table
"""Private chats, by the key of the session that they have of their own, and whose they are."""

LINK = mapped(
    metadata,
    "links",
    LinkRow,
    key=["account", "person"],
    indexed=["who"],
    rowid=False,
)
links = LINK.table
"""Accounts that are joined: those with the same `who` are one person's."""

LINK_CODE = mapped(
    metadata,
    "link_codes",
    LinkCode,
    Index(None, "account", "person"),
    key=["code"],
    besides=[Column("redeemed", Text)],
    rowid=False,
)
link_codes = LINK_CODE.table

ADAPTER_STATE = mapped(
    metadata,
    "adapter_states",
    AdapterStateRow,
    key=["account", "at"],
    rowid=False,
)
adapter_states = ADAPTER_STATE.table
"""How each adapter was doing, from each change on."""

AUDIT = mapped(
    metadata,
    "audit",
    AuditRow,
    key=["audit"],
    rowid=False,
    fixed=True,
)
audit = AUDIT.table
"""What was done by hand. Ids are made so that they sort by time."""

GATE = mapped(
    metadata,
    "gates",
    GateRow,
    key=["account", "bucket"],
    rowid=False,
)
gates = GATE.table

MEMORY = mapped(metadata, "memory", MemoryRow, key=["scope", "kind", "name"], rowid=False)
memory = MEMORY.table
Index("memory_of_author", memory.c.author)
OTHERS_THAN_MEMORIES = text("memory.kind <> 'memory'")
"""As it stands in the index. Who looks for one person's does not say it: by this index SQLite would look through everybody's, for their order."""
Index("memory_of_kind", memory.c.kind, memory.c.at, sqlite_where=text("kind <> 'memory'"))

POT = mapped(metadata, "budgets", PotRow, key=["scope", "window"], rowid=False)
budgets = POT.table
Index("budgets_by_end", budgets.c.until)

RESERVATION = mapped(
    metadata,
    "reservations",
    ReservationRow,
    key=["call"],
    foreign={"session": "sessions.session"},
    rowid=False,
)
reservations = RESERVATION.table
Index(
    "open_reservations",
    reservations.c.node,
    sqlite_where=text("state = 'open'"),
)
Index("reservations_of_session", reservations.c.session)

SCHEDULE = mapped(
    metadata,
    "schedules",
    ScheduleRow,
    key=["schedule"],
    indexed=["session_key"],
    rowid=False,
)
schedules = SCHEDULE.table
Index(
    "due_schedules",
    schedules.c.next_at,
    sqlite_where=text("state = 'active'"),
)

OCCURRENCE = mapped(
    metadata,
    "occurrences",
    OccurrenceRow,
    key=["schedule", "due_at"],
    foreign={"schedule": "schedules.schedule"},
    rowid=False,
)
occurrences = OCCURRENCE.table

FORGET = mapped(metadata, "forgets", ForgetRow, key=["forget"], rowid=False)
forgets = FORGET.table

HOOK = mapped(
    metadata,
    "hooks",
    HookRow,
    key=[],
    besides=[Column("number", Int, primary_key=True)],
    unique=["message"],
    identity=["message"],
    fixed=True,
)
hooks = HOOK.table
for _name, _state in (("waiting_hooks", "waiting"), ("given_up_hooks", "given_up")):
    Index(_name, hooks.c.receiver, hooks.c.number, sqlite_where=text(f"state = '{_state}'"))
Index("hooks_of_session", hooks.c.session)

RECEIVER = mapped(metadata, "hook_receivers", ReceiverRow, key=["receiver"], rowid=False)
receivers = RECEIVER.table
