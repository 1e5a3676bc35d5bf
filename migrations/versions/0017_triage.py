"""What went wrong in a time is found without reading what went well in it.

The new indexes have no row of a turn that was answered. The one that is made anew has what it selects by in it as well: SQLite counts in an index
alone only then.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name, table, column, which in (
        ("turns_not_answered", "turns", "closed_at", "exit not in ('answered', 'handed_to_client')"),
        ("removed_journals", "turns", "closed_at", "removed <> ''"),
        ("dropped_inbox", "inbox", "received_at", "state = 'dropped'"),
    ):
        where = sa.text(which)
        op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)
    op.drop_index("kept_journals", "turns")
    where = sa.text("state = 'closed' and removed = ''")
    columns = ["closed_at", "state", "removed"]
    op.create_index("kept_journals", "turns", columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
