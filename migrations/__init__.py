"""The history of the schema, one alembic revision a file. `agent_core.store.database.upgrade` runs it; no ini file is needed.

A revision is written by hand for SQLite and PostgreSQL, and never changed once released.
"""

from __future__ import annotations

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
    "0016",
    "0017",
    "0018",
    "0019",
    "0020",
    "0021",
    "0022",
    "0023",
    "0024",
    "0025",
    "0026",
    "0027",
    "0028",
    "0029",
    "0030",
)
"""All revisions, oldest first. Read at every start, so that alembic need not be imported to know whether one is missing."""
MIN_REVISION = "0027"
"""The oldest revision whose programs work with the newest schema. A migration that takes something away, or that means something else by what was
there, raises it to its own; one that only adds what may be missing leaves it, so that an older version can run beside the newer one, and one can go back."""
