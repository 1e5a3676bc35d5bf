"""Rules and their occurrences."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.schedule.times import (
    MOST_COUNTED,
    BadTime,
    Cron,
    Every,
    NoSuchZone,
    Once,
    Rule,
    at_clock,
    check,
    counted,
    decode,
    duration_seconds,
    encode,
    latest,
    moment,
    next_after,
    span,
    zone_named,
)
from tests import examples

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo")
FIRST, LAST = 1_700_000_000_000, 1_900_000_000_000
CHANGES = (1_774_746_000_000, 1_792_890_000_000)
"""Clocks of Berlin are put forward, and back."""


def _near(change: int, off: int) -> int:
    return change + off


near = st.builds(_near, st.sampled_from(CHANGES), st.integers(-2 * 86_400_000, 2 * 86_400_000))
moments: st.SearchStrategy[int] = st.one_of(st.integers(FIRST, LAST), near)
crons = st.builds(
    Cron,
    st.sampled_from(
        (
            "30 2 * * *", "15,45 2 * * *", "* * * * *", "*/7 * * * *", "0 9 * * 1-5", "0 0 1 * *", "5 0-3 * * *", "0 */2 * * *",
            "59 1 * * *", "0 3 * * sun", "10 2 29 * *", "30 1-2 * 3,10 sun",
        )
    ),
    st.sampled_from(ZONES),
)  # fmt: skip
everies = st.builds(Every, st.integers(60, 10_000_000), st.integers(FIRST, LAST))
rules: st.SearchStrategy[Rule] = st.one_of(crons, everies, st.builds(Once, st.integers(FIRST, LAST)))


@given(rules, moments)
def test_the_next_one_is_later_and_nothing_lies_between(rule: Rule, after: int) -> None:
    found = next_after(rule, after)
    if found is not None:
        assert found > after
        assert next_after(rule, (after + found) // 2) in (found, next_after(rule, found))
        assert next_after(rule, found - 1) == found


@given(rules, moments, st.integers(0, 3 * 86_400_000))
@settings(deadline=None)
def test_it_does_not_matter_from_where_one_looks(rule: Rule, early: int, later: int) -> None:
    """What comes after a and lies after b comes after b as well: the occurrences are a fixed set."""
    if isinstance(rule, Every) and rule.anchor > early:
        return  # before its anchor there is nothing
    late = early + later
    at = next_after(rule, early)
    while at is not None and at <= late:
        at = next_after(rule, at)
    assert at == next_after(rule, late)


@given(rules, moments, st.integers(0, 500_000_000))
@examples.MANY
def test_the_latest_and_the_count_are_those_of_going_through_all(rule: Rule, start: int, later: int) -> None:
    first = next_after(rule, start)
    if first is None:
        return
    now = first + later
    every = [first]
    while (at := next_after(rule, every[-1])) is not None and at <= now:
        every.append(at)
    assert latest(rule, first, now) == every[-1]
    assert counted(rule, first, every[-1]) == min(len(every), MOST_COUNTED + 1)


@given(rules)
def test_the_stored_form_is_read_back(rule: Rule) -> None:
    assert decode(encode(rule)) == rule


def _berlin(year: int, month: int, day: int, hour: int, minute: int = 0, fold: int = 0) -> int:
    at = datetime(year, month, day, hour, minute, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    return round(at.timestamp() * 1000)


def test_clock_changes_follow_debians_cron() -> None:
    nightly = Cron("30 2 * * *", "Europe/Berlin")
    forward = next_after(nightly, _berlin(2026, 3, 28, 12))
    assert forward == _berlin(2026, 3, 29, 3)  # 2:30 does not exist that night
    back = next_after(nightly, _berlin(2026, 10, 24, 12))
    assert back is not None
    assert back == _berlin(2026, 10, 25, 2, 30)
    assert next_after(nightly, back) == _berlin(2026, 10, 26, 2, 30)  # not a second time in the doubled hour
    hourly = Cron("0 * * * *", "Europe/Berlin")
    assert next_after(hourly, _berlin(2026, 10, 25, 2)) == _berlin(2026, 10, 25, 2, fold=1)


NIGHTS = (
    ("Europe/Berlin", datetime(2026, 10, 24, 23, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 28, 23, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 13, tzinfo=UTC)),  # by half an hour
)


@pytest.mark.parametrize("expression", ["30 1 * * *", "15 2 * * *", "45 1,2,3 * * *"])
@pytest.mark.parametrize(("zone", "night"), NIGHTS)
def test_in_a_night_in_which_clocks_change_the_next_one_is_later_and_each_is_there_once(
    expression: str, zone: str, night: datetime
) -> None:
    rule, began, step = Cron(expression, zone), round(night.timestamp() * 1000), 10 * 60_000
    through: list[int] = []
    at = next_after(rule, began)
    while at is not None and at < began + 6 * 3_600_000:
        through.append(at)
        at = next_after(rule, at)
    for after in range(began, began + 6 * 3_600_000, step):
        found = next_after(rule, after)
        assert found == next((one for one in through if one > after), found)
        assert found is not None
        assert found > after, "what is looked for behind a moment is not claimed a second time"


def test_a_year_of_minutes_is_counted_only_so_far() -> None:
    rule = Cron("* * * * *", "UTC")
    now = FIRST + 365 * 86_400_000
    first = next_after(rule, FIRST)
    assert first is not None
    assert now - latest(rule, first, now) < 60_000
    assert counted(rule, first, latest(rule, first, now)) == MOST_COUNTED + 1


@given(st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)), st.sampled_from(ZONES))
def test_a_time_of_day_is_what_the_clocks_show(day: datetime, zone: str) -> None:
    found = at_clock(day, day.hour, day.minute, zone)
    assert list(found) == sorted(set(found))
    for at in found:
        shown = datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).replace(tzinfo=None, second=0, microsecond=0, fold=0)
        wanted = day.replace(second=0, microsecond=0)
        gap = datetime.fromtimestamp(at / 1000 - 60, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
        assert shown == wanted or (shown > wanted and gap < wanted)  # or the first minute after a gap


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("20 minutes", 1200), ("1 hour and 30 min", 5400), ("2h15m", 8100), ("an hour", 3600), ("90s", 90), ("2 days, 1 h", 176_400)],
)  # fmt: skip
def test_durations_are_read(words: str, seconds: int) -> None:
    assert duration_seconds(words) == seconds


@pytest.mark.parametrize("words", ["", "soon", "5", "five minutes", "5 minutes later", "-5 minutes"])
def test_what_is_no_duration_is_told(words: str) -> None:
    with pytest.raises(BadTime, match="no duration"):
        duration_seconds(words)


@pytest.mark.parametrize(
    "rule",
    [Every(59), Cron("* * * *", "UTC"), Cron("0 0 31 2 *", "UTC"), Cron("99 * * * *", "UTC"), Cron("* * * * *", "No/Where"),
     Cron("* * * * * *", "UTC")],
)  # fmt: skip
def test_what_means_nothing_is_refused(rule: Rule) -> None:
    with pytest.raises(BadTime):
        check(rule)


ALL_ZONES = sorted(available_timezones() - {"localtime", "Factory"})


@given(st.sampled_from(ALL_ZONES), st.lists(st.booleans(), min_size=1))
def test_a_zone_is_known_in_any_letters_by_the_one_name_that_it_has(name: str, large: list[bool]) -> None:
    typed = "".join(mark.upper() if large[n % len(large)] else mark.lower() for n, mark in enumerate(name))
    assert zone_named(f" {typed.replace('_', ' ')} ") == zone_named(name) == name


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("posix/Europe/Berlin", "Europe/Berlin"), ("RIGHT/europe/berlin", "Europe/Berlin"), ("berlin", "Europe/Berlin"),
        ("new york", "America/New_York"), ("Europe/Berln", "Europe/Berlin"), ("Kolkatta", "Asia/Kolkata"), ("Europe/Berlin (CET)", "Europe/Berlin"),
        ("localtime", ""), ("LocalTime", ""), ("Factory", ""), ("posixrules", ""), ("CEST", ""), ("leapseconds", ""), ("zone.tab", ""),
        ("Europe", ""), ("Europe/", ""), ("", ""), ("..", ""), ("../../etc/localtime", ""), ("/usr/share/zoneinfo/UTC", ""), ("a\0b", ""),
        ("Mars/Olympus", ""), ("x" * 500, ""),
    ],
)  # fmt: skip
def test_what_is_no_zone_is_said_with_the_one_that_may_be_meant(typed: str, near: str) -> None:
    with pytest.raises(NoSuchZone) as told:
        zone_named(typed)
    assert told.value.near == near
    assert (f"did you mean {near}?" if near else "names look like Europe/Berlin") in str(told.value)


def test_what_was_stored_under_a_name_that_is_taken_no_more_goes_on() -> None:
    assert decode("cron posix/Europe/Berlin 0 8 * * *") == Cron("0 8 * * *", "posix/Europe/Berlin")


@pytest.mark.parametrize("zone", ["Etc/UTC", "Zulu", "UTC"])
def test_a_machine_whose_zone_is_a_name_for_utc_says_utc(zone: str) -> None:
    assert moment(0, zone).endswith("(UTC)")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (9_000, "2 h 30 min"),
        (2 * 86_400 - 1, "47 h 59 min"),
        (2 * 86_400, "2 days"),
        (9 * 86_400 + 5, "9 days"),
    ],
)
def test_how_long_something_takes_is_told_roughly(seconds: int, words: str) -> None:
    assert span(seconds) == words
