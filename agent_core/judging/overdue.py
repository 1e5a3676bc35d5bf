"""How long a turn's driver may do nothing, by the timers that are open in the turn's state; apart from the driver, because it is pure."""

from __future__ import annotations

from collections.abc import Callable

from agent_core.failures.remedies import DONE_SECONDS
from agent_core.turn.standing import Standing
from agent_core.turn.state import ActivityState, Phase

ENDING_SECONDS = 8.0
"""Cancelling what runs, and storing the end."""


def longest_timer_seconds(turn: Standing, silence_seconds: float, deadline_of: Callable[[str], float]) -> float:
    """Seconds until something must have happened.

    `silence_seconds` is how long the current model call may be silent, `deadline_of` how long a tool may run.
    """
    if turn.opened is None:
        return ENDING_SECONDS
    whole = float(turn.settings.turn_seconds)
    match turn.phase:
        case Phase.CALLING:
            return min(whole, silence_seconds)
        case Phase.WAITING:
            return min(whole, max(0, turn.wait_until - turn.phase_since) / 1000)
        case Phase.COMPACTING:
            return whole
        case Phase.ASKING:
            return min(whole, 2 * DONE_SECONDS)
        case Phase.ACTING:
            open_calls = turn.round.unfinished
            waits = any(activity.state is ActivityState.APPROVAL for activity in open_calls)
            limits = [deadline_of(activity.name) for activity in open_calls]
            return min(whole, max([*limits, float(turn.settings.approval_seconds) if waits else 0.0], default=0.0))
        case Phase.NEW | Phase.ENDED:
            return ENDING_SECONDS


def seconds_left(turn: Standing, begun_at: float | None, steady: float, now: int) -> float:
    """How much of its own time a turn has left, by the monotonic clock if this process opened it.

    Of a turn that another process opened, by the wall clock, which may have been set since: never more than a whole turn's time.
    """
    most = float(turn.settings.turn_seconds)
    left = begun_at + most - steady if begun_at is not None else (turn.deadline_at - now) / 1000
    return max(0.0, min(left, most))
