"""Prints docs/logs.md: what the calls in the source say of each log event, and the words of the catalogue.

``python -m tests.printed.logs > docs/logs.md``. Why from the source: the call is the one declaration of an event, with its level and
its fields, so nobody writes them a second time. A call that hides them (`calls_in`) is an error.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway.observe.logcatalogue import GENAI, catalogue, our_words
from tests.source import nodes

ROOT = Path(__file__).parents[2]
LEVELS = ("debug", "info", "warning", "error", "critical")
_NAMED = re.compile(r"\blog\b")
"""What a module without it calls is no log."""
BY_LOGGING = ("warning", "error")
"""The levels of a library's own lines, which have no call: `gateway.observe.logging` writes them itself."""


@dataclass(frozen=True)
class LogCall:
    """A line of the log, as the source writes it."""

    where: str
    name: str
    level: str
    fields: tuple[str, ...]


def calls_in(source: str, where: str) -> Iterator[LogCall]:
    """Every use of a module's ``log``. One that does not say its event and fields in so many words is an error."""
    understood: set[int] = set()
    for node in nodes(source):
        if not isinstance(node, ast.Call):
            continue
        levels = levels_of(node.func)
        if levels is None:
            continue
        understood |= {id(inner) for inner in ast.walk(node.func)}
        place = f"{where}:{node.lineno}"
        names = names_of(node)
        assert names is not None, f"{place}: the event's name must be a literal, and its only positional argument"
        assert all(keyword.arg for keyword in node.keywords), f"{place}: fields must be named in the call"
        if len(names) == 1:
            names *= len(levels)
        if len(levels) == 1:
            levels *= len(names)
        # An exception that is told outside of its handler is the logger's own business.
        fields = tuple(str(keyword.arg) for keyword in node.keywords if keyword.arg != "exc_info")
        for level, name in zip(levels, names, strict=True):
            yield LogCall(place, name, "error" if level == "exception" else level, fields)
    for node in nodes(source):
        if isinstance(node, ast.Name) and node.id == "log" and isinstance(node.ctx, ast.Load):
            assert id(node) in understood, f"{where}:{node.lineno}: `log` is used otherwise than in a call of a level"


def levels_of(func: ast.expr) -> list[str] | None:
    """The level that a call writes at; two for ``(log.info if … else log.warning)``; None if it is no call of the log."""
    if isinstance(func, ast.IfExp):
        sides = [levels_of(func.body), levels_of(func.orelse)]
        return [level for side in sides for level in side or ()] if all(sides) else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "log":
        return [func.attr] if func.attr in (*LEVELS, "exception") else None
    return None


def names_of(call: ast.Call) -> list[str] | None:
    """The event's name, or two for ``"a" if … else "b"``."""
    if len(call.args) != 1:
        return None
    found = call.args[0]
    sides = [found.body, found.orelse] if isinstance(found, ast.IfExp) else [found]
    names = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
    return names if len(names) == len(sides) else None


@dataclass(frozen=True, slots=True)
class LogCalls:
    """What all calls of one event say of it."""

    levels: tuple[str, ...]
    always: tuple[str, ...]
    """The fields that every call has."""
    sometimes: tuple[str, ...]
    """The fields that only some have."""


@cache
def lines_written() -> Mapping[str, LogCalls]:
    """By the event's name."""
    found: dict[str, list[LogCall]] = {}
    for package in ("agent_core", "adapters", "gateway"):
        for path in sorted((ROOT / package).rglob("*.py")):
            source = path.read_text("utf-8")
            for call in calls_in(source, str(path.relative_to(ROOT))) if _NAMED.search(source) else ():
                found.setdefault(call.name, []).append(call)
    from_libraries = LogCalls(BY_LOGGING, ("logger", "message"), ())
    return {
        "library.message": from_libraries,
        "library.unreadable": LogCalls(BY_LOGGING[:1], from_libraries.always, ()),
        **{name: _together(calls) for name, calls in found.items()},
    }


def _together(calls: list[LogCall]) -> LogCalls:
    calls = sorted(calls, key=lambda call: (-len(call.fields), call.fields))  # so that moving a file changes no page
    fields = dict.fromkeys(field for call in calls for field in call.fields)
    always = tuple(field for field in fields if all(field in call.fields for call in calls))
    levels = {call.level for call in calls}
    return LogCalls(tuple(one for one in LEVELS if one in levels), always, tuple(f for f in fields if f not in always))


_HEAD = """# Log events

Written by `python -m tests.printed.logs > docs/logs.md`: names, levels and fields from the calls in the source, the words from
`gateway/observe/logevents.toml` and the platforms' `platform.py`.

One event is one line on standard error: JSON (`[log] format = "json"`, or whenever standard error is no terminal), or words for people. Names and
fields are part of the interface; the changelog tells when one changes. Every line begins with `timestamp` (ISO 8601, UTC, milliseconds),
`level` and `event`; a traceback is in `exception`. What people and the model say is never written unless `[log] show_text` is on; secrets never are.

**From a message to its receipt.** `message.accepted` has the platform's id of the message (`platform_key`) and its number (`inbox`);
`turn.started` has both and the `turn`; `turn.ended` is written exactly once for it; `delivery.sent` has the turn as `origin` and the platform's id
of what was sent (`platform_id`); `delivery.failed` is written exactly once for each part that was refused for good. So one id leads to all others:

    journalctl -u outspoken -o cat | grep '"platform_key":"12345"'      # the message: its number
    journalctl -u outspoken -o cat | jq -c 'select(.event=="turn.started" and (.inbox | index(17)))'
    journalctl -u outspoken -o cat | grep 't-0198…'                      # all of the turn, with its receipts

**OpenTelemetry.** In JSON, facts that have a name in the conventions for generative AI are written under that name too:
"""

_QUIET = """
**Quiet.** A gateway with nothing to do writes nothing. A trouble that comes again and again in a row (a platform
that cannot be reached) is written the 1st, 2nd, 4th, 8th … time, with `times`. What everybody says who needs a storage that is away counts
together, each kind is written once besides, and `times` in the line that says that it is back is how often it was.
"""


def markdown() -> str:
    """The page docs/logs.md."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _HEAD
    yield "| event | field | OpenTelemetry |\n|---|---|---|"
    for name, names in GENAI.items():
        for ours, theirs in names.items():
            yield f"| `{name}` | `{ours}` | `{theirs}` |"
    yield _QUIET
    yield "## Events\n\nFields in parentheses are there only in some of an event's lines.\n"
    yield "| event | level | when | fields |\n|---|---|---|---|"
    written = lines_written()
    for event in catalogue():
        line = written[event.name]
        fields = [f"`{name}`" for name in line.always] + [f"(`{name}`)" for name in line.sometimes]
        yield f"| `{event.name}` | {', '.join(line.levels)} | {event.when} | {', '.join(fields)} |"
    yield "\n## Fields\n\n| field | meaning |\n|---|---|"
    for name, means in sorted(our_words().fields.items()):
        yield f"| `{name}` | {means.replace('``', '`').replace('|', chr(92) + '|')} |"
    yield "\n## What to do\n\n| event | action |\n|---|---|"
    for event in catalogue():
        if event.action:
            yield f"| `{event.name}` | {event.action} |"


if __name__ == "__main__":
    sys.stdout.write(markdown())
