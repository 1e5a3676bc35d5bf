"""Which cases of a test run each time."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sampled


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_each_two_values_meet_and_there_are_fewer_cases(sizes: list[int]) -> None:
    cases = [[str(value) for value in values] for values in product(*(range(size) for size in sizes))]
    kept = [cases[number] for number in sampled.covering(cases)]
    for places in combinations(range(len(sizes)), 2 if len(sizes) > 2 else 1):
        assert {tuple(case[place] for place in places) for case in kept} == {
            tuple(case[place] for place in places) for case in cases
        }
    if len(sizes) == 2:
        assert len(kept) == max(sizes)


@given(st.text(), st.integers(1, 60), st.integers(1, 60))
def test_so_many_are_chosen_and_always_the_same(name: str, cases: int, count: int) -> None:
    found = sampled.chosen(name, range(cases), count)
    assert len(found) == len(set(found)) == (cases if sampled.ALL else min(cases, count))
    assert found == sampled.chosen(name, range(cases), count)


def test_in_the_soak_there_are_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "ALL", True)
    assert sampled.chosen("a test", range(7), 2) == list(range(7))
