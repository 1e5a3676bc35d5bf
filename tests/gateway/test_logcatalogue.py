"""The words for log events against the calls that write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.observe.logcatalogue import GENAI, catalogue, our_words
from tests.printed.logs import calls_in, lines_written

CATALOGUE = catalogue()
FIELDS = our_words().fields
BY_NAME = {event.name: event for event in CATALOGUE}
WRITTEN = lines_written()
ROOT = Path(__file__).parents[2]


def test_every_call_has_its_words_and_every_word_its_call() -> None:
    assert set(BY_NAME) == set(WRITTEN)


def test_the_catalogue_is_whole() -> None:
    assert len(BY_NAME) == len(CATALOGUE)
    used = {name for event in WRITTEN.values() for name in (*event.always, *event.sometimes)}
    assert used == set(FIELDS), "each field is explained once, and none for nothing"
    assert not used & {"stack", "stack_info", "exception", "exc_info", "event", "level", "timestamp"}, (
        "structlog's own names"
    )
    for event in CATALOGUE:
        area, _, what = event.name.partition(".")
        assert area, event.name
        assert what, event.name
        trouble = not {"warning", "error"}.isdisjoint(WRITTEN[event.name].levels)
        assert bool(event.action) == trouble, f"{event.name}: from warning on, and only then, say what to do"
        assert set(event.by.split()) <= set(WRITTEN[event.name].always)
        assert {"|", "\n"}.isdisjoint(event.when + event.action)
    for name, names in GENAI.items():
        assert set(names) <= {*WRITTEN[name].always, *WRITTEN[name].sometimes}
        assert all(theirs.startswith("gen_ai.") for theirs in names.values())


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
