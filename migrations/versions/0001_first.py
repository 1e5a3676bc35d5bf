"""The first schema: nodes, sessions, inbox, turns, journal, tool calls, deliveries, gates, memory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _who_and_what()
    _inbox_and_turns()
    _delivery()
    _rest()


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")


def _who_and_what() -> None:
    op.create_table(
        "nodes",
        sa.Column("node", Int, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("started_at", Int, nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("boot_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_nodes"),
        sa.UniqueConstraint("name", name="uq_nodes_name"),
    )
    op.create_table(
        "sessions",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("owner", Int, nullable=True),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.Column("runnable_at", Int, nullable=True),
        sa.Column("quarantined", sa.Text(), nullable=True),
        sa.Column("created_at", Int, nullable=False),
        sa.Column("last_at", Int, nullable=False),
        sa.PrimaryKeyConstraint("session", name="pk_sessions"),
        sa.UniqueConstraint("key", name="uq_sessions_key"),
        sa.ForeignKeyConstraint(["owner"], ["nodes.node"], name="fk_sessions_owner"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "cursors",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("last_seen", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", "channel", name="pk_cursors"),
        sqlite_with_rowid=False,
    )


def _inbox_and_turns() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", Int, nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("platform_key", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("arrival", Int, nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("received_at", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_inbox"),
        sa.UniqueConstraint("account", "platform_key", name="uq_inbox_account_platform_key"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_inbox_session"),
    )
    _partial_index("pending_inbox", "inbox", ["session", "arrival"], "state = 'new'")
    op.create_table(
        "turns",
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("number", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("exit", sa.Text(), nullable=True),
        sa.Column("opened_at", Int, nullable=False),
        sa.Column("closed_at", Int, nullable=True),
        sa.Column("deadline", Int, nullable=False),
        sa.PrimaryKeyConstraint("turn", name="pk_turns"),
        sa.UniqueConstraint("session", "number", name="uq_turns_session_number"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_turns_session"),
        sqlite_with_rowid=False,
    )
    _partial_index("one_open", "turns", ["session"], "state = 'open'", unique=True)
    op.create_table(
        "turn_inputs",
        sa.Column("inbox", Int, autoincrement=False, nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("inbox", name="pk_turn_inputs"),
        sa.ForeignKeyConstraint(["inbox"], ["inbox.id"], name="fk_turn_inputs_inbox"),
        sa.ForeignKeyConstraint(["turn"], ["turns.turn"], name="fk_turn_inputs_turn"),
    )
    op.create_index("ix_turn_inputs_turn", "turn_inputs", ["turn"])
    op.create_table(
        "journal",
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("seq", Int, autoincrement=False, nullable=False),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("turn", "seq", name="pk_journal"),
        sa.ForeignKeyConstraint(["turn"], ["turns.turn"], name="fk_journal_turn"),
    )
    op.create_table(
        "tool_calls",
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("result_ref", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("turn", "call", name="pk_tool_calls"),
        sa.ForeignKeyConstraint(["turn"], ["turns.turn"], name="fk_tool_calls_turn"),
        sqlite_with_rowid=False,
    )


def _delivery() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", Int, nullable=False),
        sa.Column("turn", sa.Text(), nullable=True),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("bubble", sa.Text(), nullable=False),
        sa.Column("part", Int, nullable=False),
        sa.Column("rev", Int, nullable=False),
        sa.Column("want_hash", sa.Text(), nullable=False),
        sa.Column("want", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("platform_id", sa.Text(), nullable=True),
        sa.Column("attempt", Int, nullable=False),
        sa.Column("sending_at", Int, nullable=True),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("retry_at", Int, nullable=True),
        sa.Column("labelled", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("surface", "turn", "bubble", "part", name="uq_deliveries_surface_turn_bubble_part"),
        sa.ForeignKeyConstraint(["turn"], ["turns.turn"], name="fk_deliveries_turn"),
    )
    op.create_index("ix_deliveries_turn", "deliveries", ["turn"])
    _partial_index("open_deliveries", "deliveries", ["surface", "id"], "state in ('wanted', 'sending', 'unknown')")
    op.create_table(
        "gates",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("not_before", Int, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", "bucket", name="pk_gates"),
        sqlite_with_rowid=False,
    )


def _rest() -> None:
    op.create_table(
        "memory",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("scope", "kind", "name", name="pk_memory"),
        sqlite_with_rowid=False,
    )


def _partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
