"""A pause is what was meant, whatever becomes of the wall clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.delivery.aftermath import LONGEST_MS, patience, within
from adapters.delivery.reconcile import BLOCKS_MS
from agent_core.store.deliveries.rows import DeliveryRow

MONTH = 31 * 24 * 3_600_000
JUMPS = st.one_of(st.just(0), st.sampled_from([-3_600_000, 3_600_000, MONTH, -MONTH]), st.integers(-MONTH, MONTH))
NOW = 1_790_000_000_000


def row(at: int, pause: int) -> DeliveryRow:
    return DeliveryRow("s", "t", "b", 0, 0, b"", "", "k", at=at, retry_at=at + pause)


@given(st.integers(0, LONGEST_MS), JUMPS, st.integers(0, 10**9), st.lists(JUMPS, max_size=5))
def test_no_jump_of_the_wall_clock_delays_a_part_by_more_than_its_pause(
    pause: int, between: int, steady: int, jumps: list[int]
) -> None:
    """`between`: before the pause is seen, as between two runs; `jumps`: while it lasts."""
    stored = row(NOW, pause)
    known = patience(None, stored, NOW + between, steady)
    assert known is not None
    assert known.pause(steady).left <= pause
    for jump in jumps:
        assert patience(known, stored, NOW + between + jump, steady + 1) == known
    assert known.pause(steady + pause).left == 0
    if between == 0:
        assert known.pause(steady).left == pause


@given(st.integers(), st.integers(), st.integers(0, 10**9))
def test_a_stored_time_is_never_further_away_than_it_can_be(until: int, now: int, longest: int) -> None:
    assert 0 <= within(until, now, longest) <= longest


def test_what_fails_again_and_again_is_late_after_a_minute() -> None:
    first = patience(None, row(NOW, 1_000), NOW, 0)
    again = patience(first, row(NOW + BLOCKS_MS, 1_000), NOW + BLOCKS_MS, BLOCKS_MS)
    assert first is not None
    assert again is not None
    assert not first.pause(0).late
    assert again.pause(BLOCKS_MS).late
    assert again.pause(BLOCKS_MS).since == 0


def test_what_has_no_time_has_no_pause() -> None:
    assert patience(None, DeliveryRow("s", "t", "b", 0, 0, b"", "", "k"), NOW, 0) is None
