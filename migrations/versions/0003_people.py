"""One person with several accounts: private chats and what goes on in them, joined accounts, codes that join them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "places",
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("continues", sa.Text(), nullable=True),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("place", name="pk_places"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_places_account_person", "places", ["account", "person"])
    op.create_table(
        "links",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("account", "person", name="pk_links"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_links_who", "links", ["who"])
    op.create_table(
        "link_codes",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("username", sa.Text(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("until", Int, nullable=False),
        sa.Column("redeemed", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("code", name="pk_link_codes"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_link_codes_account_person", "link_codes", ["account", "person"])


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
