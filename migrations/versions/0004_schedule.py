"""Schedules: what is to happen at certain times, and each occurrence that was claimed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("session_key", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("number", Int, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("next_at", Int, nullable=True),
        sa.Column("done_to", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("rev", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("schedule", name="pk_schedules"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_schedules_session_key", "schedules", ["session_key"])
    where = sa.text("state = 'active'")
    op.create_index("due_schedules", "schedules", ["next_at"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "occurrences",
        sa.Column("schedule", sa.Text(), nullable=False),
        sa.Column("due_at", Int, nullable=False),
        sa.Column("last_at", Int, nullable=False),
        sa.Column("count", Int, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.Column("inbox", Int, nullable=False),
        sa.PrimaryKeyConstraint("schedule", "due_at", name="pk_occurrences"),
        sa.ForeignKeyConstraint(["schedule"], ["schedules.schedule"], name="fk_occurrences_schedule"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
