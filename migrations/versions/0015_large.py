"""What the upkeep, the console and the removal of a session look for is found without reading whole tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    where = sa.text("quarantined is not null")
    op.create_index("sessions_of_owner", "sessions", ["owner"])
    op.create_index("sessions_set_aside", "sessions", ["last_at"], sqlite_where=where, postgresql_where=where)
    op.create_index("deliveries_of_session", "deliveries", ["session"])
    op.create_index("troubles_of_session", "troubles", ["session"])
    op.create_index("troubles_by_time", "troubles", ["at"])
    op.create_index("reservations_of_session", "reservations", ["session"])
    op.create_index("budgets_by_end", "budgets", ["until"])


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
