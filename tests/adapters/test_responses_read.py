"""What is asked at ``/v1/responses``, read: there is a request or a problem with a path, whatever the bytes; tools of every kind that programs bring."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.api.asked import ApiRequest
from adapters.http.api.responsesread import HOSTED, SPACES, read
from adapters.http.common import Problem

FIELDS = ("input", "instructions", "tools", "tool_choice", "text", "reasoning", "metadata", "conversation", "previous_response_id", "store",
          "background", "max_output_tokens", "include", "model")  # fmt: skip
KINDS = ("message", "function_call", "function_call_output", "custom_tool_call", "reasoning", "mcp_call", "item_reference", "namespace", "function",
         "custom", "web_search", "input_text", "json_schema")  # fmt: skip
keys = st.sampled_from(
    (*FIELDS, "type", "role", "content", "name", "call_id", "output", "arguments", "namespace", "tools", "format", "id")
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


@given(st.dictionaries(st.sampled_from(FIELDS), values, max_size=8))
def test_whatever_comes_is_a_request_or_a_problem_that_names_a_path(body: dict[str, object]) -> None:
    found = read(json.dumps(body).encode(), "")
    assert isinstance(found, ApiRequest) or (found.status == 400 and found.param)


def asked(**body: object) -> ApiRequest:
    found = read(orjson.dumps({"input": "hello", **body}), "")
    assert isinstance(found, ApiRequest), found
    return found


def names(request: ApiRequest) -> list[object]:
    return [function["name"] for tool in request.tools if isinstance(function := tool["function"], dict)]


FUNCTION: dict[str, object] = {"type": "function", "name": "f", "parameters": {}}
SPACE: dict[str, object] = {
    "type": "namespace", "name": "crew", "description": "d",
    "tools": [FUNCTION | {"name": "close"}, {"type": "custom", "name": "note"}],
}  # fmt: skip


def test_tools_in_a_namespace_are_offered_under_flat_names_and_known_again() -> None:
    call = {"type": "function_call", "call_id": "c", "namespace": "crew", "name": "close", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "done"}
    request = asked(tools=[SPACE], input=[{"role": "user", "content": "x"}, call, output])
    assert names(request) == ["crew__close", "crew__note"]
    assert request.again is not None
    assert request.again[SPACES] == {"crew__close": ["crew", "close"], "crew__note": ["crew", "note"]}
    assert any("crew__close" in str(message.get("tool_calls")) for message in request.history)


@pytest.mark.parametrize("kind", sorted(HOSTED))
def test_a_hosted_tool_that_programs_offer_unasked_is_left_out_and_named(kind: str) -> None:
    request = asked(tools=[FUNCTION, {"type": kind}])
    assert names(request) == ["f"]
    assert request.left_out == (f"tools[].{kind}",)
    assert asked(tools=[{"type": kind}]).wish == asked().wish, "it did not say that there are to be no tools"


@pytest.mark.parametrize("kind", ["file_search", "code_interpreter", "computer_use_preview", "image_generation", "mcp"])
def test_other_hosted_tools_are_refused_by_name(kind: str) -> None:
    found = read(orjson.dumps({"input": "x", "tools": [{"type": kind}]}), "")
    assert isinstance(found, Problem)
    assert (found.param, kind in found.message) == ("tools[0].type", True)
