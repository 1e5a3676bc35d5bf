"""What could not be told or shown is found without reading what was; and what is kept for good beside memories, without reading those.

A turn writes none of these indexes: two have no row of what went well, and the third has none of memories. Failed parts are asked for by their
time, and were all read and sorted for it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    where = sa.text("state = 'given_up'")
    op.create_index("given_up_hooks", "hooks", ["receiver", "number"], sqlite_where=where, postgresql_where=where)
    where = sa.text("state = 'failed'")
    op.drop_index("failed_deliveries", "deliveries")
    op.create_index("failed_deliveries", "deliveries", ["at"], sqlite_where=where, postgresql_where=where)
    where = sa.text("kind <> 'memory'")
    op.create_index("memory_of_kind", "memory", ["kind", "at"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
