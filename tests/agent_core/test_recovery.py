"""The ladders as data: they end, they are bounded, and they never repeat what cannot help."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.judging.remedies import (
    CAUSE_TO_EXIT,
    CAUSE_TO_FAILURE,
    LADDERS,
    Failure,
    Helps,
    Remedy,
    backoff_seconds,
    exit_for,
    next_remedy,
    next_route,
    patience,
    pause_seconds,
)
from agent_core.turn.exits import BreakCause
from agent_core.turn.settings import LadderCounts, Route

ROUTES = (Route("m1", "h", "k1"), Route("m1", "h", "k2"), Route("m2", "h", "k1"), Route("m2", "h", "k2"))


@pytest.mark.parametrize("failure", list(Failure))
def test_every_failure_has_a_ladder_that_ends(failure: Failure):
    chosen: Counter[tuple[Failure, Remedy]] = Counter()
    route = 0
    remedies: list[Remedy] = []
    while (step := next_remedy(failure, chosen, LadderCounts(), ROUTES, route)) is not None:
        chosen[failure, step.remedy] += 1
        remedies.append(step.remedy)
        if step.remedy is Remedy.NEXT_ROUTE:
            following = next_route(ROUTES, route, step.helps)
            assert following is not None
            assert following > route
            route = following
        assert len(remedies) < 20
    for remedy in set(remedies):
        step = next(s for s in LADDERS[failure] if s.remedy is remedy)
        assert remedies.count(remedy) <= step.times(LadderCounts())


@pytest.mark.parametrize("failure", [Failure.CREDENTIAL, Failure.REQUEST])
def test_what_the_same_route_cannot_mend_is_never_sent_there_as_it_was(failure: Failure):
    assert all(step.remedy in (Remedy.NEXT_ROUTE, Remedy.LEAVE_OUT) for step in LADDERS[failure])


def test_the_ladders_are_those_of_the_rules():
    def remedies(failure: Failure) -> list[tuple[Remedy, int | Helps]]:
        counts = LadderCounts()
        return [(s.remedy, s.helps if s.remedy is Remedy.NEXT_ROUTE else s.times(counts)) for s in LADDERS[failure]]

    model, doubted = (Remedy.NEXT_ROUTE, Helps.OTHER_MODEL), (Remedy.LEAVE_OUT, 2)
    assert remedies(Failure.BEFORE_CONTENT) == [(Remedy.RETRY, 3), (Remedy.NEXT_ROUTE, Helps.ANY), doubted]
    assert remedies(Failure.IN_TEXT) == [(Remedy.CONTINUE, 2), model]
    assert remedies(Failure.NOTHING_MORE) == [(Remedy.CONTINUE, 3), (Remedy.NEXT_ROUTE, Helps.ANY)]
    assert remedies(Failure.THOUGHT_MORE) == [(Remedy.CONTINUE, 2), model]
    assert remedies(Failure.IN_TOOL_CALL) == [(Remedy.RETRY, 1), (Remedy.ADVISE_SMALLER, 1), model]
    assert remedies(Failure.EMPTY) == [(Remedy.RETRY, 1), (Remedy.NUDGE, 2), model, doubted]
    assert remedies(Failure.THINKING_ONLY) == [(Remedy.CONTINUE_THINKING, 2), model, doubted]
    assert remedies(Failure.PROMISED) == [(Remedy.NUDGE, 1), model]
    assert remedies(Failure.LENGTH) == [(Remedy.CONTINUE, 3)]
    assert remedies(Failure.LENGTH_IN_TOOL_CALL) == [(Remedy.ADVISE_SMALLER, 2), model]
    assert remedies(Failure.OVERFLOW) == [
        (Remedy.COMPACT, 1),
        (Remedy.NEXT_ROUTE, Helps.LARGER_WINDOW),
        (Remedy.LEAVE_OUT, 6),
    ]
    assert remedies(Failure.TOO_LARGE) == [(Remedy.COMPACT, 1), model, (Remedy.LEAVE_OUT, 6)]
    assert remedies(Failure.CREDENTIAL) == [(Remedy.NEXT_ROUTE, Helps.OTHER_CREDENTIAL)]
    assert remedies(Failure.REQUEST) == [model, (Remedy.LEAVE_OUT, 6)]


@pytest.mark.parametrize(
    ("here", "there", "helps"), [(8, 100, True), (100, 8, False), (8, 8, False), (0, 8, True), (8, 0, True)]
)
def test_a_model_helps_against_an_overflow_unless_its_context_is_known_to_be_no_larger(
    here: int, there: int, helps: bool
):
    routes = (Route("m1", "h", "k1", here), Route("m1", "h", "k2", here), Route("m2", "h", "k1", there))
    assert next_route(routes, 0, Helps.LARGER_WINDOW) == (2 if helps else None)


@given(st.integers(2, 60), st.integers(0, 2**63 - 1))
def test_a_second_try_in_the_text_waits_as_long_as_a_provider_takes_to_restart(number: int, seed: int):
    go_on = next(step for step in LADDERS[Failure.IN_TEXT] if step.remedy is Remedy.CONTINUE)
    assert pause_seconds(go_on, 1, seed, 1, 30) == 0
    pause = pause_seconds(go_on, number, seed, 1, 30)
    assert 4 <= pause <= 10
    assert pause == pause_seconds(go_on, number, seed, 1, 30)
    assert pause_seconds(go_on, number, seed, 0.1, 0.5) == 0.5


def test_another_credential_and_another_model_are_told_apart():
    assert next_route(ROUTES, 0, Helps.OTHER_CREDENTIAL) == 1
    assert next_route(ROUTES, 0, Helps.OTHER_MODEL) == 2
    assert next_route(ROUTES, 3, Helps.ANY) is None


@pytest.mark.parametrize("cause", list(BreakCause))
def test_every_cause_leads_to_a_failure_and_an_exit(cause: BreakCause):
    failure = CAUSE_TO_FAILURE[cause]
    assert CAUSE_TO_EXIT[cause]
    for any_failure in (failure, *Failure):
        assert exit_for(any_failure, cause, tools_ran=True)


@given(st.integers(1, 60), st.integers(0, 2**63 - 1), st.floats(0.01, 5), st.floats(5, 60))
def test_backoff_stays_in_its_window_and_repeats_itself(number: int, seed: int, low: float, high: float):
    pause = backoff_seconds(number, seed, low, high)
    window = min(high, low * 2 ** (number - 1))
    assert window * 0.0999 <= pause <= window * 1.0001
    assert pause == backoff_seconds(number, seed, low, high)


def test_backoff_differs_between_turns():
    assert len({round(backoff_seconds(3, seed, 1, 30), 6) for seed in range(200)}) > 190


def test_patience_grows_with_the_prompt():
    assert [patience(n) for n in (0, 50_000, 50_001, 100_001)] == [1.0, 1.0, 1.5, 2.0]


def test_a_retry_can_be_left_out_when_the_provider_asks_for_too_long_a_pause():
    step = next_remedy(Failure.BEFORE_CONTENT, {}, LadderCounts(), ROUTES, 0, skip=frozenset({Remedy.RETRY}))
    assert step is not None
    assert step.remedy is Remedy.NEXT_ROUTE
    only = (replace(ROUTES[0]),)
    assert (
        next_remedy(
            Failure.BEFORE_CONTENT, {}, LadderCounts(), only, 0, skip=frozenset({Remedy.RETRY, Remedy.LEAVE_OUT})
        )
        is None
    )
