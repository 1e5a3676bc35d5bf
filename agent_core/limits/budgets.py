"""Budgets: what model calls may use, reserved before each call and settled after it. Pure.

Theory. A *pot* is one budget in one of its windows: a person's day, everybody's month, one turn. Each model call counts for
several pots at once. Before the call, what it is expected to use is held in all of them; afterwards the hold is let go and
what was really used is added to what is spent. A call is let through if in every pot that has a limit what is spent and held
is still below the limit: so a limit can be used up to its end, and is passed by no more than what was let through last and what
the calls under way use beyond what they were expected to.

Money is counted in billionths of the currency, as whole numbers, so that sums do not depend on their order.

Laws (tests/agent_core/test_budgets.py): what is spent and held is passed by at most one hold; neither is ever negative; a call
that is refused changes nothing; the order in which calls are settled does not matter; every moment lies in exactly one
window, and windows follow each other without a gap, also where clocks are changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from fnmatch import fnmatchcase
from math import ceil
from typing import assert_never

from agent_core.causes import BreakCause
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.records import dataclass

NANOS = 1_000_000_000
"""Units of a currency in one of it."""
BYTES_A_TOKEN = 3.6
HOUR_MS = 3_600_000

UNPAID = frozenset(
    {
        BreakCause.UNREACHABLE,
        BreakCause.CONNECTION_REFUSED,
        BreakCause.UNKNOWN_NAME,
        BreakCause.BAD_CERTIFICATE,
        BreakCause.NOT_TLS,
        BreakCause.WANTS_TLS,
        BreakCause.NOT_CONNECTED,
        BreakCause.REGION,
        BreakCause.NO_ROUTE,
        BreakCause.BY_PROXY,
        BreakCause.RATE_LIMITED,
        BreakCause.SERVER_ERROR,
        BreakCause.UNAUTHORISED,
        BreakCause.FORBIDDEN,
        BreakCause.PAYMENT_REQUIRED,
        BreakCause.NOT_FOUND,
        BreakCause.BAD_REQUEST,
        BreakCause.CONTEXT_OVERFLOW,
        BreakCause.TOO_LARGE,
    }
)
"""The provider refused, or never got it: nothing is used, unless content had come or it says otherwise."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, and what they cost in billionths of the currency."""

    tokens: int = 0
    nanos: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.tokens + other.tokens, self.nanos + other.nanos)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.tokens - other.tokens, self.nanos - other.nanos)

    def of(self, measure: Measure) -> int:
        match measure:
            case Measure.TOKENS:
                return self.tokens
            case Measure.MONEY:
                return self.nanos
            case _:
                assert_never(measure)


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost: millionths of the currency for a million tokens, which is billionths for a thousand."""

    input: int
    output: int
    cached: int
    """Input that the provider had in its cache."""
    minute: int = 0
    """A minute of sound that is heard or spoken: billionths of the currency."""

    def nanos(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> int:
        """The cost, rounded up."""
        cached = min(cached_tokens, input_tokens)
        thousandths = (input_tokens - cached) * self.input + cached * self.cached + output_tokens * self.output
        return -(-thousandths // 1000)

    def sound(self, seconds: float) -> int:
        """What sound of this length costs, rounded up."""
        return -(-self.minute * ceil(seconds) // 60)


FREE = Price(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Payer:
    """For whom a turn's calls are counted. Empty: for nobody of that kind."""

    person: str
    chat: str
    key: str = ""
    agent: str = ""
    limits: Mapping[Budget, Amount] = field(default_factory=dict[Budget, Amount])
    """Of its key and its agent, instead of those that are configured for all."""


@dataclass(frozen=True, slots=True)
class Pot:
    """A budget in one of its windows, and its limits."""

    budget: Budget
    scope: str
    """Whose it is: different budgets and owners never have the same."""
    window: int = 0
    """When its window began, ms; 0 for a turn, which has none."""
    until: int = 0
    """When its window ends, ms; 0: never."""
    limit: Amount = Amount()
    """0: no limit."""
    warn: Amount = Amount()
    """From which amount on its owner is warned; 0: never."""

    @property
    def key(self) -> tuple[str, int]:
        return (self.scope, self.window)


@dataclass(frozen=True, slots=True)
class Level:
    """How full a pot is."""

    spent: Amount = Amount()
    held: Amount = Amount()
    """Reserved for calls under way."""
    estimated: Amount = Amount()
    """Of what is spent: what providers did not tell, and was estimated."""
    calls: int = 0
    warned: bool = False

    def reserved(self, amount: Amount) -> Level:
        """With a call more under way."""
        return replace(self, held=self.held + amount)

    def settled(self, held: Amount, used: Amount, *, estimated: bool) -> Level:
        """With a call over for which `held` was reserved."""
        guess = used if estimated else Amount()
        return replace(
            self,
            held=self.held - held,
            spent=self.spent + used,
            estimated=self.estimated + guess,
            calls=self.calls + 1,
        )


@dataclass(frozen=True, slots=True)
class Reached:
    """A pot that is full, or that its owner is to be warned about; by which measure, and how full."""

    pot: Pot
    measure: Measure
    level: Level


@dataclass(frozen=True, slots=True)
class Granted:
    """The call may be made; what it is expected to use is held."""


@dataclass(frozen=True, slots=True)
class BudgetRefused:
    """The call must not be made; nothing is held."""

    reached: Reached


@dataclass(frozen=True, slots=True)
class Settled:
    """The call is paid for; these pots have just come to the point of which one is warned."""

    warnings: tuple[Reached, ...] = ()


def full(pot: Pot, level: Level) -> Reached | None:
    """A pot that has no room for another call."""
    for measure in Measure:
        limit = pot.limit.of(measure)
        if limit and (level.spent + level.held).of(measure) >= limit:
            return Reached(pot, measure, level)
    return None


def refusal(pots: Sequence[tuple[Pot, Level]]) -> BudgetRefused | None:
    """Why a call must not be made: of the pots that are full, the one that opens last; None if there is room in all."""
    found = [reached for pot, level in pots if (reached := full(pot, level)) is not None]
    return BudgetRefused(max(found, key=lambda reached: reached.pot.until)) if found else None


def warning(pot: Pot, level: Level) -> Reached | None:
    """A pot whose owner is to be warned now. Once it is, `Level.warned` is set."""
    if level.warned:
        return None
    for measure in Measure:
        share = pot.warn.of(measure)
        if share and level.spent.of(measure) >= share:
            return Reached(pot, measure, level)
    return None


# ------------------------------------------------------------------ what a call uses


@dataclass(frozen=True, slots=True)
class Used:
    """What a call used."""

    amount: Amount
    estimated: bool = False
    """The provider did not tell."""


@dataclass(frozen=True, slots=True)
class CallSpent:
    """What is known of a call that is over."""

    cause: BreakCause | None = None
    """Why it broke; None if it did not."""
    input_tokens: int = 0
    """As the provider told it; 0 if it did not."""
    output_tokens: int = 0
    cached_tokens: int = 0
    seen_bytes: int = 0
    """Of content that came."""
    seconds: float = 0.0
    """Of sound that was heard or spoken; of a call that is still to be made: that may be."""


def expected(prompt_tokens: int, output_tokens: int, price: Price, seconds: float = 0.0) -> Amount:
    """What a call may use: its prompt, and a reply of full length; of sound so many `seconds`."""
    nanos = price.nanos(prompt_tokens, output_tokens) + price.sound(seconds)
    return Amount(prompt_tokens + output_tokens, nanos)


def used(told: CallSpent, prompt_tokens: int, price: Price, seconds: float = 0.0) -> Used:
    """What a call used: as the provider told it, else estimated from its prompt (of sound: from its `seconds`) and from what was seen of its reply."""
    if told.input_tokens or told.output_tokens:
        nanos = price.nanos(told.input_tokens, told.output_tokens, told.cached_tokens) + price.sound(seconds)
        return Used(Amount(told.input_tokens + told.output_tokens, nanos))
    if told.cause in UNPAID and not told.seen_bytes:
        return Used(Amount())
    output = -(-told.seen_bytes // BYTES_A_TOKEN)
    return Used(expected(prompt_tokens, int(output), price, told.seconds or seconds), estimated=True)


# ------------------------------------------------------------------ windows


def window(budget: Budget, at: int, zone: tzinfo) -> tuple[int, int]:
    """The window of `budget` that `at` (ms) lies in, as (start, end) in ms; (0, 0) for a turn, which has none.

    Days and months are those of `zone`, so a day may have 23 or 25 hours. Hours are those of UTC, because where clocks are
    set back an hour of the day comes twice.
    """
    match budget:
        case Budget.TURN:
            return 0, 0
        case Budget.HOUR:
            start = at - at % HOUR_MS
            return start, start + HOUR_MS
        case Budget.PERSON | Budget.CHAT | Budget.KEY | Budget.AGENT | Budget.DAY:
            day = _local_day(at, zone)
            return _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
        case Budget.MONTH:
            first = _local_day(at, zone).replace(day=1)
            return _midnight(first, zone), _midnight((first + timedelta(days=31)).replace(day=1), zone)
        case _:
            assert_never(budget)


def _local_day(at: int, zone: tzinfo) -> datetime:
    """The day that `at` lies in, as a naive midnight.

    Not simply the local date: where clocks are set back over midnight, a date comes back after the next one has begun.
    """
    local = datetime.fromtimestamp(at // 1000, zone).replace(tzinfo=None, hour=0, minute=0, second=0, fold=0)
    following = local + timedelta(days=1)
    return following if _midnight(following, zone) <= at else local


def _midnight(day: datetime, zone: tzinfo) -> int:
    """When `day` begins, ms: the first of two midnights; where there is none, the moment at which the clocks jump over it."""
    return round(day.replace(tzinfo=zone, fold=0).astimezone(UTC).timestamp() * 1000)


def moment_words(at: int, zone: tzinfo, name: str) -> str:
    """A moment to the minute: 2026-11-04 00:00 UTC."""
    return f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d %H:%M} {name}"


# ------------------------------------------------------------------ the rules of an installation


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """What the configuration says about budgets."""

    limits: Mapping[Budget, Amount] = field(default_factory=dict[Budget, Amount])
    prices: tuple[tuple[str, Price], ...] = ()
    """(pattern of a model's name, price); the first that fits counts."""
    currency: str = "USD"
    warn_share: float = 0.8
    assumed_output_tokens: int = 4_000
    """Held for a reply that nobody has limited."""
    zone: tzinfo = UTC
    zone_name: str = "UTC"

    @property
    def active(self) -> bool:
        """There is something to count."""
        return bool(self.limits or self.prices)

    def price_of(self, model: str) -> Price | None:
        """What a model costs; None if nobody said."""
        return next((price for pattern, price in self.prices if fnmatchcase(model, pattern)), None)

    def pots(self, payer: Payer, turn: str, at: int) -> tuple[Pot, ...]:
        """The pots that a call at `at` counts for. The day's, and one's of whatever owner, are counted also without a limit."""
        owners = {
            Budget.TURN: turn,
            Budget.PERSON: payer.person,
            Budget.CHAT: payer.chat,
            Budget.KEY: payer.key,
            Budget.AGENT: payer.agent,
            Budget.HOUR: "all",
            Budget.DAY: "all",
            Budget.MONTH: "all",
        }
        limits = {**self.limits, **payer.limits}
        counted = {Budget.PERSON, Budget.CHAT, Budget.KEY, Budget.AGENT, Budget.DAY, *limits}
        return tuple(
            self._pot(budget, owner, at, limits.get(budget, Amount()))
            for budget, owner in owners.items()
            if owner and budget in counted
        )

    def _pot(self, budget: Budget, owner: str, at: int, limit: Amount) -> Pot:
        start, end = window(budget, at, self.zone)
        # A turn cannot do anything about a warning, and its person not either.
        share = self.warn_share if budget is not Budget.TURN else 0
        warn = Amount(-int(-limit.tokens * share // 1), -int(-limit.nanos * share // 1))
        return Pot(budget, f"{budget.value}:{owner}", start, end, limit, warn)

    def spend(self, reached: Reached, now: int) -> Spend:
        """How a pot stands, for words to a person."""
        pot, measure, level = reached.pot, reached.measure, reached.level
        return Spend(
            budget=pot.budget,
            measure=measure,
            limit=pot.limit.of(measure),
            used=level.spent.of(measure),
            held=level.held.of(measure),
            currency=self.currency if measure is Measure.MONEY else "",
            opens=moment_words(pot.until, self.zone, self.zone_name) if pot.until else "",
            opens_in_seconds=max(0, -(-(pot.until - now) // 1000)) if pot.until else 0,
        )
