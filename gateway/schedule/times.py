"""When things happen again: rules, and their occurrences. Pure; times are milliseconds since the Unix epoch.

A rule stands for a fixed set of moments, and it does not matter from where one looks: what comes after `a` and lies after `b`
comes after `b` as well. Cron expressions are those of Debian's cron (five fields), also where a clock is put forward or back:
a job at a fixed time that falls into the missing hour runs right after it, one in the doubled hour runs once; a job with a
star in minute or hour follows real time.

Laws (tests/gateway/test_times.py): `next_after` is after; `latest` is the last one that is not after; `counted` is how many
there are, up to its bound; the stored form is read back as the same rule.

Known to be weak: where clocks are put back by half an hour (Lord Howe), an expression with a fixed hour and a star in its minutes leaves some of that
night out, or not, depending on from where one looks: so the library says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeAlias, assert_never
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from agent_core.records import dataclass
from agent_core.text.durations import at_time
from agent_core.text.nearest import nearest
from agent_core.text.patterns import late
from agent_core.text.tongue import moment_form, speak, speak_many

LONGEST_LETTERS = 4
"""Up to so many, what is no zone is taken for the letters of one (CEST), which say an offset and not whose clocks are meant: nothing is like it."""
LONGEST_NAME = 40
"""No zone's name is longer; what is, is like none, and shown in part."""
_NO_ZONES = frozenset({"localtime", "factory", "posixrules"})
_COUNTED_OTHERWISE = ("posix/", "right/")
SHORTEST_SECONDS = 60
"""Between two occurrences of what is repeated."""
MOST_COUNTED = 1_000
"""More missed occurrences than this are told as “more than”."""
LOOK_BACK_SECONDS = (3 * 3600, 2 * 86_400, 40 * 86_400, 400 * 86_400)
"""How far back the latest occurrence is looked for, in turn: a rule that is dense is found in the first."""


class IfMissed(StrEnum):
    """What becomes of a scheduled occurrence whose time passed while nothing could be done."""

    RUN = "run"
    """It runs late."""
    SKIP = "skip"
    """It does not run, and the chat is told so."""


class BadTime(Exception):
    """A zone or an expression that is none; the words say why."""


class NoSuchZone(BadTime):
    """No time zone has this name."""

    def __init__(self, name: str, near: str = "") -> None:
        """`near`: the one that may be meant."""
        shown = repr(name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…")
        words = (
            speak("There is no time zone {name}; did you mean {near}?", name=shown, near=near)
            if near
            else speak("There is no time zone {name}; names look like Europe/Berlin or UTC.", name=shown)
        )
        super().__init__(words)
        self.near = near


@dataclass(frozen=True, slots=True)
class Once:
    """A single moment."""

    at: int


@dataclass(frozen=True, slots=True)
class Every:
    """Every so many seconds, counted from `anchor` (ms), which is none itself."""

    seconds: int
    anchor: int = 0


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, by the clocks of a zone."""

    expression: str
    zone: str


Rule: TypeAlias = Once | Every | Cron


@functools.cache
def zone_of(name: str) -> ZoneInfo:
    """The time zone that is stored under this name. Raises `BadTime`. What somebody types is read by `zone_named`."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise NoSuchZone(name) from error


def zone_named(words: str) -> str:
    """The name in the tz database of the zone that somebody means, in whatever letters they wrote it. Raises `NoSuchZone`.

    A name is one of `zoneinfo.available_timezones`: beside these, its folders hold files that are no zones, or the same zones counted otherwise
    (``localtime``, ``posix/…``, ``right/…``).
    """
    exact, wanted = words.strip(), words.strip().replace(" ", "_").casefold()
    if not wanted.startswith(_COUNTED_OTHERWISE) and wanted not in _NO_ZONES and _is_there(exact):
        return exact  # so that nobody has to look through all of them
    known = _zone_names()
    if wanted in known:
        return known[wanted]
    plain = next((wanted.removeprefix(one) for one in _COUNTED_OTHERWISE if wanted.startswith(one)), wanted)
    by_city = {name.rpartition("/")[2]: name for name in sorted(known, reverse=True) if "/" in name}
    near = known.get(plain) or known.get(by_city.get(plain, ""))
    if near is None and LONGEST_LETTERS < len(plain) <= LONGEST_NAME:
        close = nearest(plain, known, least=0.8) or [by_city[one] for one in nearest(plain, by_city, least=0.8)]
        near = known[close[0]] if close else None
    raise NoSuchZone(words, near or "")


@functools.cache
def _zone_names() -> Mapping[str, str]:
    """All of them by their small letters; of a machine without a list of time zones, UTC."""
    known = {name.casefold(): name for name in sorted({*available_timezones(), "UTC"})}
    return {small: name for small, name in known.items() if small not in _NO_ZONES}


def _is_there(name: str) -> bool:
    try:
        zone_of(name)
    except NoSuchZone:
        return False
    return True


def check(rule: Rule) -> None:
    """Raises `BadTime` if a rule means nothing."""
    match rule:
        case Once():
            pass
        case Every(seconds):
            if seconds < SHORTEST_SECONDS:
                raise BadTime(f"It cannot happen more often than every {SHORTEST_SECONDS} seconds.")
        case Cron(expression, zone):
            zone_of(zone)
            if len(expression.split()) != 5:
                raise BadTime("A cron expression has five fields: minute, hour, day of month, month, day of week.")
            try:
                CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
            except CronSimError as error:
                raise BadTime(f"{expression!r} is no cron expression: {str(error).lower()}.") from error
            if next_after(rule, 0) is None:
                raise BadTime(f"{expression!r} never happens.")
        case _:
            assert_never(rule)


def next_after(rule: Rule, after: int) -> int | None:
    """The first occurrence later than `after`; None if there is none."""
    match rule:
        case Once(at):
            return at if at > after else None
        case Every(seconds, anchor):
            step = seconds * 1000
            return anchor + max(1, (after - anchor) // step + 1) * step
        case Cron():
            return _next_cron(rule, after)
        case _:
            assert_never(rule)


def _next_cron(rule: Cron, after: int) -> int | None:
    try:
        start = datetime.fromtimestamp(after / 1000, zone_of(rule.zone))
        for found in CronSim(rule.expression, start):
            at = round(found.timestamp() * 1000)
            if at > after:  # in a doubled hour, the expression's own time may be the first of the two
                return at
    except (OverflowError, ValueError):  # beyond the calendar
        return None
    return None


def latest(rule: Rule, first: int, now: int) -> int:
    """The last occurrence up to `now`; `first` is one, and not after `now`."""
    match rule:
        case Once():
            return first
        case Every(seconds):
            step = seconds * 1000
            return first + (now - first) // step * step
        case Cron():
            for seconds in LOOK_BACK_SECONDS:
                start = now - seconds * 1000
                if start <= first:
                    break
                if (found := _last_from(rule, start, now)) is not None:
                    return found
            return _last_from(rule, first, now) or first
        case _:
            assert_never(rule)


def _last_from(rule: Cron, start: int, now: int) -> int | None:
    """The last occurrence after `start` and up to `now`, by going through them."""
    found: int | None = None
    at = next_after(rule, start)
    while at is not None and at <= now:
        found = at
        at = next_after(rule, at)
    return found


def counted(rule: Rule, first: int, last: int) -> int:
    """How many occurrences there are from `first` to `last`, both of which are; at most `MOST_COUNTED` + 1."""
    match rule:
        case Once():
            return 1
        case Every(seconds):
            return min((last - first) // (seconds * 1000) + 1, MOST_COUNTED + 1)
        case Cron():
            count = 1
            at = next_after(rule, first)
            while at is not None and at <= last and count <= MOST_COUNTED:
                count += 1
                at = next_after(rule, at)
            return count
        case _:
            assert_never(rule)


# ---------------------------------------------------------------------- the stored form


def encode(rule: Rule) -> str:
    """A rule as one text."""
    match rule:
        case Once(at):
            return f"once {at}"
        case Every(seconds, anchor):
            return f"every {seconds} {anchor}"
        case Cron(expression, zone):
            return f"cron {zone} {expression}"
        case _:
            assert_never(rule)


def decode(text: str) -> Rule:
    """A rule from its stored form. Raises `BadTime`."""
    kind, _, rest = text.partition(" ")
    first, _, more = rest.partition(" ")
    try:
        match kind:
            case "once":
                return Once(int(first))
            case "every":
                rule: Rule = Every(int(first), int(more))
            case "cron":
                rule = Cron(more, first)
            case _:
                raise BadTime(f"{kind!r} is no kind of rule that this program knows.")
    except ValueError as error:
        raise BadTime(f"{text!r} is no rule.") from error
    check(rule)
    return rule


# ---------------------------------------------------------------------- words


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_NUMBER = r"(?:\d{1,6}|an?|one)"
_UNIT = r"(?:seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w)"
DURATION = rf"{_NUMBER}\s*{_UNIT}(?![a-z])(?:(?:\s*,)?(?:\s+and)?\s*\d{{1,6}}\s*{_UNIT}(?![a-z]))*"
"""A regular expression for a duration in words, in small letters: ``20 minutes``, ``1 hour and 30 min``, ``2h 15m``."""
_PAIR = late(rf"((?<!\d)\d{{1,6}}|(?<![a-z])(?:an?|one))\s*({_UNIT})(?![a-z])")


def duration_seconds(words: str) -> int:
    """Seconds of a duration in words. Raises `BadTime`."""
    text = words.strip().lower()
    if not re.fullmatch(DURATION, text):
        raise BadTime(
            speak(
                "{words} is no duration; say something like 20 minutes, 2 hours or 1 day.",
                words=repr(words.strip()[:40]),
            )
        )
    pairs: list[tuple[str, str]] = _PAIR.findall(re.sub(r"\band\b", " ", text))
    return sum((int(number) if number.isdigit() else 1) * _UNITS[unit[0]] for number, unit in pairs)


_UNIVERSAL = frozenset({"etc/utc", "etc/uct", "etc/universal", "etc/zulu", "uct", "universal", "zulu"})


def zone_shown(zone: str) -> str:
    """A zone as a person reads it: the tz database has eight names for UTC."""
    return "UTC" if zone.casefold() in _UNIVERSAL else zone


def moment(at: int, zone: str) -> str:
    """A moment for a person: ``Sat 21 Nov 2026, 14:05 (UTC)``."""
    return f"{at_time(at, zone_of(zone)):{moment_form()}} ({zone_shown(zone)})"


def span(seconds: int) -> str:
    """How long something took or takes, roughly, for a person."""
    if seconds < 120:
        return speak("{count} s", count=seconds)
    if seconds < 2 * 3600:
        return speak("{count} min", count=seconds // 60)
    if seconds < 2 * 86_400:
        hours, minutes = divmod(seconds // 60, 60)
        whole, rest = speak("{count} h", count=hours), speak("{count} min", count=minutes)
        return f"{whole} {rest}" if minutes else whole
    return speak_many("{count} day", "{count} days", seconds // 86_400)


def at_clock(day: datetime, hour: int, minute: int, zone: str) -> tuple[int, ...]:
    """The moments at which the clocks of a zone show a time on a day (of `day`): one; two where clocks are put back; where
    they are put forward over it, the first minute after the gap.
    """
    there = zone_of(zone)
    naive = datetime(day.year, day.month, day.day, hour, minute)
    found: list[int] = []
    for fold in (0, 1):
        local = naive.replace(tzinfo=there, fold=fold)
        while local.astimezone(UTC).astimezone(there).replace(tzinfo=None) != local.replace(tzinfo=None):
            local += timedelta(minutes=1)
            local = local.replace(fold=0)
        at = round(local.timestamp() * 1000)
        if at not in found:
            found.append(at)
    return tuple(found)
