"""A turn writes fewer pages: the journal is found by its key alone, a message names its turn itself, and nobody's sessions are indexed.

The journal's rows are written anew, under keys made of their turn's first message; turns whose messages are not kept any more get numbers
below zero, in their order.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

TURNS_AT_ONCE = 500
"""What is moved leaves pages that the next ones take: a file does not grow by all of its journals."""
_MOVED = sa.text(
    "INSERT INTO journal SELECT p.first_message * 1048576 + j.seq, j.turn, j.epoch, j.seq, j.kind, j.body, j.at "
    "FROM placed p JOIN journal_before j ON j.turn = p.turn "
    "WHERE p.first_message BETWEEN :first AND :last ORDER BY p.first_message, j.seq"
)
_LEFT = sa.text(
    "DELETE FROM journal_before WHERE turn IN (SELECT turn FROM placed WHERE first_message BETWEEN :first AND :last)"
)


def upgrade() -> None:
    op.drop_index("sessions_of_owner", "sessions")
    op.add_column("inbox", sa.Column("turn", sa.Text()))
    for name in ("first_message", "last_message"):
        op.add_column("turns", sa.Column(name, Int, nullable=False, server_default="0"))
    op.execute(
        "CREATE TEMPORARY TABLE placed (turn TEXT PRIMARY KEY, first_message BIGINT UNIQUE, last_message BIGINT)"
    )
    op.execute("INSERT INTO placed SELECT turn, min(inbox), max(inbox) FROM turn_inputs GROUP BY turn")
    op.execute(
        "INSERT INTO placed SELECT turn, -row_number() OVER (ORDER BY turn DESC), 0 FROM turns "
        "WHERE turn NOT IN (SELECT turn FROM turn_inputs)"
    )
    op.execute(
        "UPDATE turns SET first_message = (SELECT p.first_message FROM placed p WHERE p.turn = turns.turn), "
        "last_message = (SELECT p.last_message FROM placed p WHERE p.turn = turns.turn)"
    )
    op.execute(
        "UPDATE inbox SET turn = (SELECT n.turn FROM turn_inputs n WHERE n.inbox = inbox.id) "
        "WHERE id IN (SELECT inbox FROM turn_inputs)"
    )
    op.drop_table("turn_inputs")
    _journal()
    op.execute("DROP TABLE placed")


def _journal() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    op.rename_table("journal", "journal_before")
    if on_postgres:
        op.execute("ALTER INDEX pk_journal RENAME TO pk_journal_before")
    op.create_table(
        "journal",
        sa.Column("id", Int, autoincrement=False, nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("epoch", Int, nullable=False),
        sa.Column("seq", Int, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("at", Int, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
    )
    conn = op.get_bind()
    places = [row[0] for row in conn.execute(sa.text("SELECT first_message FROM placed ORDER BY first_message"))]
    for at in range(0, len(places), TURNS_AT_ONCE):
        some = {"first": places[at], "last": places[min(at + TURNS_AT_ONCE, len(places)) - 1]}
        conn.execute(_MOVED, some)
        conn.execute(_LEFT, some)
    op.drop_table("journal_before")
    if on_postgres:
        op.create_index("journal_of_turn", "journal", ["turn", "seq"], unique=True)


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
