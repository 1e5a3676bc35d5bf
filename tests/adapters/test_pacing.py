"""The laws of the gates."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.pacing import LONGEST_PAUSE_SECONDS, Gate, Rate, RecentRefusals, Urgency, worth_saying

RATES = st.builds(Rate, burst=st.integers(1, 12), interval_ms=st.floats(20, 5_000))
TRIES = st.lists(st.tuples(st.integers(0, 3_000), st.sampled_from(Urgency)), max_size=120)


@given(RATES, TRIES)
def test_no_window_lets_more_through_than_burst_and_rate(rate: Rate, tries: list[tuple[int, Urgency]]) -> None:
    now, gate = 0, Gate.fresh(rate, 0)
    passed: list[int] = []
    for step, urgency in tries:
        now += step
        if gate.wait_ms(urgency, now) == 0:
            gate = gate.passed(now)
            passed.append(now)
    for begin in range(len(passed)):
        for end in range(begin, len(passed)):
            window = passed[end] - passed[begin]
            assert end - begin + 1 <= rate.burst + window / rate.interval_ms + 1e-6


@example(Rate(12, 1_000), [-3_000, 3_000] * 20)
@given(RATES, st.lists(st.integers(-3_000, 3_000), max_size=60))
def test_a_clock_that_goes_back_lets_no_more_through(rate: Rate, steps: list[int]) -> None:
    began = now = furthest = 1_000_000
    gate, passed = Gate.fresh(rate, began), 0
    for step in steps:
        now += step
        furthest = max(furthest, now)
        if gate.wait_ms(Urgency.FINAL, now) == 0:
            gate = gate.passed(now)
            passed += 1
    assert passed <= rate.burst + (furthest - began) / rate.interval_ms + 1e-6


@given(RATES, TRIES)
def test_what_is_more_urgent_never_waits_longer(rate: Rate, tries: list[tuple[int, Urgency]]) -> None:
    now, gate = 0, Gate.fresh(rate, 0)
    for step, urgency in tries:
        now += step
        waits = [gate.wait_ms(u, now) for u in sorted(Urgency)]
        assert waits == sorted(waits, reverse=True)
        if gate.wait_ms(urgency, now) == 0:
            gate = gate.passed(now)


@given(RATES, TRIES)
def test_waiting_as_long_as_it_says_is_enough(rate: Rate, tries: list[tuple[int, Urgency]]) -> None:
    now, gate = 0, Gate.fresh(rate, 0)
    for step, urgency in tries:
        now += step
        now += gate.wait_ms(urgency, now)
        assert gate.wait_ms(urgency, now) <= 1  # a rounding of a millisecond
        gate = gate.passed(now + 1)
        now += 1


@given(RATES, st.lists(st.floats(0.1, 7_000), min_size=1, max_size=5), st.sampled_from(Urgency))
def test_a_closed_gate_stays_closed_for_the_longest_time_it_was_told(
    rate: Rate, pauses: list[float], urgency: Urgency
) -> None:
    gate = Gate.fresh(rate, 0)
    for pause in pauses:
        gate = gate.refused(0, pause)
    until = round(max(pauses) * 1000)
    assert gate.wait_ms(urgency, 0) >= until
    assert gate.wait_ms(urgency, until - 1) >= 1


@given(RATES, st.floats(0.1, 60), st.integers(1, 12))
def test_the_pause_grows_with_each_refusal_of_the_first_that_comes(rate: Rate, told: float, times: int) -> None:
    now, gate, pauses = 0, Gate.fresh(rate, 0), list[int]()
    for _ in range(times):
        gate = gate.refused(now, told)
        pauses.append(gate.closed_until - now)
        now += gate.wait_ms(Urgency.FINAL, now)
        gate = gate.passed(now)
    assert pauses == sorted(pauses)
    assert all(told * 1000 <= pause <= max(told, LONGEST_PAUSE_SECONDS) * 1000 + 1 for pause in pauses)
    assert times < 3 or told > LONGEST_PAUSE_SECONDS / 4 or pauses[2] >= 4 * told * 1000 - 1


@given(RATES, st.floats(0.1, 10), st.integers(0, 3))
def test_what_is_refused_together_or_after_something_got_through_does_not_lengthen_it(
    rate: Rate, told: float, together: int
) -> None:
    gate = Gate.fresh(rate, 0)
    for _ in range(together + 1):
        gate = gate.refused(0, told)
    assert gate.closed_until <= told * 1000 + 1
    now = gate.closed_until
    gate = gate.passed(now).passed(now)
    assert gate.refused(now, told).closed_until <= now + told * 1000 + 1


def test_cosmetics_leave_room_for_what_must_be_seen() -> None:
    gate = Gate.fresh(Rate(burst=4, interval_ms=1_000), 0)
    sent = 0
    while gate.wait_ms(Urgency.COSMETIC, 0) == 0:
        gate, sent = gate.passed(0), sent + 1
    assert sent == 2
    assert gate.wait_ms(Urgency.FINAL, 0) == 0


def test_several_chats_refused_at_once_are_the_whole_bot() -> None:
    one = RecentRefusals().noted("a", 0).noted("a", 10).noted("b", 20)
    assert not one.whole_bot
    assert one.noted("c", 30).whole_bot
    assert not one.noted("c", 10_000).whole_bot


def test_what_goes_on_is_said_whenever_its_number_has_doubled() -> None:
    assert [times for times in range(-2, 70) if worth_saying(times)] == [1, 2, 4, 8, 16, 32, 64]


def test_a_refusal_of_the_first_that_comes_makes_the_pause_longer_and_others_at_the_same_time_do_not() -> None:
    gate = Gate.fresh(Rate(5, 1_000), 0).refused(0, 1.0)
    assert (gate.streak, gate.closed_until) == (1, 1_000)
    same = gate.refused(999, 0.001)
    assert (same.streak, same.closed_until) == (1, 1_000), "it was on its way when the gate was closed"
    second = gate.passed(1_000).refused(1_000, 1.0)
    assert (second.streak, second.closed_until) == (2, 3_000)
    assert gate.passed(1_000).passed(1_000).refused(1_000, 1.0).streak == 1, "something got through in between"
    assert second.passed(9_000).refused(9_000, 60.0).closed_until == 69_000, "what is longer is kept as it is told"


def test_an_account_is_too_fast_when_three_chats_are_refused_within_three_seconds() -> None:
    for apart, whole in ((1_500, True), (1_501, False)):
        noted = RecentRefusals().noted("a", 0).noted("b", apart).noted("c", 2 * apart)
        assert noted.whole_bot is whole
    assert not RecentRefusals().noted("a", 0).noted("b", 1).noted("a", 2).noted("b", 3).whole_bot


def test_who_was_refused_may_send_one_when_the_pause_is_over_and_not_all_that_had_been_left() -> None:
    gate = Gate.fresh(Rate(burst=20, interval_ms=60_000), 0).refused(0, 1.0)
    opens = gate.closed_until
    assert gate.wait_ms(Urgency.FINAL, opens) == 0
    assert gate.passed(opens).wait_ms(Urgency.FINAL, opens) > 0
