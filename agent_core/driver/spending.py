"""Paying for model calls: a hold before each, the truth after it. What that means is decided in `budgets`; here it is done.

Order of things: a call begins only when its hold is committed; its end is told to the turn when it is settled, or, while the
storage is away, as soon as that is known, and then it is settled later. Both are done in tasks of the `Spender`, so that a turn
that is cancelled in between leaves nothing held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import structlog

from agent_core.limits.budgets import (
    FREE,
    Amount,
    BudgetRefused,
    BudgetRules,
    CallSpent,
    Granted,
    Payer,
    Pot,
    Price,
    Reached,
    Used,
    expected,
    used,
)
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import BUDGET
from agent_core.signals import SpendStopped, Spent, Tell, nobody
from agent_core.store.store import Conflict, Damaged, Fenced, StorageUnavailable, Store, StoreError
from agent_core.tools.base import NotPaid
from agent_core.turn.events import (
    CallBroke,
    Event,
    ReasoningArrived,
    ReplyFinished,
    SpendRefused,
    TextArrived,
    ToolArgumentsArrived,
)

log = structlog.get_logger("budget")

SETTLE_PATIENCE_SECONDS = 2.0
"""How long a turn waits for its call to be settled; then it goes on, and the settling with it."""

T = TypeVar("T")
Sink = Callable[[Sequence[Event]], None]
Ending = ReplyFinished | CallBroke
Warned = Callable[[Reached], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PaidTurn:
    """Whose calls are paid for, and under which ownership that is written."""

    turn: str
    session: str
    epoch: int
    payer: Payer
    warned: Warned
    """Told once a window of each pot of which its owner is to be warned."""


@dataclass(frozen=True, slots=True)
class Bill:
    """A call that something is held for."""

    call: str
    model: str
    account: PaidTurn
    pots: tuple[Pot, ...]
    prompt_tokens: int
    price: Price
    seconds: float = 0.0
    """Of sound, as far as is known before the call."""


class Spending(Protocol):
    """What a turn's model calls are paid by."""

    async def ask(
        self,
        name: str,
        model: str,
        prompt_tokens: int,
        output_limit: int,
        listen: Callable[[Sink], Awaitable[Ending]],
        sink: Sink,
    ) -> Ending | SpendRefused:
        """Make a call by `listen`, if there is room for it. `name` is unique in the turn; an `output_limit` of 0 is none."""
        ...

    async def pay(
        self, kind: str, model: str, most: CallSpent, call: Callable[[], Awaitable[tuple[T, CallSpent]]]
    ) -> T:
        """As `Purse.pay`."""
        ...


class Spender:
    """Use it as an async context manager: when it is left, what could be settled is. The turns must be over by then."""

    def __init__(self, store: Store, rules: BudgetRules, clock: Clock, tell: Tell = nobody) -> None:
        self.rules = rules
        self.tell = tell
        self._store = store
        self._clock = clock
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unpriced: set[str] = set()

    async def __aenter__(self) -> Spender:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=SETTLE_PATIENCE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def now_ms(self) -> int:
        """The time that budgets are counted by."""
        return self._clock.now_ms()

    def of(self, account: PaidTurn) -> Spending:
        """What the calls of one turn are paid by."""
        return _TurnSpending(self, account)

    # ------------------------------------------------------------------ before a call

    async def reserve(
        self, account: PaidTurn, name: str, model: str, prompt_tokens: int, output_limit: int, seconds: float = 0.0
    ) -> Bill | BudgetRefused:
        """Hold what a call may use; waits as long as nothing can be stored. Raises Damaged, Fenced."""
        rules = self.rules
        now = self._clock.now_ms()
        bill = Bill(
            call=f"{account.turn}:{account.epoch}:{name}",
            model=model,
            account=account,
            pots=rules.pots(account.payer, account.turn, now),
            prompt_tokens=prompt_tokens,
            price=self._price(model),
            seconds=seconds,
        )
        amount = expected(prompt_tokens, output_limit or rules.assumed_output_tokens, bill.price, seconds)
        outcome: asyncio.Future[Granted | BudgetRefused] = asyncio.get_running_loop().create_future()
        self._begin(self._reserve(bill, amount, now, outcome), f"reserve {bill.call}")
        try:
            granted = await outcome
        except asyncio.CancelledError:
            if not outcome.cancelled():  # it was held just then, and whoever held it takes it for told
                self._begin(self._settle(bill, Used(Amount())), f"settle {bill.call}")
            raise
        return granted if isinstance(granted, BudgetRefused) else bill

    async def _reserve(
        self, bill: Bill, amount: Amount, now: int, outcome: asyncio.Future[Granted | BudgetRefused]
    ) -> None:
        account = bill.account
        attempt = 0
        while not outcome.done():
            attempt += 1
            try:
                answer = await self._store.budgets.reserve(
                    account.session, account.epoch, bill.call, amount, bill.pots, now
                )
            except Damaged as error:  # waiting does not help
                _fail(outcome, error)
                return
            except StorageUnavailable as error:
                log.warning("budget.not_reserved", call=bill.call, error=str(error))
                await asyncio.sleep(BUDGET.seconds(attempt))
            except StoreError as error:
                _fail(outcome, error)
                return
            except Exception as error:  # a mistake of ours: whoever waits hears of that as well
                _fail(outcome, error)
                raise
            else:
                if not outcome.done():
                    outcome.set_result(answer)
                    return
        # The turn was ended meanwhile, or does not wait any longer; but it may be held by now.
        await self._settle(bill, Used(Amount()))

    def _price(self, model: str) -> Price:
        price = self.rules.price_of(model)
        if price is None and self.rules.prices and model not in self._unpriced:
            self._unpriced.add(model)
            log.warning("budget.no_price", model=model, counted="tokens only")
        return price or FREE

    # ------------------------------------------------------------------ after a call

    async def settle(self, bill: Bill, told: CallSpent) -> None:
        """Let go what was held, and note what was used. Comes back when that is stored, or the storage is away."""
        what = used(told, bill.prompt_tokens, bill.price, bill.seconds)
        task = self._begin(self._settle(bill, what), f"settle {bill.call}")
        await asyncio.wait([task], timeout=SETTLE_PATIENCE_SECONDS)

    async def _settle(self, bill: Bill, what: Used) -> None:
        account, attempt = bill.account, 0
        while True:
            attempt += 1
            try:
                settled = await self._store.budgets.settle(
                    account.session, account.epoch, bill.call, what.amount, bill.pots, self._clock.now_ms(),
                    estimated=what.estimated,
                )  # fmt: skip
            except StorageUnavailable as error:
                log.warning("budget.not_settled", call=bill.call, error=str(error))
                if isinstance(error, Damaged):
                    return  # it counts as held, until a start that can write it
                await asyncio.sleep(BUDGET.seconds(attempt))
            except (Fenced, Conflict) as error:  # taken over, and so settled by others; or it was never held
                log.info("budget.not_held", call=bill.call, error=str(error))
                return
            else:
                break
        if what.amount != Amount():
            amount = what.amount
            self.tell(Spent(model=bill.model, tokens=amount.tokens, nanos=amount.nanos, estimated=what.estimated))
        for reached in settled.warnings:
            await self._warn(account, reached)

    async def _warn(self, account: PaidTurn, reached: Reached) -> None:
        pot, measure = reached.pot, reached.measure
        log.warning(
            "budget.warning",
            budget=pot.budget.value,
            scope=pot.scope,
            measure=measure.value,
            limit=pot.limit.of(measure),
            used=reached.level.spent.of(measure),
            turn=account.turn,
        )
        try:
            await account.warned(reached)
        except StoreError as error:
            log.warning("budget.warning_not_shown", scope=pot.scope, error=str(error))

    def _begin(self, work: Awaitable[None], name: str) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("budget.failed", work=name)

        task = self._group.create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _fail(outcome: asyncio.Future[Granted | BudgetRefused], error: Exception) -> None:
    if not outcome.done():
        outcome.set_exception(error)


class _TurnSpending:
    """Implements `Spending` for one turn."""

    def __init__(self, spender: Spender, account: PaidTurn) -> None:
        self._spender = spender
        self._account = account
        self._paid = 0

    async def pay(
        self, kind: str, model: str, most: CallSpent, call: Callable[[], Awaitable[tuple[T, CallSpent]]]
    ) -> T:
        spender = self._spender
        self._paid += 1
        name, output = f"{kind}:{self._paid}", max(1, most.output_tokens)
        bill = await spender.reserve(self._account, name, model, most.input_tokens, output, most.seconds)
        if isinstance(bill, BudgetRefused):
            raise NotPaid(self._refused(bill, model).spend)
        told = CallSpent()
        try:
            made, told = await call()
        finally:
            await spender.settle(bill, told)
        return made

    async def ask(
        self,
        name: str,
        model: str,
        prompt_tokens: int,
        output_limit: int,
        listen: Callable[[Sink], Awaitable[Ending]],
        sink: Sink,
    ) -> Ending | SpendRefused:
        spender = self._spender
        bill = await spender.reserve(self._account, name, model, prompt_tokens, output_limit)
        if isinstance(bill, BudgetRefused):
            return self._refused(bill, model)
        seen = 0

        def counted(events: Sequence[Event]) -> None:
            nonlocal seen
            seen += sum(map(_size, events))
            sink(events)

        told: Ending | None = None
        try:
            ending = told = await listen(counted)
        finally:  # also if the turn was stopped: then nobody tells, and it is estimated
            await spender.settle(bill, _told(told, seen))
        return ending

    def _refused(self, refused: BudgetRefused, model: str) -> SpendRefused:
        spender = self._spender
        now = spender.now_ms()
        spend = spender.rules.spend(refused.reached, now)
        log.warning(
            "budget.refused",
            turn=self._account.turn,
            budget=spend.budget.value,
            scope=refused.reached.pot.scope,
            measure=spend.measure.value,
            limit=spend.limit,
            used=spend.used,
            held=spend.held,
            model=model,
        )
        spender.tell(SpendStopped(budget=spend.budget.value, measure=spend.measure.value))
        return SpendRefused(at=now, spend=spend)


def _size(event: Event) -> int:
    match event:
        case TextArrived(text=text) | ReasoningArrived(text=text) | ToolArgumentsArrived(text=text):
            return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        case _:
            return 0


def _told(ending: Ending | None, seen: int) -> CallSpent:
    if ending is None:
        return CallSpent(seen_bytes=seen)
    return CallSpent(
        cause=ending.cause if isinstance(ending, CallBroke) else None,
        input_tokens=ending.input_tokens,
        output_tokens=ending.output_tokens,
        cached_tokens=ending.cached_tokens,
        seen_bytes=seen,
    )
