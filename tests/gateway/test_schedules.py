"""What is claimed when, whatever the clock does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.store.schedules.rows import OccurrenceOutcome, ScheduleRow, ScheduleState
from gateway.schedule.schedules import (
    ON_TIME_MS,
    Happening,
    OccurrenceClaim,
    Plan,
    ScheduleKind,
    UnreadablePlan,
    announcement,
    cancelled,
    claimed,
    decide,
    decode,
    decode_happening,
    doubted,
    encode_happening,
    key_of,
    line,
    missed_words,
    paused,
    reminder,
    reminder_words,
    resumed,
    scheduled_origin,
    session_key,
    synced,
)
from gateway.schedule.times import MOST_COUNTED, Cron, Every, IfMissed, Once, Rule, counted, next_after
from tests import examples
from tests.gateway.test_times import FIRST, crons

RULES: st.SearchStrategy[Rule] = st.one_of(
    crons, st.builds(Every, st.integers(60, 20_000), st.just(FIRST)), st.builds(Once, st.just(FIRST + 5_000_000))
)
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("missed", "may_be_late", "late_ms", "runs"),
    [
        (IfMissed.RUN, 0, 30 * 24 * HOUR_MS, True),
        (IfMissed.RUN, 7_200, 2 * HOUR_MS, True),
        (IfMissed.RUN, 7_200, 2 * HOUR_MS + 1, False),
        (IfMissed.RUN, 10, ON_TIME_MS, True),
        (IfMissed.RUN, 10, ON_TIME_MS + 1, False),
        (IfMissed.SKIP, 7_200, ON_TIME_MS, True),
        (IfMissed.SKIP, 7_200, ON_TIME_MS + 1, False),
    ],
)
def test_what_is_late_runs_as_long_as_it_may_and_not_a_moment_longer(
    missed: IfMissed, may_be_late: int, late_ms: int, runs: bool
) -> None:
    due = FIRST + HOUR_MS
    claim = decide(Once(due), due, missed, may_be_late, due + late_ms)
    assert claim == OccurrenceClaim(OccurrenceOutcome.RUN if runs else OccurrenceOutcome.MISSED, due, due, 1, None)


def settle(
    rule: Rule, next_at: int | None, missed: IfMissed, late: int, now: int
) -> tuple[list[OccurrenceClaim], int | None]:
    """Everything that is claimed at `now`, one after the other."""
    claims: list[OccurrenceClaim] = []
    while (claim := decide(rule, next_at, missed, late, now)) is not None:
        claims.append(claim)
        next_at = claim.next_at
        assert len(claims) <= 3
    return claims, next_at


@given(
    RULES,
    st.sampled_from(IfMissed),
    st.sampled_from((0, 60, 7200)),
    st.lists(st.integers(-3 * HOUR_MS, 8 * HOUR_MS), min_size=1, max_size=8),
)
@examples.MANY
def test_every_occurrence_is_claimed_once_and_none_before_its_time(
    rule: Rule, missed: IfMissed, late: int, steps: list[int]
) -> None:
    next_at = first = next_after(rule, FIRST)
    now = furthest = FIRST
    claims: list[OccurrenceClaim] = []
    for step in steps:  # a clock that jumps, forward and back
        now = max(FIRST, now + step)
        furthest = max(furthest, now)
        found, next_at = settle(rule, next_at, missed, late, now)
        ran = [one for one in found if one.outcome is OccurrenceOutcome.RUN]
        assert len(ran) <= 1  # after an outage one runs, and the rest is told in one claim
        assert len(found) - len(ran) <= 1
        assert all(one.last <= now for one in found)
        for one in ran:
            assert now - one.due <= max(ON_TIME_MS, late * 1000 if late else now)
            assert missed is IfMissed.RUN or now - one.due <= ON_TIME_MS
        if found:  # the last may run as long as it is not too late, and then it does
            late_ms = now - found[-1].last
            in_time = missed is IfMissed.RUN and (not late or late_ms <= late * 1000)
            assert bool(ran) == (late_ms <= ON_TIME_MS or in_time)
        claims += found
    covered: list[int] = []
    for claim in claims:
        at: int | None = claim.due
        while at is not None and at <= claim.last:
            covered.append(at)
            at = next_after(rule, at)
    expected: list[int] = []
    while first is not None and first <= furthest:
        expected.append(first)
        first = next_after(rule, first)
    assert covered == expected


def plan(name: str = "a") -> Plan:
    return Plan("say hello", scheduled_origin(ChatAddress("telegram", "1", "2")), "UTC", name)


@given(RULES, RULES, st.integers(0, 5 * HOUR_MS), st.integers(0, 5 * HOUR_MS))
@examples.MANY
def test_another_rule_begins_when_the_old_one_is_settled_and_claims_nothing_twice(
    old: Rule, new: Rule, first: int, second: int
) -> None:
    row = synced(None, old, plan(), FIRST)
    assert row is not None
    assert synced(row, old, plan(), FIRST + first) is None  # nothing changed: what is due stays due
    now = FIRST + first
    changed = synced(row, new, plan(), now)
    if changed is not None and row.next_at is not None and row.next_at <= now:
        assert changed.next_at == row.next_at
        assert changed.rule == row.rule
    elif changed is not None:
        assert changed.next_at == next_after(new, now)
    gone = cancelled(replace(row, done_to=now + second), now)
    again = synced(gone, new, plan(), now)
    assert again is not None
    assert again.state is ScheduleState.ACTIVE
    assert again.rev == gone.rev + 1
    assert again.next_at is None or again.next_at > now + second


def test_a_claim_moves_the_row_and_is_read_back_by_its_command() -> None:
    rule = Cron("0 9 * * *", "UTC")
    row = synced(None, rule, plan(), FIRST)
    assert row is not None
    assert row.next_at is not None
    now = row.next_at + 10
    claim = decide(rule, row.next_at, IfMissed.RUN, 0, now)
    assert claim is not None
    found, happening = claimed(row, plan(), claim, now)
    assert (found.schedule.rev, found.schedule.done_to) == (row.rev + 1, row.next_at)
    assert decode_happening(encode_happening(happening)) == happening
    assert decode(row) == (plan(), rule)
    asked = plan()
    asked = replace(asked, origin=replace(asked.origin, message="77"))
    row = reminder(1, "a", rule, asked, session_key(asked.origin.address), FIRST, FIRST)
    assert row is not None
    assert decode(row)[0].origin.message == "77"
    moved = replace(row, surface="telegram/1/-100/")
    there = decode(moved)[0].origin
    assert (there.address, there.message) == (ChatAddress("telegram", "1", "-100"), ""), (
        "its number is another one there"
    )


@pytest.mark.parametrize("chat", ["2", "-100"])
def test_an_answer_refers_to_a_message_only_in_the_chat_in_which_that_has_its_number(chat: str) -> None:
    of = ChatOrigin(ChatAddress("telegram", "1", "2"), ChatKind.PRIVATE, ChatPerson("5", "Ada"), message="77")
    row = synced(None, Every(60, FIRST), replace(plan(), origin=of), FIRST)
    assert row is not None
    address = ChatAddress("telegram", "1", chat)
    found = decode(replace(row, surface=address.text()))[0].origin
    assert (found.address, found.message) == (address, "77" if chat == "2" else "")


@given(RULES, st.integers(0, 5 * HOUR_MS), st.integers(0, 5 * HOUR_MS), st.sampled_from(IfMissed))
@examples.MANY
def test_what_was_due_before_a_backup_was_put_back_says_that_it_may_come_twice_and_nothing_else_does(
    rule: Rule, restored: int, later: int, missed: IfMissed
) -> None:
    known = synced(None, rule, plan(), FIRST)
    assert known is not None
    put_back, now = FIRST + restored, FIRST + restored + later
    row: ScheduleRow = replace(known, body=doubted(known.body, put_back))
    again = synced(row, rule, plan(), now)  # the configuration is looked at first, at each start
    row = again or row
    while (claim := decide(rule, row.next_at, missed, 0, now)) is not None:
        kept, _ = decode(row)
        found, happening = claimed(row, kept, claim, now)
        assert happening.late_ms == now - claim.due, "of several that were missed, since the first"
        ran = claim.outcome is OccurrenceOutcome.RUN
        words = [reminder_words(happening), announcement(happening)] if ran else [missed_words(happening)]
        for one in words:
            assert ("An older copy" in one or "an older copy" in one) is (claim.due <= put_back), one
            assert "I could not do it then" not in one or claim.due > put_back
        row = found.schedule
    settled = synced(row, rule, plan(), now)
    assert decode(settled or row)[0].doubtful_to == 0 or known.next_at is None or known.next_at > now


@given(RULES, st.integers(0, 5 * HOUR_MS), st.integers(-2 * HOUR_MS, 5 * HOUR_MS))
def test_what_goes_on_after_a_pause_claims_nothing_twice_whatever_the_clock_says(
    rule: Rule, done: int, later: int
) -> None:
    row = synced(None, rule, plan(), FIRST)
    assert row is not None
    held, now = paused(replace(row, done_to=FIRST + done), FIRST + done), FIRST + done + later
    again = resumed(held, rule, now)
    assert (again.next_at if again is not None else None) == next_after(rule, max(now, FIRST + done))


def test_what_was_cancelled_has_no_time_any_more_and_is_another_state_than_was_seen() -> None:
    active = ScheduleRow("s", "reminder", "chat", "telegram/1/2", 1, "{}", b"{}", next_at=5, rev=3)
    gone = cancelled(active, 9)
    assert (gone.state, gone.next_at, gone.rev, gone.at) == (ScheduleState.CANCELLED, None, 4, 9)
    held = paused(active, 9)
    assert (held.state, held.next_at, held.rev, held.at) == (ScheduleState.PAUSED, None, 4, 9)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (2, "2 times"),
        (MOST_COUNTED - 1, "999 times"),
        (MOST_COUNTED, "1,000 times"),
        (MOST_COUNTED + 1, "more than 1,000 times"),
        (9 * MOST_COUNTED, "more than 1,000 times"),
    ],
)
def test_how_often_something_was_missed_is_told_as_often_as_it_was(times: int, told: str) -> None:
    last = FIRST + (times - 1) * 60_000
    found = counted(Every(60), FIRST, last)
    missed = Happening(ScheduleKind.REMINDER, "a", OccurrenceOutcome.MISSED, FIRST, last, found, 0, plan())
    assert f", {told} from" in missed_words(missed)


def test_each_occurrence_of_each_schedule_is_accepted_once_under_its_own_name_and_in_its_own_thread() -> None:
    plan = Plan(
        "tea", ChatOrigin(ChatAddress("telegram", "1", "2", "7"), ChatKind.PRIVATE, ChatPerson("2", "Ann")), "UTC"
    )
    rule = Every(60, 0)
    row = reminder(1, "m1", rule, plan, SessionKey("telegram", "1", "2", "7"), 0, 0)
    assert row is not None
    names: list[str] = []
    for named in ("remind:m1", "remind:m2"):
        for due in (60_000, 120_000):
            claim = OccurrenceClaim(OccurrenceOutcome.RUN, due, due, 1, due + 60_000)
            stored, happening = claimed(replace(row, schedule=named), plan, claim, due + 5_000)
            names.append(key_of(happening))
            assert (stored.schedule.next_at, stored.schedule.done_to, stored.schedule.state) == (
                due + 60_000,
                due,
                ScheduleState.ACTIVE,
            )
            assert happening.late_ms == 5_000
    assert len({*names}) == 4
    missed = OccurrenceClaim(OccurrenceOutcome.MISSED, 60_000, 240_000, 4, None)
    over, happening = claimed(row, plan, missed, 300_000)
    assert (over.schedule.state, over.schedule.done_to, happening.late_ms) == (ScheduleState.DONE, 240_000, 240_000)
    places = [session_key(ChatAddress("telegram", "1", "2", thread)).text() for thread in ("", "7")]
    assert places == [SessionKey("telegram", "1", "2", thread).text() for thread in ("", "7")]
    assert "paused" in line(paused(row, 1), plan, rule)
    assert "no more" in line(cancelled(row, 1), plan, rule)


@pytest.mark.parametrize(
    "odd",
    [{"body": b"{"}, {"rule": "at times"}, {"surface": "x"}, {"session_key": "x"}, {"kind": "perhaps"}],
    ids=lambda odd: next(iter(odd)),
)
def test_a_row_of_which_a_part_makes_no_sense_says_so_as_a_whole(odd: Mapping[str, Any]) -> None:
    row = synced(None, Every(3_600, FIRST), plan(), FIRST)
    assert row is not None
    decode(row)
    with pytest.raises(UnreadablePlan):
        decode(replace(row, **odd))
