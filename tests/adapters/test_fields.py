"""Each field of the published schemas has a row: it is used, passed on, or refused with its name."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam
from openai.types.chat import completion_create_params as chat_params
from openai.types.chat.chat_completion_assistant_message_param import ContentArrayOfContentPart
from openai.types.chat.chat_completion_tool_union_param import ChatCompletionToolUnionParam
from openai.types.responses import response_create_params as response_params
from openai.types.responses.response_input_content_param import ResponseInputContentParam
from openai.types.responses.response_input_param import ResponseInputItemParam
from openai.types.responses.tool_param import ToolParam

from adapters.http.common import Problem
from adapters.http.fields import (
    CHAT,
    INCLUDED,
    ITEM_FIELDS,
    MESSAGES,
    PART_FIELDS,
    PARTS,
    REASONING_FIELDS,
    RESPONSE_ITEMS,
    RESPONSE_PARTS,
    RESPONSE_TOOLS,
    RESPONSES,
    TEXT_FIELDS,
    TOOL_CHOICES,
    TOOL_FIELDS,
    TOOLS,
    FieldFate,
    FieldRow,
    SortedFields,
    sort,
)
from adapters.http.openai_request import ChatRequest, parse
from agent_core.jsonvalue import Json

HELLO = [{"role": "user", "content": "hello"}]


def _each(kind: Any) -> Iterator[Any]:
    """The typed dictionaries of a union."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        yield from _each(typing.get_args(kind)[0])
    elif typing.get_args(kind) and origin is not typing.Literal:
        for one in typing.get_args(kind):
            yield from _each(one)
    elif kind is not type(None):
        yield kind


def _literals(kind: Any) -> set[str]:
    if typing.get_origin(kind) is typing.Literal:
        return {str(one) for one in typing.get_args(kind)}
    return {word for one in typing.get_args(kind) for word in _literals(one)}


def _kinds(union: Any) -> set[str]:
    return {word for one in _each(union) for word in _literals(typing.get_type_hints(one)["type"])}


@pytest.mark.parametrize(
    ("schema", "table"),
    [
        (chat_params.CompletionCreateParamsStreaming, CHAT),
        (chat_params.CompletionCreateParamsNonStreaming, CHAT),
        (response_params.ResponseCreateParamsStreaming, RESPONSES),
        (response_params.ResponseCreateParamsNonStreaming, RESPONSES),
    ],
)
def test_each_field_of_the_published_schema_has_a_row(schema: Any, table: Mapping[str, FieldRow]) -> None:
    assert set(typing.get_type_hints(schema)) - set(table) == set()


@pytest.mark.parametrize(
    ("union", "table"),
    [
        (ChatCompletionContentPartParam, PARTS),
        (ContentArrayOfContentPart, PARTS),
        (ChatCompletionToolUnionParam, TOOLS),
        (ResponseInputItemParam, RESPONSE_ITEMS),
        (ResponseInputContentParam, RESPONSE_PARTS),
        (ToolParam, RESPONSE_TOOLS),
    ],
)
def test_each_kind_in_the_published_schema_has_a_row(union: Any, table: Mapping[str, FieldRow]) -> None:
    assert _kinds(union) - set(table) == set()


@pytest.mark.parametrize(
    ("union", "tables"),
    [(ResponseInputItemParam, ITEM_FIELDS), (ResponseInputContentParam, PART_FIELDS), (ToolParam, TOOL_FIELDS)],
)
def test_each_field_of_items_parts_and_tools_that_are_used_has_a_row(
    union: Any, tables: Mapping[str, Mapping[str, FieldRow]]
) -> None:
    seen: set[str] = set()
    for one in _each(union):
        for kind in _kinds(one) & set(tables):
            seen.add(kind)
            assert set(typing.get_type_hints(one)) - set(tables[kind]) == set(), kind
    older = {"input_audio", "output_text", "refusal", "summary_text", "reasoning_text"}  # of other unions
    assert set(tables) - older == seen - older


def test_each_way_to_choose_each_wish_and_each_field_of_text_and_reasoning_has_a_row() -> None:
    published = typing.get_type_hints(response_params.ResponseCreateParamsNonStreaming)
    choices = [one for one in _each(published["tool_choice"]) if hasattr(one, "__annotations__")]
    kinds = {word for one in choices for word in _literals(typing.get_type_hints(one)["type"])}
    assert kinds - set(TOOL_CHOICES) == set()
    assert _literals(published["include"]) == set(INCLUDED)
    for name, table in (("text", TEXT_FIELDS), ("reasoning", REASONING_FIELDS)):
        one = next(one for one in _each(published[name]) if hasattr(one, "__annotations__"))
        assert set(typing.get_type_hints(one)) == set(table)


def test_each_field_of_each_message_of_the_published_schema_has_a_row() -> None:
    for message in _each(ChatCompletionMessageParam):
        hints = typing.get_type_hints(message)
        for role in _literals(hints["role"]):
            assert set(hints) - set(MESSAGES[role]) == set(), role


def test_what_is_refused_says_why_and_what_is_used_or_passed_on_does_not_have_to() -> None:
    for table in (CHAT, RESPONSES, PARTS, TOOLS, RESPONSE_ITEMS, RESPONSE_PARTS, RESPONSE_TOOLS, *MESSAGES.values()):
        for name, row in table.items():
            assert row.why or row.fate is not FieldFate.REFUSED, name


values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2)
names = st.sampled_from([*CHAT, "chat_id", "features", "temprature"])


@given(st.dictionaries(names, values, max_size=8))
def test_a_field_is_passed_on_as_it_came_or_it_is_named_or_it_says_nothing(request: dict[str, Any]) -> None:
    found = sort(request, CHAT)
    if found.complaint is not None:
        assert found.complaint.name in request
        assert found.complaint.words
        return
    for name, given_ in request.items():
        row = CHAT.get(name)
        if given_ is None or (row is not None and row.fate is FieldFate.USED):
            assert name not in found.passed
        elif row is None or row.fate is FieldFate.PASSED:
            assert found.passed[name] == given_
            assert (name in found.unknown) == (row is None)
        else:
            assert given_ in (False, "", [], {}), f"{name} was dropped"


def _parsed(**more: Any) -> ChatRequest | Problem:
    return parse(json.dumps({"messages": HELLO, **more}).encode())


@pytest.mark.parametrize("name", [name for name, row in CHAT.items() if row.fate is FieldFate.REFUSED])
def test_a_refused_field_is_named(name: str) -> None:
    found = _parsed(**{name: "something"})
    assert isinstance(found, Problem)
    assert (found.status, found.param) == (400, name)
    assert name in found.message


def _messages(*messages: dict[str, Any]) -> ChatRequest:
    found = parse(json.dumps({"messages": list(messages)}).encode())
    assert isinstance(found, ChatRequest), found
    return found


@pytest.mark.parametrize("role", ["assistant", "system", "developer"])
def test_a_conversation_whose_last_word_is_not_the_persons_is_answered(role: str) -> None:
    before, latest = _messages(*HELLO, {"role": role, "content": "The ferry lea"}).split()
    assert [m["role"] for m in before] == ["user", role]
    assert [m.role for m in latest] == ["user"]
    assert str(latest[0].content).startswith("[outspoken] ")


def test_calls_and_results_in_the_older_spelling_find_each_other() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}}
    found = _messages(*HELLO, called, {"role": "function", "name": "weather", "content": "fine"})
    before, latest = found.split()
    calls: Any = before[-1]["tool_calls"]
    assert [m.role for m in latest] == ["tool"]
    assert latest[0].tool_call_id == calls[0]["id"]


def test_a_refusal_that_comes_back_is_told_as_what_was_said() -> None:
    found = _messages(*HELLO, {"role": "assistant", "refusal": "I won't."}, *HELLO)
    assert found.messages[1]["content"] == "I won't."
    part = {"type": "refusal", "refusal": "No."}
    found = _messages(*HELLO, {"role": "assistant", "content": [part]}, *HELLO)
    assert found.messages[1]["content"] == [{"type": "text", "text": "No."}]


def test_a_field_of_a_message_that_nobody_knows_is_left_out_and_named() -> None:
    found = _messages(
        {"role": "user", "content": "hello", "timestamp": 3}, {"role": "user", "content": "you?", "timestamp": 4}
    )
    assert found.left_out == ("messages[].timestamp",)
    assert "timestamp" not in found.messages[0]


def test_a_kind_of_part_and_a_kind_of_tool_that_are_not_taken_are_named() -> None:
    found = parse(json.dumps({"messages": [{"role": "user", "content": [{"type": "hologram"}]}]}).encode())
    assert isinstance(found, Problem)
    assert "messages[0].content[0]" in found.message
    found = _parsed(tools=[{"type": "custom", "custom": {"name": "x"}}])
    assert isinstance(found, Problem)
    assert "custom" in found.message


@pytest.mark.parametrize("nothing", [None, False, "", [], {}])
def test_a_refused_field_that_says_nothing_is_as_good_as_not_there(nothing: Json) -> None:
    """Clients fill in defaults."""
    for table in (CHAT, RESPONSES):
        refused = [name for name, row in table.items() if row.fate is FieldFate.REFUSED]
        assert refused
        assert sort(dict.fromkeys(refused, nothing), table) == SortedFields({}, ())
