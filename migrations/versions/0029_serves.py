"""Which accounts one of several gateways serves: it is given only what it can answer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("serves", sa.Text(), nullable=False, server_default=""))
