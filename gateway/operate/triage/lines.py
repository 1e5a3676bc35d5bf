"""JSON log lines into failures. Pure: bytes in, `LogReading` out; reading files and pipes is `gateway.operate.triage.reading`.

Theory. Nearly all lines of a healthy gateway tell of no failure, so what can be passed over is seen by comparing bytes at a fixed
place: a line of ours begins with its time, level and event, in this order (`gateway.observe.logging`). Whatever does not look so is
parsed, and so judged rightly however it was reshaped on its way.

Known to be weak: a line that a rotation has cut in two is no event any more, and is counted as not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import UTC, datetime
from typing import TypeAlias, cast

import orjson

from adapters.contract.chat import Cause
from agent_core.explain.why import asker_words
from agent_core.failures.exits import EXITS, ExitCode
from agent_core.failures.notices import ExitClass
from agent_core.failures.troubles import RemedyOutcome
from agent_core.records import dataclass
from agent_core.text.durations import at_time
from gateway.observe.logcatalogue import event_of
from gateway.operate.triage.grouping import Group, Groups, SeenFailure, add
from gateway.operate.triage.issues import (
    NO_FAILURE,
    OWN_FAULT,
    POINTERS,
    STORAGE,
    delivery_issue,
    dropped_issue,
    event_issue,
    turn_issue,
)

Line: TypeAlias = dict[str, object]

_STAMP = slice(14, 38)
"""Where the time is: ``{"timestamp":"2026-11-20T10:00:00.123Z",``."""
_LEVEL_AT = 40
_HEAD = b'{"timestamp":"'
_ENDED_WELL = b'"level":"info","event":"turn.ended"'
_QUIET = (b'"level":"info"', b'"level":"debug"')
_TELLING = (_ENDED_WELL, b'"level":"info","event":"chat.refused"')
"""Quiet lines that may tell of a failure."""
_NO_TROUBLE = b'"troubles":[]'
_LOUD = frozenset({"warning", "error", "critical"})


@dataclass(slots=True)
class LogReading:
    """What some lines told."""

    groups: Groups = field(default_factory=dict[str, Group])
    lines: int = 0
    unread: int = 0
    """Lines that are no log events."""
    turns: int = 0
    """Turns that ended."""
    newest: str = ""
    """The latest time of any line, as it is written."""

    @property
    def newest_ms(self) -> int:
        """That time in milliseconds; 0 if no line had one."""
        try:
            return _milliseconds(self.newest)
        except ValueError:
            return 0


def sift(found: LogReading, lines: Iterable[bytes], since: str = "") -> None:
    """Put what the lines tell into `found`; those before `since` (`stamp_of`) are counted and passed over."""
    after = since.encode()
    newest = found.newest.encode()
    for line in lines:
        found.lines += 1
        if line.startswith(_QUIET, _LEVEL_AT) and line.startswith(_HEAD):
            well = line.startswith(_ENDED_WELL, _LEVEL_AT) and _NO_TROUBLE in line
            if well or not line.startswith(_TELLING, _LEVEL_AT):
                stamp = line[_STAMP]
                newest = max(newest, stamp)
                found.turns += well and stamp >= after
                continue
        newest = max(newest, _parsed(found, line, since).encode())
    found.newest = newest.decode("ascii", "replace")


def _parsed(found: LogReading, line: bytes, since: str) -> str:
    """Take in one line whatever it looks like; its time, or nothing."""
    if not line.strip():
        found.lines -= 1
        return ""
    event = _event_of(line)
    stamp = event.get("timestamp") if event is not None else None
    if event is None or not isinstance(stamp, str) or not isinstance(event.get("event"), str):
        found.unread += 1
        return ""
    try:
        at = _milliseconds(stamp)
    except ValueError:
        found.unread += 1
        return ""
    if stamp >= since:
        found.turns += event["event"] == "turn.ended"
        for seen in failures_of(event, at):
            add(found.groups, seen)
    return stamp


def _event_of(line: bytes) -> Line | None:
    """The event of a line, also where something stands before it or it is wrapped (journald's JSON, container logs)."""
    start = line.find(b"{")
    if start < 0:
        return None
    try:
        found: object = orjson.loads(line[start:])
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    event = cast("Line", found)
    if "event" not in event:
        inner = event.get("MESSAGE", event.get("log"))
        return _event_of(inner.encode()) if isinstance(inner, str) and inner.startswith("{") else None
    return event


def failures_of(event: Line, at: int) -> Iterator[SeenFailure]:
    name, level = _text(event, "event"), _text(event, "level")
    if name == "turn.ended":
        yield from _of_turn(event, at)
    elif name == "delivery.failed":
        chat = _text(event, "chat")
        cause, surface = _text(event, "cause"), chat.partition("/")[0]
        yield SeenFailure(
            delivery_issue(surface, cause), at, cause != Cause.BLOCKED.value, chat, _text(event, "origin"), surface,
            words=_text(event, "words"),
        )  # fmt: skip
    elif name == "chat.refused":
        if _text(event, "reason") not in NO_FAILURE:
            account = _text(event, "account")
            yield SeenFailure(dropped_issue(_text(event, "reason")), at, surface=account.partition("/")[0])
    elif level in _LOUD and name not in POINTERS:
        yield _of_event(event, name, level, at)


def _of_turn(event: Line, at: int) -> Iterator[SeenFailure]:
    told = event.get("troubles")
    conversation, turn, surface = (_text(event, key) for key in ("session", "turn", "surface"))
    asker = asker_words(_text(event, "caller"), _text(event, "agent"))
    ended = False
    for one in cast("list[object]", told) if isinstance(told, list) else []:
        fingerprint, remedy, outcome = [*str(one).rsplit(" ", 2), "", ""][:3]
        hurt = outcome == "ended"
        ended |= hurt
        yield SeenFailure(
            turn_issue(fingerprint), at, hurt, conversation, turn, surface, "" if remedy == "-" else remedy,
            RemedyOutcome.NOT_HELPED.value if hurt else outcome, words=_text(event, "cause"), asker=asker,
        )  # fmt: skip
    if not ended and not ended_well(_text(event, "exit")):
        fingerprint = _text(event, "fingerprint") or _text(event, "exit")
        yield SeenFailure(
            turn_issue(fingerprint), at, True, conversation, turn, surface, words=_text(event, "cause"), asker=asker
        )


def ended_well(code: str) -> bool:
    """Whether an exit is what a person wanted. One that is not known is none."""
    try:
        return EXITS[ExitCode(code)].kind in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED)
    except ValueError:
        return False


def _of_event(event: Line, name: str, level: str, at: int) -> SeenFailure:
    known = event_of(name)
    values = tuple(_value(event, key, name) for key in known.by.split()) if known is not None else ()
    evidence = name in OWN_FAULT
    issue = turn_issue(ExitCode.INTERNAL_ERROR.value) if evidence else event_issue(name, level, values)
    words = _text(event, "words") or _text(event, "error") or _text(event, "message")
    if issue is STORAGE:  # other words are what a person was told
        words = _text(event, "error")
    if not words and "exception" in event:
        words = _text(event, "exception").strip().rpartition("\n")[2]
    surface = (_text(event, "chat") or _text(event, "adapter") or _text(event, "account")).partition("/")[0]
    hurt = level != "warning" or not name.startswith("library.")  # what a library only remarks stands behind all else
    return SeenFailure(
        issue, at, hurt, _text(event, "session"), _text(event, "turn"), surface, words=words, evidence=evidence
    )


def _value(event: Line, key: str, name: str) -> str:
    value = _text(event, key)
    return value.partition(".")[0] if name.startswith("library.") else value


def _text(event: Line, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _milliseconds(stamp: str) -> int:
    """Raises ValueError for what is no time."""
    moment = datetime.fromisoformat(stamp)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def stamp_of(at: int) -> str:
    """A time as lines have it."""
    moment = at_time(at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
