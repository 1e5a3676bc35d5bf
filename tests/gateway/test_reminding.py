"""What people mean by /remind."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.schedule.reminding import Cancel, NewReminder, NotUnderstood, ShowAll, confirmed, meaning, when
from gateway.schedule.times import Cron, Every, Once, Rule, next_after
from tests.gateway.test_times import ZONES, moments

BERLIN = ZoneInfo("Europe/Berlin")
NOW = round(datetime(2026, 11, 21, 13, 0, tzinfo=BERLIN).timestamp() * 1000)  # a Saturday


def at(year: int, month: int, day: int, hour: int, minute: int = 0) -> int:
    return round(datetime(year, month, day, hour, minute, tzinfo=BERLIN).timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "due", "words"),
    [
        ("in 20 minutes tea", NOW + 1_200_000, "tea"),
        ("me in an hour to call Ada", NOW + 3_600_000, "call Ada"),
        ("in 5 minutes a day off", NOW + 300_000, "a day off"),
        ("at 14:05 tea", at(2026, 11, 21, 14, 5), "tea"),
        ("at 12:05 tea", at(2026, 11, 22, 12, 5), "tea"),
        ("at 2:05 pm: tea", at(2026, 11, 21, 14, 5), "tea"),
        ("today 18:00 tea", at(2026, 11, 21, 18), "tea"),
        ("tomorrow 9:00 two\nlines", at(2026, 11, 22, 9), "two\nlines"),
        ("on monday at 9:00, tea", at(2026, 11, 23, 9), "tea"),
        ("sat 12:00 tea", at(2026, 11, 28, 12), "tea"),
        ("2026-12-24 18:00 presents", at(2026, 12, 24, 18), "presents"),
        ("2027-03-28 2:30 in the gap", at(2027, 3, 28, 3), "in the gap"),
    ],
)
def test_a_single_time(text: str, due: int, words: str) -> None:
    assert meaning(text, NOW, "Europe/Berlin") == NewReminder(Once(due), words)


def test_what_comes_again() -> None:
    assert meaning("every weekday 9:00 a", NOW, "UTC") == NewReminder(Cron("0 9 * * 1-5", "UTC"), "a")
    assert meaning("every day at 7:30 am a", NOW, "UTC") == NewReminder(Cron("30 7 * * *", "UTC"), "a")
    assert meaning("every sunday 9:00 a", NOW, "UTC") == NewReminder(Cron("0 9 * * 0", "UTC"), "a")
    assert meaning("every 2 hours a", NOW, "UTC") == NewReminder(Every(7200, NOW), "a")


def test_what_is_no_reminder() -> None:
    assert meaning("", NOW, "UTC") == meaning("list", NOW, "UTC") == ShowAll()
    assert meaning("cancel 3", NOW, "UTC") == Cancel(3)
    assert meaning("cancel all", NOW, "UTC") == Cancel(None)
    assert meaning("cancel 0", NOW, "UTC") == Cancel(0), "a number that none has: nobody means all by it"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tea", "do not understand"), ("at 9 tea", "do not understand"), ("in 20 minutes", "not what to remind you of"), ("today 9:00 tea", "in the past"),
        ("2026-11-20 9:00 tea", "in the past"), ("2026-02-30 9:00 tea", "no such day"), ("at 25:00 tea", "no 25:00"),
        ("at 13 pm tea", "There is no 13 pm"), ("every 5 seconds tea", "every minute"), ("in 9999 weeks tea", "too far"),
        ("every 9999 weeks tea", "too far"),
        ("in 0 minutes tea", "That is now"), ("in 1 minute " + "x" * 2000, "too long"), ("9999-12-31 23:59 x", "too far"),
    ],
)  # fmt: skip
def test_what_is_not_possible_is_said(text: str, said: str) -> None:
    found = meaning(text, NOW, "Europe/Berlin")
    assert isinstance(found, NotUnderstood)
    assert said in found.words


@given(st.text(max_size=60), moments, st.sampled_from(ZONES))
def test_anything_at_all_is_answered(text: str, now: int, zone: str) -> None:
    meaning(text, now, zone)


FORMS = (
    "in {a} minutes x", "at {h}:{m:02} x", "tomorrow {h}:{m:02} x", "friday {h}:{m:02} x", "every day {h}:{m:02} x",
    "every weekend {h}:{m:02} x", "every {a} hours x", "2031-{mo:02}-{a} {h}:{m:02} x",
)  # fmt: skip


@given(
    st.sampled_from(FORMS), st.integers(1, 28), st.integers(0, 23), st.integers(0, 59), st.integers(1, 12), moments, st.sampled_from(ZONES)
)  # fmt: skip
def test_what_is_accepted_is_to_come_and_is_what_the_clock_shows(
    form: str, a: int, h: int, m: int, mo: int, now: int, zone: str
) -> None:
    found = meaning(form.format(a=a, h=h, m=m, mo=mo), now, zone)
    if isinstance(found, NotUnderstood):
        assert "too far" in found.words  # nothing else is wrong with these
        return
    assert isinstance(found, NewReminder)
    first = next_after(found.rule, now)
    assert first is not None
    assert first > now
    assert zone in confirmed(1, first, found.rule, found.words, zone)
    shown = datetime.fromtimestamp(first / 1000, ZoneInfo(zone))
    if "{h}" in form and (shown.hour, shown.minute) != (h, m):
        before = datetime.fromtimestamp(first / 1000 - 60, ZoneInfo(zone))
        assert shown.utcoffset() != before.utcoffset()  # the clocks were put forward over it


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("in half an hour", Once(NOW + 1_800_000)),
        ("tomorrow at noon", Once(at(2026, 11, 22, 12))),
        ("2026-12-24T18:00", Once(at(2026, 12, 24, 18))),
        ("2026-12-24T18:00:00", Once(at(2026, 12, 24, 18))),
        ("2026-12-24T18:00:00Z", Once(at(2026, 12, 24, 19))),
        ("2026-12-24 18:00+05:30", Once(at(2026, 12, 24, 13, 30))),
        ("2027-03-28 2:30", Once(at(2027, 3, 28, 3))),
        ("cron 0 9 * * 1-5", Cron("0 9 * * 1-5", "Europe/Berlin")),
        ("every weekday 9:00", Cron("0 9 * * 1-5", "Europe/Berlin")),
        ("every 2 hours", Every(7200, NOW)),
    ],
)
def test_a_time_alone_may_be_as_exact_as_programs_write_it(text: str, rule: Rule) -> None:
    assert when(text, NOW, "Europe/Berlin") == rule


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("at 9", "not understood as a time"),
        ("soon", "not understood as a time"),
        ("tomorrow 9:00 pm sharp", "'sharp' behind the time"),
        ("2026-11-20T10:00:00Z", "in the past"),
        ("2026-02-30T10:00:00Z", "no such day"),
        ("cron 0 9 31 2 *", "no cron expression"),
        ("cron 0 9 * *", "not understood as a time"),
        ("every 5 seconds", "Not more often"),
        ("in 9 years", "not understood as a time"),
        ("2040-01-01 10:00", "too far away"),
    ],
)
def test_a_time_that_is_none_is_told_in_words(text: str, said: str) -> None:
    told = when(text, NOW, "Europe/Berlin")
    assert isinstance(told, NotUnderstood)
    assert said in told.words


@given(
    st.lists(
        st.sampled_from(
            [
                "in",
                "at",
                "every",
                "cron",
                "2026-12-24",
                "T",
                "Z",
                "9:00",
                "25:61",
                "2",
                "*",
                "1-5",
                "monday",
                "day",
                "hours",
                "noon",
                "half",
                "an",
                "+",
                ",",
                "00",
            ]
        ),
        max_size=7,
    ),
    moments,
    st.sampled_from(ZONES),
)
def test_whatever_is_said_a_time_alone_is_to_come_or_is_told_in_words(pieces: list[str], now: int, zone: str) -> None:
    told = when(" ".join(pieces), now, zone)
    if isinstance(told, NotUnderstood):
        assert told.words
    else:
        assert (next_after(told, now) or 0) > now


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("in 20 minutes to call Ada about the report to send", "call Ada about the report to send"),
        ("tomorrow 9:00 that of all things", "of all things"),
        ("every day 9:00 about time to go", "time to go"),
        ("at 14:05: the report, of which I spoke", "the report, of which I spoke"),
    ],
)
def test_a_reminders_words_are_kept_behind_the_one_that_joins_them_to_their_time(typed: str, kept: str) -> None:
    found = meaning(typed, 1_700_000_000_000, "UTC")
    assert isinstance(found, NewReminder)
    assert found.words == kept
