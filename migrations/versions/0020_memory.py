"""What is remembered says where it came from: the turn, who asked it, and whether the words may be those of others.

Entries that are there are kept as they are; of these nobody knows it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    for name in ("turn", "author", "writer"):
        op.add_column("memory", sa.Column(name, sa.Text(), nullable=False, server_default=""))
    op.add_column("memory", sa.Column("others", Int, nullable=False, server_default="0"))
    op.create_index("memory_of_author", "memory", ["author"])


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
