"""What pays a turn's calls holds nothing for a call that is not made, whenever the turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agent_core.driver.spending import PaidTurn, Spender
from agent_core.limits.budgets import Amount, BudgetRules, Level, Payer, Reached
from agent_core.limits.spend import Budget
from tests.store.support import FakeClock, opened, session_of

RULES = BudgetRules(limits={Budget.DAY: Amount(1_000)}, assumed_output_tokens=100)


async def nobody_told(_: Reached) -> None:
    """Nobody is warned."""


@pytest.mark.parametrize("late", [False, True], ids=["while it is stored", "just as it is stored"])
async def test_what_was_held_when_its_turn_ended_is_let_go(
    where: str, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    async with opened(where) as store:
        session, epoch = await session_of(store)
        plain: Callable[..., Any] = store.budgets.reserve
        calls: list[asyncio.Task[Any]] = []

        async def reserve(*given: Any) -> Any:
            if not late:
                calls[0].cancel()
            granted = await plain(*given)
            if late:  # before whoever waits is woken by the answer
                asyncio.get_running_loop().call_soon(calls[0].cancel)
            return granted

        monkeypatch.setattr(store.budgets, "reserve", reserve)
        async with Spender(store, RULES, FakeClock()) as spender:
            account = PaidTurn("t", session, epoch, Payer("me", ""), nobody_told)
            calls.append(asyncio.create_task(spender.reserve(account, "1", "m", 50, 100)))
            with pytest.raises(asyncio.CancelledError):
                await calls[0]
        keys = [pot.key for pot in RULES.pots(Payer("me", ""), "t", FakeClock().now_ms())]
        levels = await store.budgets.levels(keys)
        assert [one.held for one in levels.values()] == [Level().held] * len(levels)
