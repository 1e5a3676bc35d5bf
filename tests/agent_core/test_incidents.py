"""When a failure is an incident, when it is over, and which remedy is the best."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.remedies import Remedy
from agent_core.learning.incidents import IncidentRules, changes, incident_words, known_incidents, remedy_of
from agent_core.store.troubles.rows import IncidentRow, IncidentState, RemedyCount, TroubleCount

RULES = IncidentRules(people=2, window_ms=3_600_000, quiet_ms=1_800_000)
NOW = 1_700_000_000_000
PRINTS = ("provider_down|host|m1|-|-", "broken_in_tool_call|host|a|b|write|L")

remedies = st.builds(
    RemedyCount,
    st.sampled_from([remedy.value for remedy in Remedy]),
    st.sampled_from(["helped", "not_helped", "not_known"]),
    st.integers(1, 50),
)


def counted(name: str, people: int, more: int, age: int, found: list[RemedyCount]) -> TroubleCount:
    conversations = people + more
    return TroubleCount(name, conversations, conversations, 0, NOW - age, NOW - age, tuple(found), people)


counts = st.builds(
    counted,
    st.sampled_from(PRINTS),
    st.integers(1, 5),
    st.integers(0, 9),
    st.integers(0, RULES.window_ms),
    st.lists(remedies, max_size=4),
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
    fresh = [TroubleCount(one.fingerprint, 9, 9, 0, later, later, (), 9) for one in opened]
    assert all(one.state is IncidentState.OPEN for one in run(fresh, opened, later))


@given(several)
def test_one_person_alone_is_no_incident_however_many_conversations_they_have(found: list[TroubleCount]) -> None:
    opened = applied([], run(found, []))
    enough = {count.fingerprint for count in found if count.people >= RULES.people}
    assert {one.fingerprint for one in opened} <= enough


@given(several, st.sets(st.sampled_from([("host", "m1"), ("host", "a|b")])))
def test_an_incident_about_a_model_that_nobody_asks_any_more_is_over_and_none_opens(
    found: list[TroubleCount], asked: set[tuple[str, str]]
) -> None:
    def asks(endpoint: str, model: str) -> bool:
        return (endpoint, model) in asked

    opened = applied([], run(found, []))
    left = applied(opened, changes(found, opened, NOW, RULES, lambda: "i", asks))
    assert {one.fingerprint for one in left} == {one.fingerprint for one in opened if asks(one.endpoint, one.model)}
    assert changes(found, left, NOW, RULES, lambda: "i", asks) == []


def test_what_helps_is_what_these_counts_say_and_else_what_was_known() -> None:
    good, bad, unknown = (RemedyCount("next_route", outcome, 2) for outcome in ("helped", "not_helped", "not_known"))
    assert remedy_of([good, bad]) == "next_route"
    assert remedy_of([bad, unknown], "next_route") == ""
    assert remedy_of([unknown], "next_route") == "next_route"


def test_an_incident_has_been_met_by_no_fewer_than_before_however_few_meet_it_now() -> None:
    opened = run([TroubleCount(PRINTS[0], 7, 9, 0, NOW, NOW, (), 7)], [])
    (after,) = run([TroubleCount(PRINTS[0], 1, 1, 0, NOW + 60_000, NOW + 60_000, (), 1)], opened, NOW + 60_000)
    assert (after.conversations, after.turns, after.last_at) == (7, 9, NOW + 60_000)


def test_a_model_whose_name_holds_the_separator_is_read_rightly() -> None:
    (incident,) = run([TroubleCount(PRINTS[1], 2, 2, 0, NOW, NOW, (), 2)], [])
    assert (incident.model, incident.tool) == ("a|b", "write")
    (known,) = known_incidents([incident])
    assert (known.endpoint, known.model, known.tool, known.size, known.remedy) == ("host", "a|b", "write", "L", None)


def test_the_line_says_what_and_how_many() -> None:
    (incident,) = run([TroubleCount(PRINTS[0], 3, 4, 0, NOW, NOW, (RemedyCount("next_route", "helped", 3),), 2)], [])
    words = incident_words(incident)
    assert "the model is not available" in words
    assert "3 conversations" in words
    assert "next route" in words
    (closed,) = run([], [incident], NOW + RULES.quiet_ms)
    assert incident_words(closed).startswith("✅ Over: the model is not available")


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_what_somebody_else_wrote_teaches_nothing_and_hides_nothing(name: str, code: str, remedy: str) -> None:
    odd = IncidentRow("i_odd", name, IncidentState.OPEN, code, "host", "m1", "", NOW, NOW, remedy=remedy)
    sound = counted(PRINTS[0], 3, 0, 0, [RemedyCount(remedy, "helped", 1)])
    changed = run([counted(name, 3, 0, 0, []), sound], [odd])
    assert PRINTS[0] in {one.fingerprint for one in changed}
    assert [one.endpoint for one in known_incidents([odd, *applied([], run([sound], []))])] == ["host"]
