"""What may be removed, and when: whatever is needed stays, and a clock that jumps removes nothing."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.limits.retention import (
    DAY_MS,
    MOST_SECONDS,
    SessionAge,
    cutoff,
    needed,
    next_size,
)

NOW = 1_700_000_000_000
DAYS = st.integers(1, 4000)


@example(4, 5, 5, 0, 1, False)
@example(4, 4, 4, 0, 1, False)
@example(0, 0, 1, 1, 1, False)
@example(0, 0, 1, 2, 1, False)
@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 500), st.integers(0, 800), DAYS, st.booleans())
def test_what_a_conversation_that_goes_on_is_told_stays_however_old_it_is(
    since: int, first: int, number: int, idle_days: int, kept_days: int, undone: bool
) -> None:
    before = cutoff(NOW, kept_days)
    assert before is not None
    one = SessionAge(NOW - idle_days * DAY_MS, since, first)
    told = number > since and number >= first and not undone
    assert needed(one, number, before, undone=undone) == (told and idle_days <= kept_days)


@given(st.integers(1, 200), st.integers(366, 3000))
def test_who_comes_back_after_a_year_begins_anew(number: int, idle_days: int) -> None:
    before = cutoff(NOW, 365)
    assert before is not None
    assert not needed(SessionAge(NOW - idle_days * DAY_MS, 0, 0), number, before, undone=False)


def test_nothing_is_old_that_is_kept_for_ever() -> None:
    assert cutoff(NOW, 0) is None


@given(st.integers(1, 1000), st.floats(0, 10, allow_nan=False), st.integers(1, 1000))
def test_the_next_batch_is_smaller_after_a_slow_one_and_never_none(size: int, seconds: float, most: int) -> None:
    after = next_size(size, seconds, most)
    assert after >= 1
    if seconds > MOST_SECONDS:
        assert after <= max(1, size // 2)
    else:
        assert after <= max(size, most)
