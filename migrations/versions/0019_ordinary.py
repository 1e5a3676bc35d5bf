"""The journals of new turns tell their settings by what is not ordinary, and the end of a turn no longer writes its messages.

Nothing of the schema changes. An older program would not understand such rows, and would take messages that are done for some that wait: by this
number it refuses the database in words.
"""

from __future__ import annotations

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    raise RuntimeError("Schemas are not taken back; restore the copy that was made before the upgrade.")
