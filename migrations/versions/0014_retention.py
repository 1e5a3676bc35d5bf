"""Old journals are found without reading the young ones; people who are to be forgotten are known until that is done."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    where = sa.text("state = 'closed' and removed = ''")
    op.create_index("kept_journals", "turns", ["closed_at"], sqlite_where=where, postgresql_where=where)
    op.create_table(
        "forgets",
        sa.Column("forget", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.Column("done_at", Int),
        sa.PrimaryKeyConstraint("forget", name="pk_forgets"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
