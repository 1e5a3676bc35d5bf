"""What pays a turn's calls holds nothing for a call that is not made, whenever the turn ends; and each call counts for what it used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from typing import Any, cast

import pytest

from agent_core.causes import BreakCause
from agent_core.driver.spending import Bill, Ending, PaidTurn, Sink, Spender
from agent_core.limits.budgets import (
    BYTES_A_TOKEN,
    Amount,
    BudgetRules,
    CallSpent,
    Granted,
    Level,
    Payer,
    Price,
    Reached,
    Settled,
)
from agent_core.limits.spend import Budget
from agent_core.signals import Spent
from agent_core.store.store import Damaged, Fenced, Store
from agent_core.turn.events import CallBroke, ReasoningArrived, TextArrived
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


PRICED = BudgetRules(
    limits={Budget.DAY: Amount(1_000_000, 10**12)},
    assumed_output_tokens=100,
    prices=(("m", Price(0, 0, 0, minute=600)),),
)


async def level_of(store: Store) -> Level:
    """The day's."""
    pots = PRICED.pots(Payer("me", ""), "t", FakeClock().now_ms())
    key = next(pot.key for pot in pots if pot.budget is Budget.DAY)
    return (await store.budgets.levels([key]))[key]


async def test_each_payment_of_a_turn_counts_also_when_another_process_goes_on_with_it(where: str) -> None:
    async def heard() -> tuple[str, CallSpent]:
        return "words", CallSpent(input_tokens=10, output_tokens=7)

    session, level = "", Level()
    for _ in range(2):
        async with opened(where) as store, Spender(store, PRICED, FakeClock()) as spender:
            session = session or (await session_of(store))[0]
            epoch = await store.sessions.claim(session)
            paying = spender.of(PaidTurn("t", session, epoch, Payer("me", ""), nobody_told))
            for _ in range(3):
                assert await paying.pay("voice", "m", CallSpent(input_tokens=10, output_tokens=20), heard) == "words"
            level = await level_of(store)
    assert (level.spent.tokens, level.held) == (2 * 3 * 17, Amount())


async def test_a_call_that_is_stopped_costs_what_came_of_it(where: str) -> None:
    text = "x" * 300

    async def listen(sink: Sink) -> Ending:
        sink([TextArrived(at=1, text=text)])
        came.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with opened(where) as store:
        session, epoch = await session_of(store)
        came = asyncio.Event()
        async with Spender(store, PRICED, FakeClock()) as spender:
            paying = spender.of(PaidTurn("t", session, epoch, Payer("me", ""), nobody_told))
            asked = asyncio.create_task(paying.ask("1", "m", 50, 100, listen, lambda _: None))
            async with asyncio.timeout(20):
                await came.wait()
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
        level = await level_of(store)
    assert (level.spent.tokens, level.held) == (50 + ceil(300 / BYTES_A_TOKEN), Amount())


async def test_the_price_of_sound_is_held_before_it_is_heard(where: str) -> None:
    held: list[Amount] = []

    async def heard() -> tuple[str, CallSpent]:
        held.append((await level_of(store)).held)
        return "words", CallSpent(seconds=30)

    async with opened(where) as store, Spender(store, PRICED, FakeClock()) as spender:
        session, epoch = await session_of(store)
        paying = spender.of(PaidTurn("t", session, epoch, Payer("me", ""), nobody_told))
        await paying.pay("voice", "m", CallSpent(seconds=60), heard)
        level = await level_of(store)
    assert [one.nanos for one in held] == [600]
    assert level.spent.nanos == 300


@pytest.mark.parametrize("text", ["x" * 300, "ü" * 300, "語" * 300, "x\ud800"])
async def test_what_came_is_counted_in_bytes_whatever_it_is_written_in(text: str) -> None:
    seen: list[CallSpent] = []

    class Settling(Spender):
        async def reserve(self, *_: Any, **__: Any) -> Any:
            return None

        async def settle(self, bill: Any, told: CallSpent) -> None:
            seen.append(told)

    async def listen(sink: Sink) -> Ending:
        sink([TextArrived(at=1, text=text), ReasoningArrived(at=1, text="abc")])
        return CallBroke(at=2, cause=BreakCause.STALLED, input_tokens=1, cached_tokens=1)

    spender = Settling(cast("Any", None), PRICED, FakeClock())
    paying = spender.of(PaidTurn("t", "s", 1, Payer("me", ""), nobody_told))
    await paying.ask("1", "m", 50, 100, listen, lambda _: None)
    size = len(text.encode("utf-8", "replace")) + 3
    assert seen == [CallSpent(cause=BreakCause.STALLED, input_tokens=1, cached_tokens=1, seen_bytes=size)]


class Broken:
    """A store whose budgets have a mistake in them; what it is told of the end of each call is noted."""

    def __init__(self, *errors: Exception) -> None:
        self.budgets, self.errors, self.settled = self, [*errors], list[tuple[str, Amount]]()

    async def reserve(self, *_: object) -> Granted:
        if self.errors:
            raise self.errors.pop(0)
        return Granted()

    async def settle(self, _s: str, _e: int, call: str, used: Amount, *_: object, estimated: bool) -> Settled:
        self.settled.append((call, used))
        return Settled()


@pytest.mark.parametrize("error", [Fenced("another's"), Damaged("odd"), KeyError("a mistake of ours")])
async def test_who_can_hold_nothing_hears_of_it_and_waits_for_nothing(error: Exception) -> None:
    store = Broken(error)
    async with Spender(cast("Any", store), PRICED, FakeClock()) as spender:
        account = PaidTurn("t", "s", 7, Payer("me", ""), nobody_told)
        with pytest.raises(type(error)):
            async with asyncio.timeout(10):
                await spender.reserve(account, "1", "m", 50, 100)
        bill = await spender.reserve(account, "2", "m", 50, 100)
        assert isinstance(bill, Bill)
    assert store.settled == []


async def test_what_was_held_for_a_call_that_is_stopped_in_that_moment_is_let_go_and_what_was_paid_is_told() -> None:
    store, told = Broken(), list[object]()
    async with Spender(cast("Any", store), PRICED, FakeClock(), told.append) as spender:
        account = PaidTurn("t", "s", 7, Payer("me", ""), nobody_told)
        asked = asyncio.create_task(spender.reserve(account, "1", "m", 50, 100))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        bill = await spender.reserve(account, "2", "m", 50, 100)
        assert isinstance(bill, Bill)
        await spender.settle(bill, CallSpent(input_tokens=10, output_tokens=7))
    assert sorted(store.settled, key=lambda one: one[0]) == [("t:7:1", Amount()), ("t:7:2", Amount(17))]
    assert told == [Spent(model="m", tokens=17, nanos=0, estimated=False)]
