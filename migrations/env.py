"""What alembic runs: the revisions, on the connection and in the transaction that `agent_core.store.database.upgrade` hands over."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection


def run() -> None:
    """Upgrade on the connection in the configuration's attributes; it is committed by whoever opened it."""
    connection = context.config.attributes.get("connection")
    if not isinstance(connection, Connection):
        raise TypeError("Migrations run through agent_core.store.database.upgrade, which brings the connection.")
    context.configure(connection=connection, target_metadata=None)
    with context.begin_transaction():
        context.run_migrations()


run()
