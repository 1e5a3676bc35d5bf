"""Keys of the API under names, as digests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("made_at", Int, nullable=False),
        sa.Column("changed_at", Int, nullable=False),
        sa.Column("revoked_at", Int, nullable=True),
        sa.Column("used_at", Int, nullable=False),
        sa.Column("before_prefix", sa.Text(), nullable=False),
        sa.Column("before_digest", sa.Text(), nullable=False),
        sa.Column("before_until", Int, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_api_keys"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
