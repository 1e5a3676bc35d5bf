"""A conversation has branches: a turn says which one it follows where that is not the one before it, and a session which one the next will follow.
The turns of a conversation that began as a branch have no messages of their own, and numbers below zero, which an index finds.

Until now what came after a turn that was taken back followed the last that was told.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TOLD = "(SELECT max(p.number) FROM turns AS p WHERE p.session = {of}.session AND p.undone = 0{before})"


def upgrade() -> None:
    op.add_column("turns", sa.Column("follows", Int, nullable=False, server_default="-1"))
    op.add_column("sessions", sa.Column("tip", Int, nullable=False, server_default="-1"))
    none = sa.text("first_message < 0")
    op.create_index("turns_of_no_message", "turns", ["first_message"], sqlite_where=none, postgresql_where=none)
    taken_back = (
        "SELECT 1 FROM turns AS p WHERE p.session = turns.session AND p.number = turns.number - 1 AND p.undone = 1"
    )
    told = TOLD.format(of="turns", before=" AND p.number < turns.number")
    op.execute(
        f"UPDATE turns SET follows = coalesce({told}, 0) "  # noqa: S608 - nothing of it comes from outside
        f"WHERE undone = 0 AND removed = '' AND session IN (SELECT session FROM turns WHERE undone = 1) AND EXISTS ({taken_back})"
    )
    last = "(SELECT p.undone FROM turns AS p WHERE p.session = sessions.session ORDER BY p.number DESC LIMIT 1)"
    op.execute(
        f"UPDATE sessions SET tip = coalesce({TOLD.format(of='sessions', before='')}, 0) "  # noqa: S608 - as above
        f"WHERE session IN (SELECT session FROM turns WHERE undone = 1) AND {last} = 1"
    )


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
