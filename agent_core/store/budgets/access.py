"""What can be asked of budgets, and what can be written."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent_core.limits.budgets import Amount, BudgetRefused, Granted, Level, Pot, Settled
from agent_core.store import tables as t
from agent_core.store.budgets.ops import Reserve, Settle
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.keys import among
from agent_core.store.database.node import Writing


class BudgetReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def levels(self, pots: Collection[tuple[str, int]]) -> dict[tuple[str, int], Level]:
        """How full these pots are, by (scope, window); those that nothing was put into are missing."""
        if not pots:
            return {}
        these = among((t.budgets.c.scope, t.budgets.c.window), sorted(pots))
        found = await self._asks.made(t.POT.query.where(these), t.POT.make)
        return {(pot.scope, pot.window): pot.level for pot in found}


class Budgets(BudgetReads, Writing):
    """All of it, for the node that writes."""

    async def reserve(
        self, session: str, epoch: int, call: str, amount: Amount, pots: Sequence[Pot], at: int
    ) -> Granted | BudgetRefused:
        """Promises: `amount` is held for `call` in all `pots`, or, if one of them is full, in none; only now may the model be called."""
        return await self._writer.submit(Reserve(session, epoch, call, amount, tuple(pots), at))

    async def settle(
        self, session: str, epoch: int, call: str, used: Amount, pots: Sequence[Pot], at: int, *, estimated: bool
    ) -> Settled:
        """Promises: nothing is held for `call` any more, and what it used is spent. Raises Fenced if it is settled otherwise already."""
        return await self._writer.submit(Settle(session, epoch, call, used, estimated, tuple(pots), at))
