"""What explaining needs: the states of adapters, what a delivery went through, and ways to find a message or a bug by its id."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "adapter_states",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("at", Int, nullable=False, autoincrement=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", "at", name="pk_adapter_states"),
        sqlite_with_rowid=False,
    )
    op.add_column("deliveries", sa.Column("failures", Int, nullable=False, server_default="0"))
    op.add_column("deliveries", sa.Column("trouble", sa.Text(), nullable=False, server_default=""))
    op.create_index(
        "deliveries_by_receipt",
        "deliveries",
        ["platform_id"],
        sqlite_where=sa.text("platform_id is not null"),
        postgresql_where=sa.text("platform_id is not null"),
    )
    op.create_index(
        "turns_of_bugs",
        "turns",
        ["closed_at"],
        sqlite_where=sa.text("exit = 'internal_error'"),
        postgresql_where=sa.text("exit = 'internal_error'"),
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
