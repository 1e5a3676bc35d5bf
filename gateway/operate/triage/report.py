"""Groups of failures as text for a terminal of 100 columns, or as one JSON object. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import orjson

from agent_core.records import dataclass
from agent_core.text.durations import at_time
from gateway.observe.logging import escaped
from gateway.operate.triage.grouping import Group, Groups, Tried, ranked, tried

WIDTH = 100
SURFACES = 4


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at, and what was found."""

    groups: Groups
    source: str
    now: int
    turns: int
    """Turns that ended in what was looked at."""
    notes: Sequence[str] = ()


def text(report: Report, limit: int) -> str:
    """The report for people."""
    return "\n".join(_lines(report, limit))


def _lines(report: Report, limit: int) -> Iterator[str]:
    groups = ranked(report.groups, report.now)
    turns = _count(report.turns, "turn")
    if not groups:
        yield from _wrapped(f"Nothing went wrong: {turns}; {report.source}.", "")
    else:
        failures = _count(sum(group.times for group in groups), "failure")
        head = f"{_count(len(groups), 'group')} of {failures}; {turns} ended; {report.source}."
        yield from _wrapped(f"{head} The most harmful first:", "")
    for number, group in enumerate(groups[:limit], 1):
        yield ""
        yield from _group(number, group)
    if len(groups) > limit:
        yield ""
        yield f"… and {_count(len(groups) - limit, 'more group')}: --limit {len(groups)} shows them all."
    if report.notes:
        yield ""
    for note in report.notes:
        yield from _wrapped(note, "")
    if any(group.turns for group in groups[:limit]):
        yield from _wrapped("One turn in detail: outspoken replay TURN", "")


def _group(number: int, group: Group) -> Iterator[str]:
    yield from _wrapped(escaped(group.issue.title), f"{number:2}. ")
    where = f" in {_count(group.conversations, 'conversation')}" if group.conversations else ""
    hurt = (
        f", {_number(len(group.hurt))} of them hurt" if group.hurt else ", nobody hurt" if group.conversations else ""
    )
    yield from _wrapped(
        f"{_count(group.times, 'time')}{where}{hurt} · first {moment(group.first_at)}, last {moment(group.last_at)}",
        "    ",
    )
    if group.surfaces:
        common = group.surfaces.most_common()
        common.sort(key=lambda one: (-one[1], one[0]))
        shown = ", ".join(f"{escaped(name)} ({_number(times)})" for name, times in common[:SURFACES])
        more = f" and {len(common) - SURFACES} more" if len(common) > SURFACES else ""
        yield from _wrapped(f"seen on {shown}{more}", "    ")
    remedies = tried(group)
    if remedies:
        yield from _wrapped("tried: " + "; ".join(_tried(one) for one in remedies), "    ")
    if group.words[1]:
        yield from _wrapped("said: " + textwrap.shorten(escaped(group.words[1]), 3 * WIDTH, placeholder=" …"), "    ")
    if group.turns:
        yield from _wrapped("turns: " + ", ".join(escaped(_turn(group, one)) for one in group.examples), "    ")
    yield from _wrapped(group.issue.action, "    → ", "      ")


def _turn(group: Group, turn: str) -> str:
    """A turn, with who asked for it."""
    return f"{turn} ({asker})" if (asker := group.askers.get(turn)) else turn


def _tried(one: Tried) -> str:
    name = escaped(one.remedy.replace("_", " "))
    result = f"helped {_number(one.helped)} of {_number(one.known)}" if one.known else "not known whether it helped"
    return f"{name} {_count(one.times, 'time')}, {result}"


def _wrapped(words: str, first: str, later: str | None = None) -> list[str]:
    return textwrap.wrap(
        words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first) if later is None else later,
        break_on_hyphens=False,
    )  # fmt: skip


def _count(number: int, what: str) -> str:
    return f"{_number(number)} {what}{'' if number == 1 else 's'}"


def _number(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def moment(at: int) -> str:
    """A time for people, UTC, to the minute."""
    return at_time(at).strftime("%Y-%m-%d %H:%M UTC")


def as_json(report: Report, limit: int) -> bytes:
    """The report for programs: one object on one line."""
    groups = ranked(report.groups, report.now)
    body = {
        "source": report.source,
        "turns": report.turns,
        "groups_found": len(groups),
        "failures": sum(group.times for group in groups),
        "groups": [_group_json(group, report.now) for group in groups[:limit]],
        "notes": list(report.notes),
    }
    return orjson.dumps(body)


def _group_json(group: Group, now: int) -> dict[str, object]:
    return {
        "key": group.issue.key,
        "title": group.issue.title,
        "count": group.times,
        "conversations": group.conversations,
        "conversations_hurt": len(group.hurt),
        "harm": round(group.harm(now), 3),
        "first_at": group.first_at,
        "last_at": group.last_at,
        "surfaces": dict(sorted(group.surfaces.items())),
        "tried": [
            {"remedy": one.remedy, "times": one.times, "helped": one.helped, "known": one.known} for one in tried(group)
        ],
        "words": group.words[1],
        "turns": list(group.examples),
        "asked_by": {turn: group.askers[turn] for turn in group.examples if turn in group.askers},
        "action": group.issue.action,
    }
