"""A node that has lost its database for a while, and finds it again, sees whether another has taken it for dead meanwhile. And a database says how old
a program may be that uses it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("taken_by", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True))
    op.create_table(
        "min_version",
        sa.Column("revision", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_min_version"),
    )
