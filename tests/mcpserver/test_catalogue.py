"""What other agents are offered, and what they may hand us: pure laws."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.mcpserver.catalogue import SERVED, ServedName, ServedTool, offered_to
from adapters.mcpserver.doing import GatewayWay, done
from adapters.mcpserver.reading import ArgumentsRefused, read

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
NAMES = st.sampled_from(["question", "session", "agent", "key", "limit", "after", "id", "to", "text", "since", "other"])


async def nobody(_: str) -> None: ...


@given(st.sampled_from(SERVED), st.dictionaries(NAMES | st.text(max_size=5), VALUES, max_size=5))
def test_whatever_is_sent_is_read_or_refused_in_words(tool: ServedTool, sent: dict[str, Any]):
    try:
        found = read(tool, sent)
    except ArgumentsRefused:
        return
    assert set(found.texts) | set(found.numbers) <= set(tool.takes)
    assert all(found.text(name).strip() for name in tool.needs)
    named = {**found.texts, **found.numbers}
    jsonschema.validate(named, tool.input_schema())


@pytest.mark.parametrize("tool", SERVED, ids=lambda tool: tool.name)
async def test_without_a_gateway_each_call_says_so_and_fits_its_schema(tool: ServedTool):
    way = GatewayWay("http://127.0.0.1:9", None, None, operates=True)
    arguments = dict.fromkeys(tool.needs, "x")
    reply = await done(tool, arguments, way, nobody)
    assert reply.failed
    assert "outspoken run" in reply.text
    jsonschema.validate(dict(reply.structured), tool.output_schema())


def test_who_may_talk_is_not_offered_what_operators_have():
    assert ServedName.ASK in {one.name for one in offered_to(talks=True, operates=False)}
    assert not {ServedName.SEND, ServedName.TRIAGE} & {one.name for one in offered_to(talks=True, operates=False)}
    assert {one.name for one in offered_to(talks=False, operates=True)} == {
        ServedName.EXPLAIN, ServedName.SEND, ServedName.TRIAGE,
    }  # fmt: skip
    assert offered_to(talks=False, operates=False) == ()


def test_only_what_reads_says_that_it_only_reads():
    assert {one.name for one in SERVED if one.read_only} == {
        ServedName.LIST_SESSIONS, ServedName.READ_SESSION, ServedName.EXPLAIN, ServedName.TRIAGE,
    }  # fmt: skip


NUMBERS = [(one, name) for one in SERVED for name, takes in one.takes.items() if takes["type"] == "integer"]  # type: ignore[index, call-overload]


@pytest.mark.parametrize(("tool", "name"), NUMBERS, ids=lambda one: str(getattr(one, "name", one)))
def test_a_number_is_a_whole_one_within_its_bounds_and_nothing_that_only_counts_as_one(tool: ServedTool, name: str):
    schema = tool.takes[name]
    assert isinstance(schema, dict)
    least, most = schema["minimum"], schema["maximum"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    needed: dict[str, Any] = dict.fromkeys(tool.needs, "x")
    for taken in (least, most, float(most)):
        assert read(tool, {**needed, name: taken}).numbers[name] == taken
    for refused in (least - 1, most + 1, least + 0.5, True, False, str(least)):
        with pytest.raises(ArgumentsRefused):
            read(tool, {**needed, name: refused})
