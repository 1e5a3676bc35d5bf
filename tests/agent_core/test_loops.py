"""Loops inside a turn: found in time, warned of first, and honest work left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.exits import ExitCode
from agent_core.rules.loops import LoopFinding, Loops
from agent_core.rules.masking import canonical_arguments, mask
from agent_core.settings import GuardCounts


def run(*calls: tuple[str, str, str, bool, bool]) -> list[LoopFinding | None]:
    """(tool, arguments, result, ok, read only) → findings."""
    loops = Loops(GuardCounts())
    return [loops.observe(t, a, r, ok=ok, read_only=ro) for t, a, r, ok, ro in calls]


def stops(findings: list[LoopFinding | None]) -> list[tuple[int, ExitCode]]:
    return [(i + 1, f.code) for i, f in enumerate(findings) if f is not None and f.stop]


def warns(findings: list[LoopFinding | None]) -> list[int]:
    return [i + 1 for i, f in enumerate(findings) if f is not None and not f.stop]


def test_the_same_failing_call_warns_at_two_and_stops_at_four():
    found = run(*[("write", '{"p": 1}', "denied", False, False)] * 4)
    assert warns(found) == [2, 3]
    assert stops(found) == [(4, ExitCode.REPEATING_FAILING_CALL)]


def test_a_failing_tool_with_other_arguments_warns_at_three_and_stops_at_seven():
    found = run(*[("write", f'{{"p": {n}}}', f"denied {n}", False, False) for n in range(7)])
    assert warns(found) == [3, 4, 5, 6]
    assert stops(found) == [(7, ExitCode.FAILING_TOOL)]


def test_a_success_clears_the_failures():
    failing = ("write", '{"p": 1}', "denied", False, False)
    fine = ("write", '{"p": 1}', "ok", True, False)
    assert stops(run(failing, failing, failing, fine, failing, failing, failing)) == []


def test_the_same_reading_with_the_same_result_is_no_progress_even_if_a_clock_is_in_it():
    found = run(*[("read", "{}", f"status at 2026-11-20 10:00:0{n}: pending", True, True) for n in range(4)])
    assert warns(found) == [2, 3]
    assert stops(found) == [(4, ExitCode.NO_PROGRESS)]


def test_the_same_effect_again_and_again_is_a_loop_whatever_its_results_say_and_whatever_fails_between():
    calls: list[tuple[str, str, str, bool, bool]] = []
    for n in range(24):
        calls += [
            ("append", '{"text": "a line"}', f"the file has {n} lines", True, False),
            ("read", "{", f"no JSON {n}", False, True),
        ]
    found = run(*calls)
    appended = found[::2]
    assert warns(appended) == [*range(4, 24)]
    assert stops(appended) == [(24, ExitCode.NO_PROGRESS)]


def test_the_same_effect_with_other_work_between_is_honest():
    calls: list[tuple[str, str, str, bool, bool]] = []
    for n in range(20):
        calls += [("next", "{}", f"page {n}", True, False), ("write", f'{{"n": {n}}}', f"wrote {n}", True, False)]
    assert stops(run(*calls)) == []


def test_polling_that_makes_progress_is_left_alone():
    assert stops(run(*[("read", "{}", f"{n} of 50 files done", True, True) for n in range(30)])) == []


def test_reading_again_after_a_change_is_honest():
    calls: list[tuple[str, str, str, bool, bool]] = []
    for n in range(8):
        calls += [("read", "{}", "same", True, True), ("write", f'{{"n": {n}}}', f"wrote {n}", True, False)]
    assert stops(run(*calls)) == []


def test_a_cycle_of_three_calls_warns_in_the_second_round_and_stops_in_the_fourth():
    cycle = [("a", "{}", "1", True, False), ("b", "{}", "2", True, False), ("c", "{}", "3", True, False)]
    found = run(*(cycle * 4))
    assert warns(found)[0] == 6
    assert stops(found)[0] == (12, ExitCode.GOING_IN_CIRCLES)


def test_a_cycle_of_two_readings_is_told_as_a_cycle():
    cycle = [("a", "{}", "1", True, True), ("b", "{}", "2", True, True)]
    assert stops(run(*(cycle * 4)))[0] == (8, ExitCode.GOING_IN_CIRCLES)


def test_many_similar_edits_are_left_alone():
    assert stops(run(*[("edit", f'{{"line": {n}}}', "edited", True, False) for n in range(60)])) == []


def test_arguments_are_compared_as_data():
    assert canonical_arguments('{"b": 1, "a": [1,2]}') == canonical_arguments('{ "a":[1, 2],"b":1 }')
    assert canonical_arguments("") == canonical_arguments("{}")


@given(st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text: str):
    assert mask(mask(text)) == mask(text)


def test_volatile_parts_are_masked_and_others_are_not():
    a = mask("id 6f1ed002-ab5b-4c2c-9f3d-0123456789ab at 0x7ffdeadbeef in /tmp/tmpabc123/x took 12.5 ms")
    b = mask("id 00000000-ab5b-4c2c-9f3d-0123456789ab at 0x7ff000beef in /tmp/tmpzzz/x took 99 ms")
    assert a == b
    assert mask("3 of 10") != mask("4 of 10")


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.sampled_from(["{}", '{"x": 1}']),
            st.sampled_from("pq"),
            st.booleans(),
            st.booleans(),
        ),
        max_size=40,
    )
)
def test_a_rule_never_stops_before_it_has_warned(calls: list[tuple[str, str, str, bool, bool]]):
    warned: set[ExitCode] = set()
    for finding in run(*calls):
        if finding is None:
            continue
        if finding.stop:
            assert warned
            return
        warned.add(finding.code)
