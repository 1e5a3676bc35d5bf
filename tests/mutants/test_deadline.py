"""A turn's time is its own: who takes it up after a death gives it no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.judging.overdue import seconds_left
from agent_core.machine.turn import Turn
from agent_core.turn.events import TakenOver
from tests.agent_core.turns import opened


@given(st.lists(st.integers(0, 10_000_000), max_size=5))
def test_a_deadline_does_not_move_however_often_the_turn_is_taken_up(times: list[int]) -> None:
    turn = Turn()
    turn.feed(opened())
    before, at = turn.deadline_at, turn.phase_since
    for later in sorted(times):
        turn.feed(TakenOver(at=at + later, epoch=2))
        assert turn.deadline_at == before
        if turn.exit is not None:
            break


@given(st.none() | st.floats(0, 1e7), st.floats(0, 1e7), st.integers(0, 10**13))
def test_a_turn_has_never_more_time_left_than_a_whole_one_whatever_the_clocks_say(
    begun_at: float | None, steady: float, now: int
) -> None:
    turn = Turn()
    turn.feed(opened())
    assert 0 <= seconds_left(turn, begun_at, steady, now) <= turn.settings.turn_seconds
    if begun_at is not None and begun_at <= steady <= begun_at + turn.settings.turn_seconds:
        assert abs(seconds_left(turn, begun_at, steady, now) - (begun_at + turn.settings.turn_seconds - steady)) < 0.001
