"""A turn writes fewer pages: on SQLite the rows of turns lie one behind the other, and those that grew beyond a fifth of a page have no page
of their own any more. From here on, rows of the journal do not say their time twice; those that are there are left as they are.

On SQLite the table of the turns is written anew, because what orders its rows cannot be changed.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

Int = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = (
    "turn", "session", "number", "state", "exit", "opened_at", "closed_at", "deadline", "undone", "input_tokens", "output_tokens", "suspicion",
    "people", "removed", "first_message", "last_message", "model", "key",
)  # fmt: skip
INDEXES = (
    ("one_open", ["session"], "state = 'open'", True),
    ("kept_journals", ["closed_at", "state", "removed"], "state = 'closed' and removed = ''", False),
    ("turns_of_bugs", ["closed_at"], "exit = 'internal_error'", False),
    ("turns_not_answered", ["closed_at"], "exit not in ('answered', 'handed_to_client')", False),
    ("removed_journals", ["closed_at"], "removed <> ''", False),
)


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        _anew()


def _anew() -> None:
    """Whoever refers to a turn finds it again before the transaction ends: until then nothing is missed."""
    op.execute("PRAGMA defer_foreign_keys = ON")
    columns = ", ".join(f'"{name}"' for name in COLUMNS)
    op.execute(f"CREATE TEMPORARY TABLE turns_before AS SELECT {columns} FROM turns")  # noqa: S608
    op.drop_table("turns")
    op.create_table(
        "turns",
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("number", Int, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("exit", sa.Text(), nullable=True),
        sa.Column("opened_at", Int, nullable=False),
        sa.Column("closed_at", Int, nullable=True),
        sa.Column("deadline", Int, nullable=False),
        *(_number(name) for name in ("undone", "input_tokens", "output_tokens", "suspicion")),
        *(_text(name) for name in ("people", "removed")),
        *(_number(name) for name in ("first_message", "last_message")),
        *(_text(name) for name in ("model", "key")),
        sa.PrimaryKeyConstraint("turn", name="pk_turns"),
        sa.UniqueConstraint("session", "number", name="uq_turns_session_number"),
        sa.ForeignKeyConstraint(["session"], ["sessions.session"], name="fk_turns_session"),
    )
    op.execute(f"INSERT INTO turns ({columns}) SELECT {columns} FROM turns_before ORDER BY turn")  # noqa: S608
    op.execute("DROP TABLE turns_before")
    for name, on, where, unique in INDEXES:
        op.create_index(name, "turns", on, unique=unique, sqlite_where=sa.text(where))


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, Int, nullable=False, server_default="0")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, server_default="")


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
