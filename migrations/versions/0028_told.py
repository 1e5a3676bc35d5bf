"""What one of several gateways tells the others of itself, for whoever asks any of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("nodes", sa.Column("told", sa.Text(), nullable=False, server_default=""))
