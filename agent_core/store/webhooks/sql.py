"""Webhooks of a batch, written. Messages are stored in the order in which they were told: that is the order in which they are sent."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, update

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts

_CHANGING = ("state", "attempt", "retry_at", "cause", "done_at")
_SETTLED = (
    update(t.hooks)
    .where(t.hooks.c.message == bindparam("which"))
    .values({name: bindparam(f"new_{name}", type_=t.hooks.c[name].type) for name in _CHANGING})
)


def store(conn: Connection, facts: Facts) -> None:
    """What is new, and what became of what was tried."""
    if new := facts.puts.get(t.HOOK):
        t.HOOK.put(conn, [t.HOOK.values(one.row) for one in new.values()])
    if facts.hooks_settled:
        rows = [t.HOOK.values(row) for row in facts.hooks_settled.values()]
        conn.execute(
            _SETTLED,
            [{"which": row["message"]} | {f"new_{name}": row[name] for name in _CHANGING} for row in rows],
        )
