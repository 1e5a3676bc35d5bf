"""What went wrong and what helped: failures of closed turns by fingerprint, and incidents over conversations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "troubles",
        sa.Column("turn", sa.Text(), sa.ForeignKey("turns.turn", name="fk_troubles_turn"), nullable=False),
        sa.Column("number", Int, nullable=False, autoincrement=False),
        sa.Column("session", sa.Text(), sa.ForeignKey("sessions.session", name="fk_troubles_session"), nullable=False),
        sa.Column("conversation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("size", sa.Text(), nullable=False),
        sa.Column("chars", Int, nullable=False),
        sa.Column("rung", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("ended", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("turn", "number", name="pk_troubles"),
        sqlite_with_rowid=False,
    )
    op.create_index("troubles_of_conversation", "troubles", ["conversation", "at"])
    op.create_index("troubles_of_fingerprint", "troubles", ["fingerprint", "at"])
    op.create_table(
        "incidents",
        sa.Column("incident", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("opened_at", Int, nullable=False),
        sa.Column("last_at", Int, nullable=False),
        sa.Column("closed_at", Int, nullable=True),
        sa.Column("conversations", Int, nullable=False),
        sa.Column("turns", Int, nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("incident", name="pk_incidents"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "one_open_incident",
        "incidents",
        ["fingerprint"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
