"""Which remedy is the best, by what was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.judging.remedies import SPECIAL, Rung
from agent_core.learning.measured import best_remedy

tries = st.lists(st.tuples(st.sampled_from(Rung), st.booleans(), st.integers(1, 50)), max_size=8)


@given(tries)
def test_what_never_helped_is_never_the_best(found: list[tuple[Rung, bool, int]]) -> None:
    best = best_remedy(found)
    helped = {rung for rung, good, _ in found if good}
    assert best is None if not helped else best in helped


@given(tries, st.sampled_from(Rung))
def test_another_success_never_makes_a_remedy_worse(found: list[tuple[Rung, bool, int]], rung: Rung) -> None:
    if best_remedy(found) is rung:
        assert best_remedy([*found, (rung, True, 1)]) is rung


@given(
    st.sampled_from(sorted(SPECIAL)), st.sampled_from(sorted(set(Rung) - SPECIAL)), st.integers(1, 9), st.integers(0, 9)
)
def test_of_two_that_are_as_good_the_plainer_one_is_best(special: Rung, plain: Rung, good: int, bad: int) -> None:
    both = [(rung, fine, count) for rung in (special, plain) for fine, count in ((True, good), (False, bad)) if count]
    assert best_remedy(both) is plain


def test_the_larger_share_wins_and_few_tries_are_doubted() -> None:
    often = [(Rung.NEXT_ROUTE, True, 19), (Rung.NEXT_ROUTE, False, 1)]
    once = [(Rung.RETRY, True, 1)]
    assert best_remedy([*often, *once]) is Rung.NEXT_ROUTE
    assert best_remedy(once) is Rung.RETRY
