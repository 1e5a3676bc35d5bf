"""A turn's time is its own: who takes it up after a death gives it no more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
