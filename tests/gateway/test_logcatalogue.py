"""The catalogue of log events against the source, and the page against the catalogue."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.observe.logcatalogue import FIELDS, FROM_LIBRARIES, GENAI, catalogue, markdown

CATALOGUE = catalogue()
BY_NAME = {event.name: event for event in CATALOGUE}

ROOT = Path(__file__).parents[2]
LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})


@dataclass(frozen=True)
class Call:
    """A line of the log, as the source writes it."""

    where: str
    name: str
    level: str
    fields: frozenset[str]


def calls_in(source: str, where: str) -> Iterator[Call]:
    """Every use of a module's ``log``. One that does not say its event and fields in so many words is an error."""
    tree = ast.parse(source)
    understood: set[int] = set()
    for node in ast.walk(tree):
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
        fields = frozenset(str(keyword.arg) for keyword in node.keywords) - {"exc_info"}
        for level, name in zip(levels, names, strict=True):
            yield Call(place, name, "error" if level == "exception" else level, fields)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "log" and isinstance(node.ctx, ast.Load):
            assert id(node) in understood, f"{where}:{node.lineno}: `log` is used otherwise than in a call of a level"


def levels_of(func: ast.expr) -> list[str] | None:
    """The level that a call writes at; two for ``(log.info if … else log.warning)``; None if it is no call of the log."""
    if isinstance(func, ast.IfExp):
        sides = [levels_of(func.body), levels_of(func.orelse)]
        return [level for side in sides for level in side or ()] if all(sides) else None
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "log":
        return [func.attr] if func.attr in LEVELS else None
    return None


def names_of(call: ast.Call) -> list[str] | None:
    """The event's name, or two for ``"a" if … else "b"``."""
    if len(call.args) != 1:
        return None
    found = call.args[0]
    sides = [found.body, found.orelse] if isinstance(found, ast.IfExp) else [found]
    names = [side.value for side in sides if isinstance(side, ast.Constant) and isinstance(side.value, str)]
    return names if len(names) == len(sides) else None


def all_calls() -> list[Call]:
    files = [path for package in ("agent_core", "adapters", "gateway") for path in (ROOT / package).rglob("*.py")]
    return [call for path in files for call in calls_in(path.read_text(), str(path.relative_to(ROOT)))]


def test_the_catalogue_says_what_the_source_says() -> None:
    by_name: dict[str, list[Call]] = defaultdict(list)
    for call in all_calls():
        by_name[call.name].append(call)
    missing = {name: calls[0].where for name, calls in by_name.items() if name not in BY_NAME}
    assert not missing, "not in gateway/observe/logcatalogue.py"
    assert set(BY_NAME) == {*by_name, *FROM_LIBRARIES}, "in the catalogue, but not in the source"
    for name, calls in by_name.items():
        event = BY_NAME[name]
        places = [call.where for call in calls]
        fields = [call.fields for call in calls]
        assert set(event.levels) == {call.level for call in calls}, (name, places)
        assert set(event.fields) == fields[0].intersection(*fields), (name, places)
        assert {*event.fields, *event.sometimes} == fields[0].union(*fields), (
            name,
            places,
        )


def test_the_catalogue_is_whole() -> None:
    assert len(BY_NAME) == len(CATALOGUE)
    used = {name for event in CATALOGUE for name in (*event.fields, *event.sometimes)}
    assert used == set(FIELDS), "each field is explained once, and none for nothing"
    assert not used & {"stack", "stack_info", "exception", "exc_info", "event", "level", "timestamp"}, (
        "structlog's own names"
    )
    for event in CATALOGUE:
        area, _, what = event.name.partition(".")
        assert area, event.name
        assert what, event.name
        assert bool(event.action) == event.trouble, f"{event.name}: from warning on, and only then, say what to do"
        assert set(event.by) <= set(event.fields)
        assert {"|", "\n"}.isdisjoint(event.when + event.action)
    for name, names in GENAI.items():
        assert set(names) <= {*BY_NAME[name].fields, *BY_NAME[name].sometimes}
        assert all(theirs.startswith("gen_ai.") for theirs in names.values())


def test_the_page_is_printed_from_the_catalogue() -> None:
    page = (ROOT / "docs" / "logs.md").read_text()
    assert page == markdown() + "\n", "run: python -m gateway.observe.logcatalogue > docs/logs.md"


@pytest.mark.parametrize(
    "planted",
    [
        "log.info(name, a=1)",
        "log.info('a.b', 'words')",
        "log.info('a.b', **facts)",
        "say = log.info",
        "log.bind(a=1).info('a.b')",
        "log.log(20, 'a.b')",
    ],
)
def test_a_call_that_hides_its_event_is_found(planted: str) -> None:
    with pytest.raises(AssertionError):
        list(calls_in(planted, "planted.py"))


def test_calls_are_read_with_all_their_cases() -> None:
    source = "(log.info if a else log.warning)('x.a' if a else 'x.b', f=1)\nlog.exception('x.c')"
    assert [(call.name, call.level, set(call.fields)) for call in calls_in(source, "planted.py")] == [
        ("x.a", "info", {"f"}),
        ("x.b", "warning", {"f"}),
        ("x.c", "error", set()),
    ]
