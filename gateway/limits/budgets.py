"""Budgets in the gateway: who pays for a message, what people are told of it, and what is not even begun."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.callers import PROXY
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.driver.closing import TurnIdentity
from agent_core.driver.spending import PaidTurn, Spender, Spending
from agent_core.limits.budgets import Amount, BudgetRules, Level, Payer, Pot, Reached, refusal
from agent_core.limits.spend import Budget, Measure, amount_words, opens_words, share_words, spent_words
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import StorageUnavailable, Store
from agent_core.text.tongue import number, sentence, speak
from gateway.limits.rates import KeyMeters
from gateway.limits.standing import AS_CONFIGURED, TurnStanding


@dataclass(frozen=True, slots=True)
class BudgetWarning:
    """Somebody is to be told that a budget is about to be used up. Comes once a window of each budget."""

    inbound: Inbound
    """The message whose call brought it there."""
    session: str
    epoch: int
    reached: Reached
    said: Callable[[], str]
    """In the language of where it is told."""
    origin: str
    """Names the warning; the same budget in the same window always has the same."""


Warn = Callable[[BudgetWarning], Awaitable[None]]


class BudgetBook:
    """What the gateway asks about budgets."""

    def __init__(self, spender: Spender, store: Store, clock: Clock, warn: Warn | None = None) -> None:
        """`warn` tells somebody that a budget is about to be used up."""
        self._spender = spender
        self._store = store
        self._clock = clock
        self._warn = warn
        self.meters = KeyMeters()
        """What is left to keys of their limits."""

    @property
    def rules(self) -> BudgetRules:
        return self._spender.rules

    def spending(self, inbound: Inbound, identity: TurnIdentity, standing: TurnStanding) -> Spending | None:
        """What the calls of a turn are paid by that answers `inbound`; None: nobody counts them."""
        payer = payer_of(inbound, standing)
        if not self.rules.active and not payer.limits:
            return None

        async def warned(reached: Reached) -> None:
            pot = reached.pot
            if self._warn is not None:
                said = partial(warning_words, reached, self.rules, self._clock.now_ms())
                origin = f"budget:{pot.scope}:{pot.window}"
                await self._warn(BudgetWarning(inbound, identity.session, identity.epoch, reached, said, origin))

        account = PaidTurn(identity.turn, identity.session, identity.epoch, payer, warned)
        return self._spender.of(account)

    async def admit(self, inbound: Inbound, standing: TurnStanding) -> None:
        """Raise `NotAccepted` for a request of the API that has no budget left: its client understands an HTTP error best.

        Everybody else gets a turn, which says so in the chat. A request that was accepted before has its answer.
        """
        if inbound.surface != "api" or not (self.rules.limits or standing.days):
            return
        payer = payer_of(inbound, standing)
        now = self._clock.now_ms()
        pots = self.rules.pots(payer, "", now)
        try:
            levels = await self._store.budgets.levels([pot.key for pot in pots])
            self._note(payer, pots, levels)
            refused = refusal([(pot, levels.get(pot.key, Level())) for pot in pots])
            if refused is None or await self._store.inbox.by_key(inbound.account, inbound.platform_key) is not None:
                return
        except StorageUnavailable:
            return  # whether it can be stored is found out next
        spend = self.rules.spend(refused.reached, now)
        words = f"{spent_words(spend)} {opens_words(spend)}"
        raise NotAccepted(words, NotAcceptedCode.QUOTA, spend.opens_in_seconds if spend.used >= spend.limit else 60)

    def _note(self, payer: Payer, pots: Sequence[Pot], levels: Mapping[tuple[str, int], Level]) -> None:
        """Remember what is left to a key of its tokens: its answers say it."""
        for pot in pots:
            if pot.budget is Budget.KEY and pot.limit.tokens:
                level = levels.get(pot.key, Level())
                left = pot.limit.tokens - (level.spent + level.held).tokens
                self.meters.tokens(payer.key, pot.limit.tokens, left, pot.until)

    async def usage(self, inbound: Inbound, standing: TurnStanding = AS_CONFIGURED) -> tuple[str, ...]:
        """How the budgets of a chat and its person stand, a line each."""
        if not self.rules.active and not standing.days:
            return ()
        payer = payer_of(inbound, standing)
        now = self._clock.now_ms()
        pots = self.rules.pots(payer, "", now)
        return usage_lines(pots, await self._store.budgets.levels([pot.key for pot in pots]), self.rules, now)


def payer_of(inbound: Inbound, standing: TurnStanding = AS_CONFIGURED) -> Payer:
    """Who a message's calls are counted for: its person, and its chat without regard to threads.

    The API's person is the client's ``user``; its chat is the session that it names, if it names one.
    """
    if isinstance(inbound, FromChat):
        address = inbound.chat.address
        where = f"{address.platform}/{address.account}"
        person, chat = f"{where}/{inbound.chat.person.id}", f"{where}/{address.chat}"
    else:
        person, chat = inbound.memory_scope, "" if inbound.stateless else inbound.session.text()
    key = "" if standing.key == PROXY else standing.key  # whom a proxy names shares no key with the others
    limits = standing.days
    task = inbound.task if isinstance(inbound, FromApi) else None
    if task is not None and (task.tokens or task.nanos):
        limits = {**limits, Budget.TURN: Amount(task.tokens, task.nanos)}
    return Payer(person, chat, key, standing.name, limits)


def warning_words(reached: Reached, rules: BudgetRules, now: int) -> str:
    """That a budget is about to be used up."""
    spend = rules.spend(reached, now)
    share = spend.used * 100 // spend.limit
    used = share_words(spend.measure, spend.used, spend.limit, spend.currency)
    return speak(
        "ℹ️ {share} % of {name} is used: {used}. It begins anew at {time}.",
        share=share, name=speak(spend.budget.words), used=used, time=spend.opens,
    )  # fmt: skip


_NAMES: Mapping[Budget, str] = {
    Budget.TURN: sentence("This message"),
    Budget.PERSON: sentence("You today"),
    Budget.CHAT: sentence("This chat today"),
    Budget.KEY: sentence("This API key today"),
    Budget.AGENT: sentence("This agent today"),
    Budget.HOUR: sentence("Everybody, this hour"),
    Budget.DAY: sentence("Everybody today"),
    Budget.MONTH: sentence("Everybody, this month"),
}


def usage_lines(
    pots: tuple[Pot, ...], levels: Mapping[tuple[str, int], Level], rules: BudgetRules, now: int
) -> tuple[str, ...]:
    """How pots stand, a line each. Where a provider did not tell what it used, that is said."""
    return tuple(_line(pot, levels.get(pot.key, Level()), rules, now) for pot in pots)


def _line(pot: Pot, level: Level, rules: BudgetRules, now: int) -> str:
    parts = [_measured(pot, level, Measure.TOKENS, rules)]
    if rules.prices:
        parts.append(_measured(pot, level, Measure.MONEY, rules))
    line = f"{speak(_NAMES[pot.budget])}: {', '.join(parts)}"
    if level.held.tokens:
        line += speak("; {count} more held for calls under way", count=number(level.held.tokens))
    if level.estimated.tokens:
        line += speak("; {count} of it estimated", count=number(level.estimated.tokens))
    if pot.limit == Amount() or not pot.until:
        return line
    opens = rules.spend(Reached(pot, Measure.TOKENS, level), now).opens
    return line + speak("; anew at {time}", time=opens)


def _measured(pot: Pot, level: Level, measure: Measure, rules: BudgetRules) -> str:
    spent, limit = level.spent.of(measure), pot.limit.of(measure)
    if not limit:
        return amount_words(measure, spent, rules.currency)
    return f"{share_words(measure, spent, limit, rules.currency)} ({spent * 100 // limit} %)"
