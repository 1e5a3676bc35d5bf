"""A turn says which model answered it and by which key of the API it was asked, so that what was spent is told by both."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("model", "key"):
        op.add_column("turns", sa.Column(name, sa.Text(), nullable=False, server_default=""))
