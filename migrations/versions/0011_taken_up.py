"""Poison has an end: how often a turn, a message or a delivery was taken up after a death, and which processes ended in order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for table in ("turns", "inbox", "deliveries"):
        op.add_column(table, sa.Column("suspicion", Int, nullable=False, server_default="0"))
    op.add_column("nodes", sa.Column("ended_at", Int))


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
