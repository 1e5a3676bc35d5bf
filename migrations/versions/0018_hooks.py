"""What is to be told outside is stored with what it tells, until its receiver has it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "hooks",
        sa.Column("number", Int, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempt", Int, nullable=False),
        sa.Column("retry_at", Int, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("done_at", Int, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_hooks"),
        sa.UniqueConstraint("message", name="uq_hooks_message"),
    )
    where = sa.text("state = 'waiting'")
    op.create_index("waiting_hooks", "hooks", ["receiver", "number"], sqlite_where=where, postgresql_where=where)
    op.create_index("hooks_of_session", "hooks", ["session"])
    op.create_table(
        "hook_receivers",
        sa.Column("receiver", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("off", sa.Text(), nullable=False),
        sa.Column("failures", Int, nullable=False),
        sa.Column("failing_since", Int, nullable=False),
        sa.Column("not_before", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("receiver", name="pk_hook_receivers"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
