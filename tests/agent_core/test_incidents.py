"""When a failure is an incident, when it is over, and which remedy is the best."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agent_core.incidents import IncidentRules, best_remedy, changes, incident_words, known_incidents
from agent_core.recovery import Rung
from agent_core.store.rows import IncidentRow, IncidentState, RungCount, TroubleCount

RULES = IncidentRules(conversations=2, window_ms=3_600_000, quiet_ms=1_800_000)
NOW = 1_700_000_000_000
PRINTS = ("provider_down|host|m1|-|-", "broken_in_tool_call|host|a|b|write|L")

rungs = st.builds(
    RungCount,
    st.sampled_from([rung.value for rung in Rung]),
    st.sampled_from(["helped", "not_helped", "not_known"]),
    st.integers(1, 50),
)


def counted(name: str, conversations: int, age: int, found: list[RungCount]) -> TroubleCount:
    return TroubleCount(name, conversations, conversations, 0, NOW - age, NOW - age, tuple(found))


counts = st.builds(
    counted,
    st.sampled_from(PRINTS),
    st.integers(1, 5),
    st.integers(0, RULES.window_ms),
    st.lists(rungs, max_size=4),
)
several = st.lists(counts, max_size=2, unique_by=lambda count: count.fingerprint)


def applied(opened: list[IncidentRow], changed: list[IncidentRow]) -> list[IncidentRow]:
    by_id = {one.incident: one for one in opened} | {one.incident: one for one in changed}
    return [one for one in by_id.values() if one.state is IncidentState.OPEN]


def run(found: list[TroubleCount], opened: list[IncidentRow], now: int = NOW) -> list[IncidentRow]:
    numbers = itertools.count(len(opened))
    return changes(found, opened, now, RULES, lambda: f"i{now}{next(numbers)}")


@given(several)
def test_the_same_counts_twice_change_nothing_the_second_time(found: list[TroubleCount]) -> None:
    opened = applied([], run(found, []))
    assert run(found, opened) == []


@given(st.lists(several, max_size=5))
def test_a_fingerprint_has_at_most_one_open_incident(rounds: list[list[TroubleCount]]) -> None:
    opened: list[IncidentRow] = []
    for number, found in enumerate(rounds):
        opened = applied(opened, run(found, opened, NOW + number))
        names = [one.fingerprint for one in opened]
        assert len(names) == len(set(names))


@given(several)
def test_what_is_quiet_is_closed_and_what_goes_on_is_not(found: list[TroubleCount]) -> None:
    opened = applied([], run(found, []))
    later = NOW + RULES.quiet_ms
    closed = run([], opened, later)
    assert {one.incident for one in closed} == {one.incident for one in opened}
    assert all(one.state is IncidentState.CLOSED and one.closed_at == later for one in closed)
    fresh = [TroubleCount(one.fingerprint, 9, 9, 0, later, later) for one in opened]
    assert all(one.state is IncidentState.OPEN for one in run(fresh, opened, later))


@given(several)
def test_one_conversation_alone_is_no_incident(found: list[TroubleCount]) -> None:
    opened = applied([], run(found, []))
    enough = {count.fingerprint for count in found if count.conversations >= RULES.conversations}
    assert {one.fingerprint for one in opened} <= enough


@given(st.lists(rungs, max_size=6))
def test_the_best_remedy_has_helped(found: list[RungCount]) -> None:
    best = best_remedy(found)
    helped = {count.rung for count in found if count.outcome == "helped"}
    assert best is None if not helped else best in helped


def test_the_larger_share_wins_and_few_tries_are_doubted() -> None:
    often = [RungCount("next_route", "helped", 19), RungCount("next_route", "not_helped", 1)]
    once = [RungCount("retry", "helped", 1)]
    assert best_remedy([*often, *once]) is Rung.NEXT_ROUTE
    assert best_remedy(once) is Rung.RETRY


def test_a_model_whose_name_holds_the_separator_is_read_rightly() -> None:
    (incident,) = run([TroubleCount(PRINTS[1], 2, 2, 0, NOW, NOW)], [])
    assert (incident.model, incident.tool) == ("a|b", "write")
    (known,) = known_incidents([incident])
    assert (known.endpoint, known.model, known.tool, known.remedy) == ("host", "a|b", "write", None)


def test_the_line_says_what_and_how_many() -> None:
    (incident,) = run([TroubleCount(PRINTS[0], 3, 4, 0, NOW, NOW, (RungCount("next_route", "helped", 3),))], [])
    words = incident_words(incident)
    assert "provider down" in words
    assert "3 conversations" in words
    assert "next route" in words
    (closed,) = run([], [incident], NOW + RULES.quiet_ms)
    assert incident_words(closed).startswith("✅ Over: provider down")
