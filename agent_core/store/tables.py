"""The tables of the store, for SQLite and PostgreSQL alike; the migrations build the same schema by hand.

Laws: times are milliseconds of the injected clock; text that people wrote is kept as UTF-8 bytes (`LargeBinary`), because
PostgreSQL's text cannot hold NUL; a session has at most one open turn (`one_open`); a message belongs to at most one turn
(`turn_inputs`); the journal's key is (turn, seq), and what fences a stale owner is not this key but owner and epoch of the
session, compared in the same transaction.

On SQLite the choice of b-trees decides how much a turn writes, because a commit writes whole pages: small tables with a text
key are kept without rowid (one tree instead of two); the journal keeps its rowid, so that the rows of all turns are appended
to one end.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Int = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits on both engines; SQLite counts up by itself only in a column of the very type INTEGER."""

nodes = Table(
    "nodes",
    metadata,
    Column("node", Int, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("started_at", Int, nullable=False),
    Column("version", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("ended_at", Int),
)
"""`ended_at`: it ended in order; what it left open was left on purpose."""

sessions = Table(
    "sessions",
    metadata,
    Column("session", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("owner", Int, ForeignKey("nodes.node")),
    Column("epoch", Int, nullable=False),
    Column("policy", Text),
    Column("runnable_at", Int),
    Column("quarantined", Text),
    Column("created_at", Int, nullable=False),
    Column("last_at", Int, nullable=False),
    Column("since", Int, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)
Index("sessions_of_owner", sessions.c.owner)
Index(
    "sessions_set_aside",
    sessions.c.last_at,
    sqlite_where=text("quarantined is not null"),
    postgresql_where=text("quarantined is not null"),
)

cursors = Table(
    "cursors",
    metadata,
    Column("account", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("last_seen", Text, nullable=False),
    sqlite_with_rowid=False,
)

unread = Table(
    "unread",
    metadata,
    Column("account", Text, primary_key=True),
    Column("platform_key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("words", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("received_at", Int, nullable=False),
    Column("chat", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("tries", Int, nullable=False),
    Column("tried_at", Int, nullable=False),
    Column("told", Int, nullable=False),
)
"""What a platform brought and could not be taken in, as it came."""
Index(
    "open_unread",
    unread.c.received_at,
    sqlite_where=text("state <> 'done'"),
    postgresql_where=text("state <> 'done'"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("id", Int, primary_key=True),
    Column("account", Text, nullable=False),
    Column("platform_key", Text, nullable=False),
    Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    Column("arrival", Int, nullable=False),
    Column("lane", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("received_at", Int, nullable=False),
    Column("suspicion", Int, nullable=False, server_default="0"),
    Column("person", Text, nullable=False, server_default=""),
    UniqueConstraint("account", "platform_key"),
)
Index(
    "pending_inbox",
    inbox.c.session,
    inbox.c.arrival,
    sqlite_where=text("state = 'new'"),
    postgresql_where=text("state = 'new'"),
)
Index("inbox_of_session", inbox.c.session, inbox.c.id)

turns = Table(
    "turns",
    metadata,
    Column("turn", Text, primary_key=True),
    Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    Column("number", Int, nullable=False),
    Column("state", Text, nullable=False),
    Column("exit", Text),
    Column("opened_at", Int, nullable=False),
    Column("closed_at", Int),
    Column("deadline", Int, nullable=False),
    Column("undone", Int, nullable=False, server_default="0"),
    Column("input_tokens", Int, nullable=False, server_default="0"),
    Column("output_tokens", Int, nullable=False, server_default="0"),
    Column("suspicion", Int, nullable=False, server_default="0"),
    Column("people", Text, nullable=False, server_default=""),
    Column("removed", Text, nullable=False, server_default=""),
    UniqueConstraint("session", "number"),
    sqlite_with_rowid=False,
)
"""`people`: who asked, as JSON. `removed`: why its journal is not there any more; empty if it is."""
Index(
    "one_open",
    turns.c.session,
    unique=True,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)

Index(
    "kept_journals",
    turns.c.closed_at,
    sqlite_where=text("state = 'closed' and removed = ''"),
    postgresql_where=text("state = 'closed' and removed = ''"),
)

Index(
    "turns_of_bugs",
    turns.c.closed_at,
    sqlite_where=text("exit = 'internal_error'"),
    postgresql_where=text("exit = 'internal_error'"),
)

turn_inputs = Table(
    "turn_inputs",
    metadata,
    Column("inbox", Int, ForeignKey("inbox.id"), primary_key=True, autoincrement=False),
    Column("turn", Text, ForeignKey("turns.turn"), nullable=False, index=True),
)

journal = Table(
    "journal",
    metadata,
    Column("turn", Text, ForeignKey("turns.turn"), primary_key=True),
    Column("seq", Int, primary_key=True, autoincrement=False),
    Column("epoch", Int, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("at", Int, nullable=False),
)

pieces = Table(
    "pieces",
    metadata,
    Column("piece", Int, primary_key=True),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("form", Text, nullable=False),
    Column("stored", LargeBinary, nullable=False),
    Column("how", Text, nullable=False),
    Column("size", Int, nullable=False),
    Column("refs", Int, nullable=False),
    Column("at", Int, nullable=False),
)
"""What is large in the bodies of messages and journals, once; see `packing`. `refs` counts the gaps that it fills."""
Index(
    "old_files",
    pieces.c.at,
    sqlite_where=text("form = 'bytes' and how <> 'gone'"),
    postgresql_where=text("form = 'bytes' and how <> 'gone'"),
)

tool_calls = Table(
    "tool_calls",
    metadata,
    Column("turn", Text, ForeignKey("turns.turn"), primary_key=True),
    Column("call", Text, primary_key=True),
    Column("tool", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("result_ref", Text),
    sqlite_with_rowid=False,
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Int, primary_key=True),
    Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    Column("origin", Text, nullable=False, index=True),
    Column("surface", Text, nullable=False),
    Column("bubble", Text, nullable=False),
    Column("part", Int, nullable=False),
    Column("place", Int, nullable=False),
    Column("rev", Int, nullable=False),
    Column("want_hash", Text, nullable=False),
    Column("want", LargeBinary, nullable=False),
    Column("final", Int, nullable=False),
    Column("gone", Int, nullable=False),
    Column("state", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("platform_id", Text),
    Column("attempt", Int, nullable=False),
    Column("sending_at", Int),
    Column("retry_at", Int),
    Column("epoch", Int, nullable=False),
    Column("labelled", Int, nullable=False),
    Column("plain", Int, nullable=False),
    Column("cause", Text, nullable=False),
    Column("at", Int, nullable=False),
    Column("failures", Int, nullable=False, server_default="0"),
    Column("trouble", Text, nullable=False, server_default=""),
    Column("suspicion", Int, nullable=False, server_default="0"),
    UniqueConstraint("surface", "origin", "bubble", "part"),
)
Index(
    "deliveries_by_receipt",
    deliveries.c.platform_id,
    sqlite_where=text("platform_id is not null"),
    postgresql_where=text("platform_id is not null"),
)
Index("deliveries_of_session", deliveries.c.session)
OPEN_PARTS = text("deliveries.state in ('wanted', 'sending', 'unknown')")
"""As it stands in the index: with bound values SQLite does not see that the index has them all, and reads the whole table."""
for _name, _states in (("open_deliveries", "'wanted', 'sending', 'unknown'"), ("failed_deliveries", "'failed'")):
    Index(
        _name,
        deliveries.c.surface,
        deliveries.c.place,
        sqlite_where=text(f"state in ({_states})"),
        postgresql_where=text(f"state in ({_states})"),
    )

people = Table(
    "people",
    metadata,
    Column("account", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("code_until", Int, nullable=False),
    Column("at", Int, nullable=False),
    Column("by", Text, nullable=False),
    sqlite_with_rowid=False,
)

troubles = Table(
    "troubles",
    metadata,
    Column("turn", Text, ForeignKey("turns.turn"), primary_key=True),
    Column("number", Int, primary_key=True, autoincrement=False),
    Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    Column("conversation", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("size", Text, nullable=False),
    Column("chars", Int, nullable=False),
    Column("rung", Text, nullable=False),  # the remedy; a stored name stays
    Column("outcome", Text, nullable=False),
    Column("ended", Int, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)
Index("troubles_of_conversation", troubles.c.conversation, troubles.c.at)
Index("troubles_of_fingerprint", troubles.c.fingerprint, troubles.c.at)
Index("troubles_of_session", troubles.c.session)
Index("troubles_by_time", troubles.c.at)

incidents = Table(
    "incidents",
    metadata,
    Column("incident", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("tool", Text, nullable=False),
    Column("opened_at", Int, nullable=False),
    Column("last_at", Int, nullable=False),
    Column("closed_at", Int),
    Column("conversations", Int, nullable=False),
    Column("turns", Int, nullable=False),
    Column("remedy", Text, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "one_open_incident",
    incidents.c.fingerprint,
    unique=True,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)
places = Table(
    "places",
    metadata,
    Column("place", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("continues", Text),
    Column("at", Int, nullable=False),
    Index(None, "account", "person"),
    sqlite_with_rowid=False,
)
"""Private chats, by the key of the session that they have of their own, and whose they are."""

links = Table(
    "links",
    metadata,
    Column("account", Text, primary_key=True),
    Column("person", Text, primary_key=True),
    Column("who", Text, nullable=False, index=True),
    Column("name", Text, nullable=False),
    Column("username", Text, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)
"""Accounts that are joined: those with the same `who` are one person's."""

link_codes = Table(
    "link_codes",
    metadata,
    Column("code", Text, primary_key=True),
    Column("account", Text, nullable=False),
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("username", Text, nullable=False),
    Column("chat", Text, nullable=False),
    Column("until", Int, nullable=False),
    Column("redeemed", Text),
    Index(None, "account", "person"),
    sqlite_with_rowid=False,
)

adapter_states = Table(
    "adapter_states",
    metadata,
    Column("account", Text, primary_key=True),
    Column("at", Int, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("words", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""How each adapter was doing, from each change on."""

audit = Table(
    "audit",
    metadata,
    Column("audit", Text, primary_key=True),
    Column("at", Int, nullable=False),
    Column("who", Text, nullable=False),
    Column("act", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""What was done by hand. Ids are made so that they sort by time."""

gates = Table(
    "gates",
    metadata,
    Column("account", Text, primary_key=True),
    Column("bucket", Text, primary_key=True),
    Column("not_before", Int, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Int, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)

memory = Table(
    "memory",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)

budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("window", Int, primary_key=True, autoincrement=False),
    Column("until", Int, nullable=False),
    Column("spent_tokens", Int, nullable=False),
    Column("spent_nanos", Int, nullable=False),
    Column("held_tokens", Int, nullable=False),
    Column("held_nanos", Int, nullable=False),
    Column("estimated_tokens", Int, nullable=False),
    Column("estimated_nanos", Int, nullable=False),
    Column("calls", Int, nullable=False),
    Column("warned", Int, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)
Index("budgets_by_end", budgets.c.until)

reservations = Table(
    "reservations",
    metadata,
    Column("call", Text, primary_key=True),
    Column("session", Text, ForeignKey("sessions.session"), nullable=False),
    Column("node", Int, nullable=False),
    Column("state", Text, nullable=False),
    Column("pots", Text, nullable=False),
    Column("held_tokens", Int, nullable=False),
    Column("held_nanos", Int, nullable=False),
    Column("used_tokens", Int, nullable=False),
    Column("used_nanos", Int, nullable=False),
    Column("estimated", Int, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "open_reservations",
    reservations.c.node,
    sqlite_where=text("state = 'open'"),
    postgresql_where=text("state = 'open'"),
)
Index("reservations_of_session", reservations.c.session)

schedules = Table(
    "schedules",
    metadata,
    Column("schedule", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("session_key", Text, nullable=False, index=True),
    Column("surface", Text, nullable=False),
    Column("number", Int, nullable=False),
    Column("rule", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("next_at", Int),
    Column("done_to", Int, nullable=False),
    Column("state", Text, nullable=False),
    Column("rev", Int, nullable=False),
    Column("at", Int, nullable=False),
    sqlite_with_rowid=False,
)
Index(
    "due_schedules",
    schedules.c.next_at,
    sqlite_where=text("state = 'active'"),
    postgresql_where=text("state = 'active'"),
)

occurrences = Table(
    "occurrences",
    metadata,
    Column("schedule", Text, ForeignKey("schedules.schedule"), primary_key=True),
    Column("due_at", Int, primary_key=True, autoincrement=False),
    Column("last_at", Int, nullable=False),
    Column("count", Int, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("at", Int, nullable=False),
    Column("inbox", Int, nullable=False),
    sqlite_with_rowid=False,
)

forgets = Table(
    "forgets",
    metadata,
    Column("forget", Text, primary_key=True),
    Column("who", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("told", Text, nullable=False),
    Column("at", Int, nullable=False),
    Column("done_at", Int),
    sqlite_with_rowid=False,
)
"""People who are to be forgotten, and how far that is. `after`: behind what the stage goes on; `told`: what was counted, as JSON."""
