"""What is large is stored once; who asked a turn; what was removed is known to have been there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "pieces",
        sa.Column("piece", Int, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("stored", sa.LargeBinary(), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("size", Int, nullable=False),
        sa.Column("refs", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("piece", name="pk_pieces"),
        sa.UniqueConstraint("digest", name="uq_pieces_digest"),
    )
    where = sa.text("form = 'bytes' and how <> 'gone'")
    op.create_index("old_files", "pieces", ["at"], sqlite_where=where, postgresql_where=where)
    # What is stored already stays as it is: it is read as before, and goes when its time is over.
    op.add_column("inbox", sa.Column("person", sa.Text(), nullable=False, server_default=""))
    op.add_column("turns", sa.Column("people", sa.Text(), nullable=False, server_default=""))
    op.add_column("turns", sa.Column("removed", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
