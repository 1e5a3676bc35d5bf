"""Budgets: never overrun by more than the calls under way, whatever the order; windows without gaps, wherever clocks change."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.limits.budgets import (
    FREE,
    NANOS,
    Amount,
    BudgetRules,
    CallSpent,
    Level,
    Payer,
    Pot,
    Price,
    Reached,
    expected,
    refusal,
    used,
    warning,
    window,
)
from agent_core.limits.spend import Budget, Measure

amounts = st.builds(Amount, st.integers(0, 300), st.integers(0, 300))
limits = st.builds(Amount, st.integers(0, 1_000), st.integers(0, 1_000))
ZONES = [
    ZoneInfo(name)
    for name in (
        "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Asia/Kolkata",
        "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Asia/Tehran", "Antarctica/Troll",
    )
]  # fmt: skip
zones = st.sampled_from(ZONES)
moments = st.integers(946_684_800_000, 2_208_988_800_000)  # 2000 to 2040
WINDOWED = [budget for budget in Budget if budget is not Budget.TURN]


class Purse:
    """Some pots, as the store keeps them."""

    def __init__(self, pots: list[Pot]) -> None:
        self.levels = {pot: Level() for pot in pots}

    def reserve(self, amount: Amount) -> bool:
        if refusal(list(self.levels.items())) is not None:
            return False
        self.levels = {pot: level.reserved(amount) for pot, level in self.levels.items()}
        return True

    def settle(self, held: Amount, what: Amount) -> None:
        self.levels = {pot: level.settled(held, what, estimated=False) for pot, level in self.levels.items()}


def pots_of(each: list[Amount]) -> list[Pot]:
    return [Pot(Budget.DAY, f"p{number}", limit=limit) for number, limit in enumerate(each)]


@given(st.lists(limits, min_size=1, max_size=3), st.lists(amounts, max_size=40), st.data())
def test_no_pot_is_overrun_by_more_than_one_hold_however_many_calls_are_under_way(
    each: list[Amount], asked: list[Amount], data: st.DataObject
) -> None:
    purse = Purse(pots_of(each))
    running: list[Amount] = []
    largest = Amount()
    for amount in asked:
        before = dict(purse.levels)
        if purse.reserve(amount):
            running.append(amount)
            largest = Amount(max(largest.tokens, amount.tokens), max(largest.nanos, amount.nanos))
        else:
            assert purse.levels == before, "a refused call changed something"
        if running and data.draw(st.booleans()):
            held = running.pop(data.draw(st.integers(0, len(running) - 1)))
            purse.settle(held, held)
        for pot, level in purse.levels.items():
            assert level.held == sum(running, Amount())
            assert min(level.held.tokens, level.held.nanos, level.spent.tokens, level.spent.nanos) >= 0
            for measure in Measure:
                if pot.limit.of(measure):
                    over = (level.spent + level.held).of(measure) - pot.limit.of(measure)
                    assert over < max(1, largest.of(measure))


@given(st.lists(st.tuples(amounts, amounts), max_size=30), st.randoms(use_true_random=False))
def test_the_order_in_which_calls_are_settled_does_not_matter(
    calls: list[tuple[Amount, Amount]], chance: random.Random
) -> None:
    def after(order: list[tuple[Amount, Amount]]) -> Level:
        level = Level()
        for held, _ in calls:
            level = level.reserved(held)
        for held, what in order:
            level = level.settled(held, what, estimated=what.tokens % 2 == 0)
        return level

    shuffled = list(calls)
    chance.shuffle(shuffled)
    level = after(calls)
    assert after(shuffled) == level
    assert level.held == Amount()
    assert level.spent == sum((what for _, what in calls), Amount())
    assert level.calls == len(calls)


@given(limits, st.lists(amounts, max_size=30), st.floats(0.1, 1))
def test_a_warning_comes_once_and_not_before_its_share_is_used(
    limit: Amount, calls: list[Amount], share: float
) -> None:
    rules = BudgetRules(limits={Budget.DAY: limit}, warn_share=share)
    pot = next(pot for pot in rules.pots(Payer("me", ""), "t", 0) if pot.budget is Budget.DAY)
    level, warned = Level(), 0
    for what in calls:
        level = level.reserved(what).settled(what, what, estimated=False)
        reached = warning(pot, level)
        above = any(limit.of(m) and level.spent.of(m) >= limit.of(m) * share for m in Measure)
        assert above == (reached is not None or level.warned)
        if reached is not None:
            warned += 1
            level = replace(level, warned=True)
    assert warned <= 1


@given(st.sampled_from(WINDOWED), zones, moments)
def test_every_moment_lies_in_one_window_and_windows_follow_without_a_gap(
    budget: Budget, zone: ZoneInfo, at: int
) -> None:
    start, end = window(budget, at, zone)
    assert start <= at < end
    assert window(budget, start, zone) == (start, end)
    assert window(budget, end - 1, zone) == (start, end)
    assert window(budget, end, zone)[0] == end
    assert window(budget, start - 1, zone)[1] == start


@given(zones, moments)
def test_a_day_begins_at_midnight_or_where_the_clocks_jump_over_it(zone: ZoneInfo, at: int) -> None:
    start, end = window(Budget.DAY, at, zone)
    begins = datetime.fromtimestamp(start / 1000, zone)
    before = datetime.fromtimestamp((start - 1000) / 1000, zone)
    assert begins.date() > before.date() or begins.hour == 0
    assert (begins.hour, begins.minute) == (0, 0) or before.date() < begins.date()
    assert 0 < end - start <= 26 * 3_600_000


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/Sao_Paulo", "2018-11-04", 23),  # midnight itself is jumped over
        ("America/Havana", "2026-11-01", 25),  # midnight comes twice
        ("UTC", "2026-10-25", 24),
    ],
)
def test_days_on_which_clocks_change_have_another_length(zone: str, day: str, hours: int) -> None:
    noon = datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=ZoneInfo(zone))
    start, end = window(Budget.DAY, round(noon.timestamp() * 1000), ZoneInfo(zone))
    assert (end - start) / 3_600_000 == hours


def test_a_turn_has_no_window_and_a_month_ends_with_its_last_day() -> None:
    at = round(datetime(2028, 2, 29, 23, 59, tzinfo=UTC).timestamp() * 1000)
    assert window(Budget.TURN, at, UTC) == (0, 0)
    assert window(Budget.MONTH, at, UTC)[1] == at + 60_000


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_prices_are_counted_to_the_billionth_and_never_rounded_down(given: int, said: int, cached: int) -> None:
    price = Price(1_250_000, 10_000_000, 125_000)
    cached = min(cached, given)
    exact = ((given - cached) * 1.25 + said * 10 + cached * 0.125) / 1e6 * NANOS
    assert -1e-3 <= price.nanos(given, said, cached) - exact < 1 + 1e-3
    assert price.nanos(1_000_000, 0) == 1_250_000_000


PRICE = Price(1_000_000, 2_000_000, 100_000)


def test_what_the_provider_tells_is_what_counts() -> None:
    told = used(CallSpent(input_tokens=1000, output_tokens=100, cached_tokens=400, seen_bytes=9), 5_000, PRICE)
    assert told.amount == Amount(1_100, 600_000 + 40_000 + 200_000)
    assert not told.estimated


def test_without_usage_it_is_estimated_and_said_to_be() -> None:
    guess = used(CallSpent(seen_bytes=36), 100, FREE)
    assert (guess.amount.tokens, guess.estimated) == (110, True)
    broken = used(CallSpent(cause=BreakCause.STALLED, seen_bytes=36), 100, FREE)
    assert (broken.amount.tokens, broken.estimated) == (110, True)


@pytest.mark.parametrize("cause", [BreakCause.UNREACHABLE, BreakCause.RATE_LIMITED, BreakCause.BAD_REQUEST])
def test_what_the_provider_refused_costs_nothing(cause: BreakCause) -> None:
    assert used(CallSpent(cause=cause), 100, PRICE).amount == Amount()
    assert used(CallSpent(cause=cause, input_tokens=5), 100, PRICE).amount.tokens == 5
    assert used(CallSpent(cause=cause, seen_bytes=36), 100, PRICE).amount.tokens == 110, "it was not refused at once"


def test_a_hold_is_the_prompt_and_a_whole_reply() -> None:
    assert expected(100, 50, PRICE) == Amount(150, 100_000 + 100_000)


def test_of_several_full_pots_the_one_that_opens_last_is_named() -> None:
    early, late = Pot(Budget.HOUR, "h", 0, 100, Amount(5)), Pot(Budget.DAY, "d", 0, 900, Amount(5))
    turn = Pot(Budget.TURN, "t", 0, 0, Amount(5))
    level = Level(spent=Amount(7))
    refused = refusal([(early, level), (late, level), (turn, level)])
    assert refused is not None
    assert refused.reached == Reached(late, Measure.TOKENS, level)


def test_a_call_counts_for_its_turn_person_chat_and_day_and_for_limits_that_are_set() -> None:
    none = BudgetRules(prices=(("*", FREE),))
    assert [pot.scope for pot in none.pots(Payer("p", "c"), "t", 5)] == ["person:p", "chat:c", "day:all"]
    assert [pot.scope for pot in none.pots(Payer("p", ""), "t", 5)] == ["person:p", "day:all"]
    every = BudgetRules(limits={budget: Amount(10) for budget in Budget})
    assert [pot.budget for pot in every.pots(Payer("p", "c", "k", "a"), "t", 5)] == list(Budget)
    assert [pot.warn.tokens for pot in every.pots(Payer("p", "c", "k", "a"), "t", 5)] == [0, *[8] * 7]
    own = Payer("p", "", "k", "a", {Budget.KEY: Amount(3)})
    assert [(pot.scope, pot.limit.tokens) for pot in none.pots(own, "t", 5)] == [
        ("person:p", 0), ("key:k", 3), ("agent:a", 0), ("day:all", 0),
    ]  # fmt: skip


def test_the_first_price_whose_pattern_fits_counts() -> None:
    rules = BudgetRules(prices=(("gpt-5-mini", FREE), ("gpt-5*", PRICE)))
    assert rules.price_of("gpt-5-mini") is FREE
    assert rules.price_of("gpt-5-turbo") is PRICE
    assert rules.price_of("other") is None
