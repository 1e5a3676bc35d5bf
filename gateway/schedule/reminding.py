"""What the words behind ``/remind`` mean. Pure.

A small grammar, and honest about it: what is not understood is answered with examples, never guessed at. Days and times are
those of one zone, and every answer names it.

    in 20 minutes WORDS            in 1 hour and 30 minutes WORDS
    at 14:05 WORDS                 today 14:05 WORDS              tomorrow at 9:00 WORDS
    monday 9:00 WORDS              2026-12-24 18:00 WORDS
    every day 9:00 WORDS           every weekday 9:00 WORDS       every monday 9:00 WORDS
    every 2 hours WORDS
    (nothing) or list              cancel 2                       cancel all

Laws (tests/gateway/test_reminding.py): what is accepted lies in the future; a time of day is the next one that the zone's
clocks will show; the words are kept as they were written.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TypeAlias

from agent_core.records import dataclass
from agent_core.text.patterns import late
from agent_core.text.tongue import command, number, speak
from gateway.schedule import times
from gateway.schedule.times import DURATION, SHORTEST_SECONDS, BadTime, Cron, Every, Once, Rule, moment, zone_of

MOST_WORDS = 1_000
"""Characters of a reminder."""
MOST_AHEAD_DAYS = 5 * 366
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EXAMPLES = """{/remind in 20 minutes tea}
{/remind at 14:05 call Ada}
{/remind tomorrow 9:00 the report}
{/remind 2026-12-24 18:00 presents}
{/remind every weekday 9:00 stand-up}
{/remind every 2 hours stretch}"""


def examples(why: str) -> str:
    """What can be said, and why it is told; times are understood in English alone."""
    head, tail = (
        speak("Say when, and then what:"),
        speak("{/remind} shows what is set, {/remind cancel 1} takes it back."),
    )
    return f"{why}\n{head}\n{EXAMPLES}\n{tail}"


@dataclass(frozen=True, slots=True)
class NewReminder:
    """A reminder that somebody wants."""

    rule: Rule
    words: str


@dataclass(frozen=True, slots=True)
class ShowAll:
    """They want to see what is set."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """They want to take one back; None: all."""

    number: int | None


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """What is said to that."""

    words: str


Meaning: TypeAlias = NewReminder | ShowAll | Cancel | NotUnderstood

_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?"
_DAY_NAMES = "|".join(f"{day}|{day[:3]}" for day in DAYS)
_REST = r"(?:\s*[,:]|\s+|$)(?P<rest>.*)"
_IN = late(rf"in\s+(?P<duration>{DURATION}){_REST}", re.DOTALL | re.IGNORECASE)
_AT = late(
    rf"(?:(?:on\s+|next\s+)?(?P<day>today|tomorrow|{_DAY_NAMES})\s+(?:at\s+)?|at\s+){_TIME}{_REST}",
    re.DOTALL | re.IGNORECASE,
)
_DATE = late(
    rf"(?:on\s+)?(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<date>\d{{1,2}})\s+(?:at\s+)?{_TIME}{_REST}",
    re.DOTALL | re.IGNORECASE,
)
_EVERY_DAY = late(
    rf"every\s+(?P<day>day|weekday|weekend|{_DAY_NAMES})s?\s+(?:at\s+)?{_TIME}{_REST}", re.DOTALL | re.IGNORECASE
)
_EVERY = late(rf"every\s+(?:(?P<duration>{DURATION})|(?P<unit>minute|hour)){_REST}", re.DOTALL | re.IGNORECASE)
_CANCEL = late(r"cancel\s+(?:(?P<number>\d{1,6})|(?P<all>all))", re.IGNORECASE)
_CRON = late(r"cron:?\s+(?P<expression>\S+(?: \S+){4})", re.IGNORECASE)
_ISO = late(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d(?::\d\d)?)(?:\.\d{1,9})? ?(?P<offset>Z|[+-]\d\d:?\d\d)",
    re.IGNORECASE,
)
_PLAINER = (
    (late(r"(?<=\d)T(?=\d\d:)"), " "),
    (late(r"(?<= \d\d:\d\d):\d\d$"), ""),
    (late(r"\bhalf an hour\b", re.IGNORECASE), "30 minutes"),
    (late(r"\bnoon\b", re.IGNORECASE), "12:00"),
    (late(r"\bmidnight\b", re.IGNORECASE), "0:00"),
)
"""What models write, as people do."""


class _Wrong(Exception):
    """Understood, and not possible; the words say why."""


def meaning(text: str, now: int, zone: str) -> Meaning:
    """What somebody wants who says `text` behind ``/remind`` at `now`, with the clocks of `zone`."""
    said = text.strip()
    if said.lower() in ("", "list", "show"):
        return ShowAll()
    if found := _CANCEL.fullmatch(said):
        return Cancel(int(found["number"]) if found["number"] else None)
    said = re.sub(r"^me\s+", "", said, flags=re.IGNORECASE)
    try:
        reminder = _reminder(said, now, zone)
    except (_Wrong, BadTime) as wrong:
        return NotUnderstood(str(wrong))
    if reminder is None:
        return NotUnderstood(examples(speak("I do not understand that time.")))
    if not reminder.words:
        return NotUnderstood(examples(speak("I understand the time, but not what to remind you of.")))
    if len(reminder.words) > MOST_WORDS:
        return NotUnderstood(
            speak(
                "That is too long for a reminder: {count} characters, {most} are possible.",
                count=number(len(reminder.words)),
                most=number(MOST_WORDS),
            )
        )
    return reminder


def when(text: str, now: int, zone: str) -> Rule | NotUnderstood:
    """The time that `text` names, alone; what is more exact than a person would write is understood as well (ISO 8601, cron)."""
    said = " ".join(text.split()).strip(" .,!")
    try:
        if found := _CRON.fullmatch(said):
            rule: Rule = Cron(found["expression"], zone)
            times.check(rule)
            return rule
        if found := _ISO.fullmatch(said):
            return _found_instant(found, now)
        for pattern, plain in _PLAINER:
            said = pattern.sub(plain, said)
        reminder = _reminder(said, now, zone)
    except (_Wrong, BadTime) as wrong:
        return NotUnderstood(str(wrong))
    if reminder is None:
        return NotUnderstood(f"{text[:60]!r} is not understood as a time. A time of day needs minutes, or am or pm.")
    if reminder.words:
        return NotUnderstood(f"{reminder.words[:60]!r} behind the time is not understood. Give the time alone.")
    return reminder.rule


def _found_instant(found: re.Match[str], now: int) -> Once:
    try:
        at = datetime.fromisoformat(f"{found['day']}T{found['clock']}{found['offset'].upper().replace('Z', '+00:00')}")
    except ValueError:
        raise _Wrong(speak("There is no such day or time. Write times like 2026-12-24T18:00:00+01:00.")) from None
    return _once(round(at.timestamp() * 1000), now)


def _reminder(said: str, now: int, zone: str) -> NewReminder | None:
    if found := _IN.fullmatch(said):
        seconds = times.duration_seconds(found["duration"])
        if seconds < 1:
            raise _Wrong(speak("That is now. Say a time that is still to come."))
        return NewReminder(_once(now + seconds * 1000, now), _words(found))
    if found := _AT.fullmatch(said):
        return _found_day(found, now, zone)
    if found := _DATE.fullmatch(said):
        return _found_date(found, now, zone)
    if found := _EVERY_DAY.fullmatch(said):
        return _found_every_day(found, zone)
    if found := _EVERY.fullmatch(said):
        seconds = times.duration_seconds(found["duration"] or f"1 {found['unit']}")
        if seconds < SHORTEST_SECONDS:
            raise _Wrong(speak("Not more often than every minute, please."))
        if seconds > MOST_AHEAD_DAYS * 86_400:
            raise _Wrong(speak("That is too far away for me; I keep reminders for five years at most."))
        return NewReminder(Every(seconds, now), _words(found))
    return None


def _once(at: int, now: int) -> Once:
    if at <= now:
        raise _Wrong(speak("That is in the past. Say a time that is still to come."))
    if at - now > MOST_AHEAD_DAYS * 86_400_000:
        raise _Wrong(speak("That is too far away for me; I keep reminders for five years at most."))
    return Once(at)


def _words(found: re.Match[str]) -> str:
    return re.sub(r"^(?:to|that|about|of)\s+", "", found["rest"].strip(), flags=re.IGNORECASE)


def _clock(found: re.Match[str]) -> tuple[int, int] | None:
    """(hour, minute); None if it is not written as a time: ``9`` alone could be anything."""
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if found["minute"] is None and not half:
        return None
    minute = int(found["minute"] or 0)
    if half:
        if not 1 <= hour <= 12:
            raise _Wrong(speak("There is no {time}. Write times like 14:05 or 2:05 pm.", time=f"{hour} {half}"))
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        raise _Wrong(speak("There is no {time}. Write times like 14:05 or 2:05 pm.", time=f"{hour}:{minute:02}"))
    return hour, minute


def _found_day(found: re.Match[str], now: int, zone: str) -> NewReminder | None:
    clock = _clock(found)
    if clock is None:
        return None
    day = (found["day"] or "").lower()
    today = datetime.fromtimestamp(now / 1000, zone_of(zone))
    match day:
        case "":
            ahead = (0, 1)
        case "today":
            ahead = (0,)
        case "tomorrow":
            ahead = (1,)
        case _:
            first = (_weekday(day) - today.weekday()) % 7
            ahead = (first, first + 7)
    moments = [at for days in ahead for at in times.at_clock(today + timedelta(days=days), *clock, zone)]
    coming = [at for at in moments if at > now]
    if not coming:
        raise _Wrong(speak("That is in the past: it is {now}.", now=moment(now, zone)))
    return NewReminder(_once(coming[0], now), _words(found))


def _found_date(found: re.Match[str], now: int, zone: str) -> NewReminder | None:
    clock = _clock(found)
    if clock is None:
        return None
    try:
        day = datetime(int(found["year"]), int(found["month"]), int(found["date"]))
        moments = times.at_clock(day, *clock, zone)
    except (ValueError, OverflowError):
        raise _Wrong(speak("There is no such day. Write dates like 2026-12-24.")) from None
    coming = [at for at in moments if at > now]
    if not coming:
        raise _Wrong(speak("That is in the past: it is {now}.", now=moment(now, zone)))
    return NewReminder(_once(coming[0], now), _words(found))


def _found_every_day(found: re.Match[str], zone: str) -> NewReminder | None:
    clock = _clock(found)
    if clock is None:
        return None
    named = {"day": "*", "weekday": "1-5", "weekend": "0,6"}
    day = found["day"].lower()
    days = named[day] if day in named else str((_weekday(day) + 1) % 7)
    return NewReminder(Cron(f"{clock[1]} {clock[0]} * * {days}", zone), _words(found))


def _weekday(name: str) -> int:
    """Monday is 0."""
    return next(i for i, day in enumerate(DAYS) if day.startswith(name[:3]))


def confirmed(number: int, first: int, rule: Rule, words: str, zone: str) -> str:
    """What is said when a reminder is stored; it always names the zone."""
    when, takes_back = moment(first, zone), command(f"remind cancel {number}")
    said = (
        speak("⏰ I will remind you on {when}: {words}", when=when, words=words)
        if isinstance(rule, Once)
        else speak("⏰ I will remind you on {when}, and then again and again: {words}", when=when, words=words)
    )
    tail = speak("(Reminder {number}; {command} takes it back.)", number=number, command=takes_back)
    return f"{said}\n{tail}"
