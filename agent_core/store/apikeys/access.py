"""What can be asked of keys, and what can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import Connection, bindparam, func, select, update

from agent_core.store import tables as t
from agent_core.store.apikeys.rows import ApiKeyRow
from agent_core.store.audit import AuditRow
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing

_USED = (
    update(t.api_keys)
    .where(t.api_keys.c.name == bindparam("which"), t.api_keys.c.used_at < bindparam("at"))
    .values(used_at=bindparam("at"))
)
_CHANGING = ("prefix", "digest", "terms", "changed_at", "revoked_at", "before_prefix", "before_digest", "before_until")
"""All but who made it and when it was used: that is noted by whoever serves, at any moment."""


_ALL = t.API_KEY.query.order_by(t.api_keys.c.made_at.desc(), t.api_keys.c.name)


class ApiKeyReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def all(self) -> list[ApiKeyRow]:
        """Every key there ever was, the newest first."""
        return await self._asks.made_always(_ALL, t.API_KEY.make)

    async def state(self) -> tuple[int, int]:
        """Another one whenever a key has been made or changed, whoever did it."""
        c = t.api_keys.c
        rows = await self._asks.all(select(func.count(), func.coalesce(func.sum(c.changed_at), 0)))
        return int(rows[0][0]), int(rows[0][1])


class ApiKeys(ApiKeyReads, Writing):
    """All of it, for the node that writes."""

    async def add(self, row: ApiKeyRow, noted: AuditRow) -> bool:
        """Promises: the key is there, and the record says who made it. False if its name was ever given, and nothing is changed."""

        def body(conn: Connection) -> bool:
            found = _one(conn, row.name)
            if found is not None:
                return found.digest == row.digest  # the same once more: the answer was lost
            conn.execute(t.API_KEY.insert, t.API_KEY.values(row))
            t.AUDIT.put(conn, [t.AUDIT.values(noted)])
            return True

        return await self._writer.alone(body)

    async def change(self, name: str, made: Callable[[ApiKeyRow], ApiKeyRow], noted: AuditRow) -> ApiKeyRow | None:
        """Promises: the key is as `made` makes it of what was there, and the record says so. None if there is no such key."""

        def body(conn: Connection) -> ApiKeyRow | None:
            found = _one(conn, name)
            if found is None:
                return None
            changed = made(found)
            conn.execute(t.API_KEY.update(_CHANGING), [t.API_KEY.change(changed, _CHANGING)])
            t.AUDIT.put(conn, [t.AUDIT.values(noted)])
            return changed

        return await self._writer.alone(body)

    async def used(self, times: Mapping[str, int]) -> None:
        """Promises: it is noted when these keys were shown."""
        rows = [{"which": name, "at": at} for name, at in sorted(times.items())]
        await self._writer.alone(lambda conn: None if not rows else (conn.execute(_USED, rows), None)[1])


def _one(conn: Connection, name: str) -> ApiKeyRow | None:
    row = conn.execute(t.API_KEY.query.where(t.api_keys.c.name == name).with_for_update()).one_or_none()
    return t.API_KEY.make(row) if row is not None else None
