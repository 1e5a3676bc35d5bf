"""A turn writes fewer pages: the session of a single request, which nobody else can name, is in no index of keys, and the rows of the journal do
not name their turn, which their key tells.

On SQLite the table of the sessions is written anew, because its constraint cannot be taken from it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = (
    "session", "key", "owner", "epoch", "policy", "runnable_at", "quarantined", "created_at", "last_at", "since"
)  # fmt: skip


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("uq_sessions_key", "sessions", type_="unique")
    else:
        _anew()
    if op.get_bind().dialect.name == "postgresql":
        op.drop_index("journal_of_turn", "journal")
    op.drop_column("journal", "turn")
    named = sa.text("substr(key, 1, 9) <> 'api/once/'")
    op.create_index("sessions_by_key", "sessions", ["key"], unique=True, sqlite_where=named, postgresql_where=named)


def _anew() -> None:
    """Whoever refers to a session finds it again before the transaction ends: until then nothing is missed."""
    op.execute("PRAGMA defer_foreign_keys = ON")
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    op.execute(f"CREATE TEMPORARY TABLE sessions_before AS SELECT {columns} FROM sessions")  # noqa: S608
    op.drop_table("sessions")
    op.create_table(
        "sessions",
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("owner", Int, nullable=True),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("policy", sa.Text(), nullable=True),
        sa.Column("runnable_at", Int, nullable=True),
        sa.Column("quarantined", sa.Text(), nullable=True),
        sa.Column("created_at", Int, nullable=False),
        sa.Column("last_at", Int, nullable=False),
        sa.Column("since", Int, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("session", name="pk_sessions"),
        sa.ForeignKeyConstraint(["owner"], ["nodes.node"], name="fk_sessions_owner"),
        sqlite_with_rowid=False,
    )
    op.execute(f"INSERT INTO sessions ({columns}) SELECT {columns} FROM sessions_before ORDER BY session")  # noqa: S608
    op.execute("DROP TABLE sessions_before")
    aside = sa.text("quarantined is not null")
    op.create_index("sessions_set_aside", "sessions", ["last_at"], sqlite_where=aside)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
