"""What an operator reads of a storage that is away: what does not go, how it goes on, and when it is over."""

from __future__ import annotations

import io
import json
from typing import Any

import structlog
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.redaction import Redactor
from gateway.config.types import LogFormat, LogLevel
from gateway.observe.logging import AGAIN_AND_AGAIN, OVER_SECONDS, Outages, configure

KINDS = [*sorted(AGAIN_AND_AGAIN), "keeper.storage_unavailable", "toy.not_stored"]


def said(outages: Outages, name: str, method: str = "warning") -> dict[str, Any] | None:
    event: dict[str, Any] = {"event": name}
    return event if outages.worth_a_line(method, event) else None


@given(st.lists(st.sampled_from(KINDS), max_size=600))
def test_each_kind_is_said_and_of_all_few_lines_and_the_end_has_the_count(met: list[str]) -> None:
    outages = Outages(lambda: 0.0)
    lines = [line for name in met if (line := said(outages, name)) is not None]
    assert {line["event"] for line in lines} == set(met)
    assert len(lines) <= len(set(met)) + len(met).bit_length()
    assert said(outages, "storage.pulse_back") == {
        "event": "storage.pulse_back",
        **({"times": len(met)} if met else {}),
    }
    assert said(outages, "storage.works_again") == {"event": "storage.works_again"}, "it is counted once"


def test_what_is_no_trouble_of_the_storage_or_an_error_is_always_said() -> None:
    outages = Outages(lambda: 0.0)
    for _ in range(9):
        assert said(outages, "turn.ended")
        assert said(outages, "command.not_stored", "error")


def test_a_second_outage_is_told_as_the_first_one_was() -> None:
    now = [0.0]
    outages = Outages(lambda: now[0])
    assert [said(outages, "slices.not_looked") is not None for _ in range(7)] == [
        True, True, False, True, False, False, False,
    ]  # fmt: skip
    now[0] += OVER_SECONDS + 1
    assert said(outages, "slices.not_looked") == {"event": "slices.not_looked"}


def test_what_is_not_worth_a_line_is_not_written() -> None:
    stream, before = io.StringIO(), structlog.get_config()
    try:
        configure(LogLevel.INFO, LogFormat.JSON, Redactor.of([]), stream)
        for _ in range(100):
            structlog.get_logger("gateway").warning("slices.not_looked", error="away")
    finally:
        structlog.configure(**before)
    assert [json.loads(line).get("times") for line in stream.getvalue().splitlines()] == [None, 2, 4, 8, 16, 32, 64]
