"""What a platform brought and this program could not take in: kept as it came, with the platform's position, in one transaction.

Laws. What is stored here was not confirmed before. The same (account, platform_key) is kept once. How often it was tried is stored before
it is tried, so that what kills the process is not tried for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, delete, insert, select, text, update

from agent_core.store import tables as t
from agent_core.store.batch.facts import GivenRow
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.inbox.rows import CursorRow, UnreadRow, UnreadState
from agent_core.store.slices.rows import tenure_now
from agent_core.store.slices.sql import put_cursors

_KEYS = ("account", "platform_key")
_OPEN = select(t.unread.c.account).where(text("unread.state <> 'done'"))


def _mine(row: UnreadRow) -> Any:
    return (t.unread.c.account == row.account) & (t.unread.c.platform_key == row.platform_key)


def keep(row: UnreadRow, cursor: tuple[str, str] | None, node: int) -> Callable[[Connection], bool]:
    """Keep it, and say that everything of the cursor's channel is stored up to there. Answers whether it is new."""
    under = tenure_now()

    def body(conn: Connection) -> bool:
        known = conn.execute(select(t.unread.c.account).where(_mine(row))).first() is not None
        if not known:
            conn.execute(insert(t.unread), t.UNREAD.values(row))
        if cursor is not None:
            put_cursors(conn, [GivenRow(CursorRow(row.account, *cursor), {"under": under})], node)
        return not known

    return body


def change(row: UnreadRow) -> Callable[[Connection], None]:
    """From now on it is like this."""

    def body(conn: Connection) -> None:
        values = {name: value for name, value in t.UNREAD.values(row).items() if name not in _KEYS}
        conn.execute(update(t.unread).where(_mine(row)).values(values))

    return body


def prune(conn: Connection, before_ms: int) -> None:
    """Forget what is over."""
    over = t.unread.c.state != UnreadState.WAITING.value
    conn.execute(delete(t.unread).where(t.unread.c.received_at < before_ms, over))


class UnreadReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def waiting(self, version: str, limit: int = 200) -> list[UnreadRow]:
        """What waits, and what another version than this has given up; what was tried the longest ago first."""
        state = t.unread.c.state
        given_up = (state == UnreadState.GIVEN_UP.value) & (t.unread.c.version != version)
        query = t.UNREAD.query.where(text("unread.state <> 'done'"), (state == UnreadState.WAITING.value) | given_up)
        return [t.UNREAD.make(row) for row in await self._asks.all(query.order_by(t.unread.c.tried_at).limit(limit))]

    async def one(self, account: str, platform_key: str) -> UnreadRow | None:
        """What is kept under this key, whatever became of it."""
        query = t.UNREAD.query.where(t.unread.c.account == account, t.unread.c.platform_key == platform_key)
        return next((t.UNREAD.make(row) for row in await self._asks.all(query)), None)

    async def counts(self) -> dict[str, int]:
        """How much is not taken in, by account."""
        found = await self._asks.always(_OPEN)
        return dict(Counter(str(row[0]) for row in found))


class UnreadStore(UnreadReads, Writing):
    """All of it, for the node that writes."""

    async def keep(self, row: UnreadRow, cursor: tuple[str, str] | None) -> bool:
        """Promises: what could not be taken in is kept as it came, with its cursor; only now may it be acknowledged to the platform.

        False if it was kept before; then nothing of it changes.
        """
        return await self._writer.alone(keep(row, cursor, self._node.who.node))

    async def change(self, row: UnreadRow) -> None:
        """Promises: it is stored what became of it. Before it is tried again, and after."""
        await self._writer.alone(change(row))
