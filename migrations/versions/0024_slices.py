"""Several gateways divide one PostgreSQL database: a table says who works on what, and a node says where it serves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("nodes", sa.Column("address", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "slices",
        sa.Column("slice", sa.Text(), nullable=False),
        sa.Column("owner", Int, nullable=True),
        sa.Column("epoch", Int, nullable=False),
        sa.PrimaryKeyConstraint("slice", name="pk_slices"),
        sa.ForeignKeyConstraint(["owner"], ["nodes.node"], name="fk_slices_owner"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
