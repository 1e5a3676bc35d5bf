"""What a platform brought and could not be taken in is kept as it came."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "unread",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("platform_key", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("received_at", Int, nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", Int, nullable=False),
        sa.Column("tried_at", Int, nullable=False),
        sa.Column("told", Int, nullable=False),
        sa.PrimaryKeyConstraint("account", "platform_key", name="pk_unread"),
    )
    where = sa.text("state <> 'done'")
    op.create_index("open_unread", "unread", ["received_at"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
