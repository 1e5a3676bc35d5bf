"""What is asked at ``/v1/responses``, read: there is a request or a problem with a path, whatever the bytes; tools of every kind that programs bring."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.api.asked import ApiRequest, KnownItems, Referring
from adapters.http.api.responsesread import SPACES, read
from adapters.http.common import Problem
from adapters.http.fields import ITEM_FIELDS, RESPONSE_ITEMS, RESPONSE_TOOLS, FieldFate
from agent_core.jsonvalue import Json
from agent_core.messages import THOUGHTS

KNOWN = KnownItems(items=dict.fromkeys(["r"]))
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
    found = read(json.dumps(body).encode(), "", KnownItems())
    assert isinstance(found, ApiRequest | Referring) or (found.status == 400 and found.param)


def asked(**body: object) -> ApiRequest:
    found = read(orjson.dumps({"input": "hello", **body}), "", KNOWN)
    assert isinstance(found, ApiRequest), found
    return found


def names(request: ApiRequest) -> list[object]:
    return [function["name"] for tool in request.tools if isinstance(function := tool["function"], dict)]


HOSTED = sorted(name for name, row in RESPONSE_TOOLS.items() if row.fate is FieldFate.LEFT_OUT)
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


@pytest.mark.parametrize("kind", HOSTED)
def test_a_hosted_tool_that_programs_offer_unasked_is_left_out_and_named(kind: str) -> None:
    request = asked(tools=[FUNCTION, {"type": kind}])
    assert names(request) == ["f"]
    assert request.left_out == (f"tools[].{kind}",)
    assert asked(tools=[{"type": kind}]).wish == asked().wish, "it did not say that there are to be no tools"


@pytest.mark.parametrize("kind", [kind for kind, row in RESPONSE_ITEMS.items() if row.fate is not FieldFate.REFUSED])
def test_what_an_item_says_that_no_model_is_told_is_left_out_and_named(kind: str) -> None:
    item = {"type": kind, "role": "user", "content": "x", "call_id": "c", "name": "f", "output": "x", "novelty": 1}
    request = asked(input=[{"role": "user", "content": "x"}, item | ({"id": "r"} if kind == "item_reference" else {})])
    assert kind not in ITEM_FIELDS or "input[].novelty" in request.left_out


def test_a_part_that_is_kept_elsewhere_is_refused_by_its_name() -> None:
    parts: list[tuple[dict[str, object], str]] = [
        ({"type": "input_image", "file_id": "f"}, "file_id"),
        ({"type": "input_file", "file_url": "https://x.example/a.pdf"}, "file_url"),
    ]
    for part, name in parts:
        found = read(orjson.dumps({"input": [{"role": "user", "content": [part]}]}), "", KNOWN)
        assert isinstance(found, Problem)
        assert found.param == f"input[0].content[0].{name}"


def test_only_the_tools_are_offered_that_a_choice_allows() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "g"}]}
    request = asked(tools=[FUNCTION, FUNCTION | {"name": "g"}], tool_choice=choice)
    assert names(request) == ["g"]
    assert request.parameters["tool_choice"] == "required"


def test_a_choice_with_a_slip_in_a_name_is_refused_although_it_allows_another() -> None:
    choice: Json = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": n} for n in "fx"]}
    found = read(orjson.dumps({"input": "x", "tools": [FUNCTION], "tool_choice": choice}), "", KNOWN)
    assert isinstance(found, Problem)
    assert (found.param, "'x'" in found.message, "'f'" in found.message) == ("tool_choice", True, False)


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("tools", [[FUNCTION], []])
def test_a_choice_that_allows_none_of_the_tools_is_refused_with_their_names(mode: str, tools: list[Json]) -> None:
    choice: Json = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "wether"}]}
    found = read(orjson.dumps({"input": "x", "tools": tools, "tool_choice": choice}), "", KNOWN)
    assert isinstance(found, Problem)
    assert (found.status, found.param) == (400, "tool_choice")
    assert "wether" in found.message


@pytest.mark.parametrize("kind", ["file_search", "apply_patch", "shell", "mcp"])
def test_a_choice_of_a_tool_that_is_not_here_is_refused_by_its_name(kind: str) -> None:
    found = read(orjson.dumps({"input": "x", "tool_choice": {"type": kind, "server_label": "s"}}), "", KNOWN)
    assert isinstance(found, Problem)
    assert (found.param, kind in found.message) == ("tool_choice", True)


def test_probabilities_are_asked_for_by_either_name() -> None:
    assert asked(include=["message.output_text.logprobs"]).parameters["logprobs"] is True
    assert asked(top_logprobs=3).parameters == {"logprobs": True, "top_logprobs": 3}
    assert "logprobs" not in asked(top_logprobs=0).parameters
    assert asked(include=["web_search_call.results"]).left_out == ("include.web_search_call.results",)


@pytest.mark.parametrize("include", [["nothing.of.it"], ["reasoning.encrypted_content", 1], "x"])
def test_what_is_to_be_included_and_is_not_known_is_refused_by_its_name(include: Json) -> None:
    found = read(orjson.dumps({"input": "x", "include": include}), "", KNOWN)
    assert isinstance(found, Problem)
    assert (found.status, found.param) == (400, "include")


def test_items_of_kept_responses_are_put_where_they_are_named() -> None:
    body = orjson.dumps(
        {
            "input": [
                {"role": "user", "content": "x"},
                {"id": "msg_1"},
                {"type": "item_reference", "id": "rs_1"},
                {"role": "user", "content": "y"},
            ]
        }
    )
    assert read(body, "", KnownItems()) == Referring(("msg_1", "rs_1"))
    said: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "An answer."}]}
    found = read(body, "", KnownItems(items={"msg_1": said, "rs_1": None}))
    assert isinstance(found, ApiRequest)
    assert [message["role"] for message in found.history] == ["user", "assistant"]
    missing = read(body, "", KnownItems(items={"msg_1": said}))
    assert isinstance(missing, Problem)
    assert (missing.param, missing.code) == ("input[2].id", "item_not_found")


def test_sealed_thoughts_go_back_with_the_reply_to_which_they_belong() -> None:
    signed: dict[str, Json] = {name: {"google": {"thought_signature": f"s {name}"}} for name in "cd"}
    thoughts: Json = {
        "message": {"reasoning_content": "I look."},
        "calls": {name: {"extra_content": one} for name, one in signed.items()},
    }
    called = [{"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in "cde"]
    outputs = [{"type": "function_call_output", "call_id": name, "output": "done"} for name in "cde"]
    question = {"role": "user", "content": "x"}
    for before in ([], [{"role": "assistant", "content": [{"type": "output_text", "text": "Wait."}]}]):
        items: list[object] = [
            question,
            *before,
            {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "blob"},
            *called,
            *outputs,
        ]
        body = orjson.dumps({"input": items, "store": False})
        found = read(body, "", KnownItems(opened=lambda text: thoughts if text == "blob" else None))
        assert isinstance(found, ApiRequest)
        reply = found.history[-1]
        thought, calls = reply[THOUGHTS], reply["tool_calls"]
        assert isinstance(thought, dict)
        assert isinstance(calls, list)
        assert thought["text"] == "I look."
        found_in = {one["id"]: one.get("extra_content") for one in calls if isinstance(one, dict)}
        assert found_in == {**signed, "e": None}, "each call has its own, and what was not signed has none"
        strange = read(body, "", KNOWN)
        assert isinstance(strange, ApiRequest)
        assert strange.left_out == ("input[].encrypted_content",)


@pytest.mark.parametrize("kind", ["file_search", "code_interpreter", "computer_use_preview", "image_generation", "mcp"])
def test_other_hosted_tools_are_refused_by_name(kind: str) -> None:
    found = read(orjson.dumps({"input": "x", "tools": [{"type": kind}]}), "", KnownItems())
    assert isinstance(found, Problem)
    assert (found.param, kind in found.message) == ("tools[0].type", True)


@pytest.mark.parametrize("key", ["stream", "store", "background"])
def test_what_is_to_be_yes_or_no_is_nothing_else(key: str) -> None:
    wrong: list[object] = ["true", 1, 0, ["x"], {"x": 1}]
    for value in wrong:
        found = read(orjson.dumps({"input": "hello", key: value}), "", KNOWN)
        assert isinstance(found, Problem), value
        assert (found.status, found.param) == (400, key)


@pytest.mark.parametrize("key", ["text", "reasoning", "metadata"])
def test_what_is_to_be_an_object_is_nothing_else(key: str) -> None:
    for value in ("x", 1, ["x"], True):
        found = read(orjson.dumps({"input": "hello", key: value}), "", KNOWN)
        assert isinstance(found, Problem), value
        assert found.status == 400
        assert str(found.param).startswith(key)
    assert isinstance(read(orjson.dumps({"input": "hello", key: None}), "", KNOWN), ApiRequest)
    fitting: dict[str, Json] = {"text": {}, "reasoning": {"effort": "low"}, "metadata": {"a": "b"}}
    assert isinstance(read(orjson.dumps({"input": "hello", key: fitting[key]}), "", KNOWN), ApiRequest)
