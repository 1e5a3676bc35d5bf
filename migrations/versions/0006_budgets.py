"""Budgets: how much of each is spent and held, and the calls for which something is held."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("window", Int, autoincrement=False, nullable=False),
        sa.Column("until", Int, nullable=False),
        sa.Column("spent_tokens", Int, nullable=False),
        sa.Column("spent_nanos", Int, nullable=False),
        sa.Column("held_tokens", Int, nullable=False),
        sa.Column("held_nanos", Int, nullable=False),
        sa.Column("estimated_tokens", Int, nullable=False),
        sa.Column("estimated_nanos", Int, nullable=False),
        sa.Column("calls", Int, nullable=False),
        sa.Column("warned", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("scope", "window", name="pk_budgets"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "reservations",
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("node", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("pots", sa.Text(), nullable=False),
        sa.Column("held_tokens", Int, nullable=False),
        sa.Column("held_nanos", Int, nullable=False),
        sa.Column("used_tokens", Int, nullable=False),
        sa.Column("used_nanos", Int, nullable=False),
        sa.Column("estimated", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("call", name="pk_reservations"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_reservations_session"),
        sqlite_with_rowid=False,
    )
    where = sa.text("state = 'open'")
    op.create_index("open_reservations", "reservations", ["node"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
