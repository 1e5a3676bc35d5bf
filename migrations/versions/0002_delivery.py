"""Delivery: every visible part with its whole state; what a session forgets; what a turn used; who may talk."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _deliveries()
    op.add_column("sessions", sa.Column("since", Int, nullable=False, server_default="0"))
    for name in ("undone", "input_tokens", "output_tokens"):
        op.add_column("turns", sa.Column(name, Int, nullable=False, server_default="0"))
    op.create_table(
        "people",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("code_until", Int, nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("account", "person", name="pk_people"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")


def _deliveries() -> None:
    """Nothing wrote to the first form of this table, so it is made anew."""
    op.drop_table("deliveries")
    op.create_table(
        "deliveries",
        sa.Column("id", Int, nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("bubble", sa.Text(), nullable=False),
        sa.Column("part", Int, nullable=False),
        sa.Column("place", Int, nullable=False),
        sa.Column("rev", Int, nullable=False),
        sa.Column("want_hash", sa.Text(), nullable=False),
        sa.Column("want", sa.LargeBinary(), nullable=False),
        sa.Column("final", Int, nullable=False),
        sa.Column("gone", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("platform_id", sa.Text(), nullable=True),
        sa.Column("attempt", Int, nullable=False),
        sa.Column("sending_at", Int, nullable=True),
        sa.Column("retry_at", Int, nullable=True),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("labelled", Int, nullable=False),
        sa.Column("plain", Int, nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("surface", "origin", "bubble", "part", name="uq_deliveries_surface_origin_bubble_part"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_deliveries_session"),
    )
    op.create_index("ix_deliveries_origin", "deliveries", ["origin"])
    for name, states in (("open_deliveries", "'wanted', 'sending', 'unknown'"), ("failed_deliveries", "'failed'")):
        where = sa.text(f"state in ({states})")
        op.create_index(name, "deliveries", ["surface", "place"], sqlite_where=where, postgresql_where=where)
