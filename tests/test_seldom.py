"""What is left to the soak."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests import seldom

ROOT = Path(__file__).parents[1]
FILES = st.sampled_from(["tests/a.py", "tests/b.py", "tests/c.py"])
TESTS = st.builds("{}::test_{}".format, FILES, st.integers(0, 20))
TOOK = st.dictionaries(TESTS, st.floats(0, 60).map(lambda seconds: round(seconds, 2)), min_size=1)


@given(TOOK, st.frozensets(TESTS), st.floats(0, 600))
def test_the_dearest_are_left_out_until_the_others_fit_and_of_each_file_some_stay(
    took: dict[str, float], kept: frozenset[str], budget: float
) -> None:
    out = seldom.left_out(took, kept, budget)
    rest = {test: seconds for test, seconds in took.items() if test not in out}
    assert not kept & out.keys()
    assert all(seconds >= seldom.DEAR_SECONDS for seconds in out.values())
    assert {test.partition("::")[0] for test in rest} == {test.partition("::")[0] for test in took}
    if out:
        assert sum(rest.values()) + min(out.values()) > budget, "no more than is needed"
        might = took.keys() - kept - seldom.cheapest(took) - out.keys()
        assert all(took[test] <= min(out.values()) for test in might), "the dearest first"


@given(TOOK, st.data())
def test_for_each_function_some_that_call_it_stay(took: dict[str, float], data: st.DataObject) -> None:
    calls = {test: data.draw(st.frozensets(st.sampled_from("fgh"))) for test in sorted(took)}
    out = seldom.left_out(took, frozenset(), 0, calls)
    for function in "fgh":
        callers = {test for test in took if function in calls[test]}
        assert len(callers - out.keys()) >= min(len(callers), seldom.FEWEST)


def test_what_a_run_has_printed_is_read() -> None:
    printed = (
        "  12.30 s     0.50 s  tests/a/test_b.py::test_c[a case of it]\n   1.00 s  0.00 s  tests/a/test_b.py\nother\n"
    )
    assert seldom.measured(printed) == {"tests/a/test_b.py::test_c[a case of it]": 12.3}


def test_what_is_listed_is_there() -> None:
    made = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text("utf-8"))
    }
    for test in seldom.listed():  # on PostgreSQL run tests of other files
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), f"take it out of the list: {test}"
        assert name.partition("[")[0].rpartition("::")[2] in {*made, "runTest"}, f"take it out of the list: {test}"


def test_what_finds_mutants_is_always_there() -> None:
    assert not seldom.finders() & seldom.listed()
