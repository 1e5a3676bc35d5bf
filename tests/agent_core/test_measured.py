"""Which remedy is the best, by what was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.remedies import Remedy
from agent_core.learning.measured import best_remedy

SPECIAL = {remedy for remedy in Remedy if not remedy.recipe.hiccup}
tries = st.lists(st.tuples(st.sampled_from(Remedy), st.booleans(), st.integers(1, 50)), max_size=8)


@given(tries)
def test_what_never_helped_is_never_the_best(found: list[tuple[Remedy, bool, int]]) -> None:
    best = best_remedy(found)
    helped = {remedy for remedy, good, _ in found if good}
    assert best is None if not helped else best in helped


@given(tries, st.sampled_from(Remedy))
def test_another_success_never_makes_a_remedy_worse(found: list[tuple[Remedy, bool, int]], remedy: Remedy) -> None:
    if best_remedy(found) is remedy:
        assert best_remedy([*found, (remedy, True, 1)]) is remedy


@given(
    st.sampled_from(sorted(SPECIAL)),
    st.sampled_from(sorted(set(Remedy) - SPECIAL)),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_of_two_that_are_as_good_the_plainer_one_is_best(special: Remedy, plain: Remedy, good: int, bad: int) -> None:
    both = [
        (remedy, fine, count) for remedy in (special, plain) for fine, count in ((True, good), (False, bad)) if count
    ]
    assert best_remedy(both) is plain


def test_the_larger_share_wins_and_few_tries_are_doubted() -> None:
    often = [(Remedy.NEXT_ROUTE, True, 19), (Remedy.NEXT_ROUTE, False, 1)]
    once = [(Remedy.RETRY, True, 1)]
    assert best_remedy([*often, *once]) is Remedy.NEXT_ROUTE
    assert best_remedy(once) is Remedy.RETRY
