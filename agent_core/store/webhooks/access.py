"""What can be asked of webhooks, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select, text

from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.webhooks.ops import PutHooks, SettleHooks
from agent_core.store.webhooks.rows import HookCount, HookRow, HookState, ReceiverRow, StoredHook

_h = t.hooks.c
_INDEXED = {one: text(f"hooks.state = '{one.value}'") for one in (HookState.WAITING, HookState.GIVEN_UP)}
"""As it stands in the index: with a bound value SQLite does not see that the index has them all."""
_WAITING = _INDEXED[HookState.WAITING]
_STORED = t.HOOK.query.add_columns(_h.number)


class HookReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def due(self, receiver: str, now: int, limit: int) -> list[StoredHook]:
        """What may be sent to a receiver now, in the order in which it was told."""
        query = _STORED.where(_WAITING, _h.receiver == receiver, _h.retry_at <= now)
        return await self._made(query.order_by(_h.number).limit(limit))

    async def next_at(self, receiver: str) -> int | None:
        """When the next message to a receiver may be sent, ms; None if none waits."""
        found = (await self._asks.all(select(func.min(_h.retry_at)).where(_WAITING, _h.receiver == receiver)))[0][0]
        return None if found is None else int(found)

    async def waiting(self, receiver: str, limit: int, after: int = 0) -> list[StoredHook]:
        """What is still to be sent to a receiver, behind a number, whenever that may be."""
        query = _STORED.where(_WAITING, _h.receiver == receiver, _h.number > after)
        return await self._made(query.order_by(_h.number).limit(limit))

    async def counts(self) -> list[HookCount]:
        """How many messages of each receiver wait, or were given up. Those that were sent are all there ever were, and are not counted."""
        found: list[HookCount] = []
        for state, is_so in _INDEXED.items():
            each = select(_h.receiver, func.count().label("count"), func.min(_h.number).label("first")).where(is_so)
            c = each.group_by(_h.receiver).subquery().c
            rows = await self._asks.all(select(c.receiver, c.count, _h.at).join(t.hooks, _h.number == c.first))
            found += [HookCount(row[0], state, int(row[1]), int(row[2])) for row in rows]
        return found

    async def given_up(self, receiver: str, limit: int) -> list[StoredHook]:
        """The latest messages of a receiver that are not tried any more, the newest first."""
        query = _STORED.where(_INDEXED[HookState.GIVEN_UP], _h.receiver == receiver)
        return await self._made(query.order_by(_h.number.desc()).limit(limit))

    async def one(self, message: str) -> HookRow | None:
        """The message with this id."""
        found = await self._asks.made(t.HOOK.query.where(_h.message == message), t.HOOK.make)
        return found[0] if found else None

    async def receivers(self) -> list[ReceiverRow]:
        """How the receivers are doing of which something is known."""
        return await self._asks.made(t.RECEIVER.query.order_by(t.receivers.c.receiver), t.RECEIVER.make)

    async def _made(self, query: Select[*tuple[Any, ...]]) -> list[StoredHook]:
        return [StoredHook(int(row[-1]), t.HOOK.make(row)) for row in await self._asks.all(query)]


class Hooks(HookReads, Writing):
    """All of it, for the node that writes."""

    async def put(self, rows: Sequence[HookRow]) -> None:
        """Promises: these will be sent. What is stored already stays as it is."""
        if rows:
            await self._writer.submit(PutHooks(tuple(rows)))

    async def settle(self, rows: Sequence[HookRow], receivers: Sequence[ReceiverRow] = ()) -> None:
        """Promises: this became of these messages, and this is how their receivers are doing."""
        await self._writer.submit(SettleHooks(tuple(rows), tuple(receivers)))
