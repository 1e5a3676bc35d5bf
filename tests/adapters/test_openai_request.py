"""The parser of request bodies, and what an append-only client is told."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.api.spoken import Spoken, text_of
from adapters.http.common import Problem
from adapters.http.openai_request import ChatRequest, parse
from agent_core.turn.view import Bubble, BubbleKind, View

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["role", "content", "messages", "tools", "function", "name", "type", "text", "id"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)
keys = st.sampled_from(
    [
        "messages",
        "model",
        "stream",
        "tools",
        "temperature",
        "n",
        "stop",
        "stream_options",
        "outspoken",
        "max_tokens",
        "user",
    ]
)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(body: bytes):
    assert isinstance(parse(body), ChatRequest | Problem)


@given(st.dictionaries(keys, json_values, max_size=6))
def test_no_object_breaks_the_parser(value: dict[str, Any]):
    found = parse(json.dumps(value).encode())
    if isinstance(found, Problem):
        assert found.status == 400
        assert found.message
    else:
        _, latest = found.split()
        assert latest


def test_the_trailing_words_and_results_are_what_is_answered():
    messages = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "user", "content": [{"type": "text", "text": "d"}]},
    ]
    found = parse(json.dumps({"messages": messages}).encode())
    assert isinstance(found, ChatRequest)
    before, latest = found.split()
    assert [m["role"] for m in before] == ["system", "user", "assistant"]
    assert [m.content for m in latest] == ["c", [{"type": "text", "text": "d"}]]


@given(st.lists(st.tuples(st.integers(0, 3), st.text(alphabet="ab \n😀", min_size=1, max_size=6)), max_size=20))
def test_what_an_append_only_client_hears_is_the_final_text_once(growth: list[tuple[int, str]]):
    texts: dict[int, str] = {}
    spoken, heard = Spoken(), ""
    order: list[int] = []
    for key, more in sorted(growth, key=lambda pair: pair[0]):  # a bubble only grows while it is the latest
        texts[key] = texts.get(key, "") + more
        if key not in order:
            order.append(key)
        view = View(tuple(Bubble(str(k), BubbleKind.PARTIAL, texts[k], final=False) for k in order), open=True)
        heard += text_of(spoken.new(view))
        assert spoken.new(view) == []
    ended = View(tuple(Bubble(str(k), BubbleKind.PARTIAL, texts[k], final=True) for k in order), open=False)
    heard += text_of(spoken.new(ended))
    assert heard == "\n\n".join(texts[k] for k in order)


@pytest.mark.parametrize("behind", [True, False])
def test_nothing_is_put_into_the_middle_of_a_text(behind: bool) -> None:
    note = Bubble("left0", BubbleKind.NOTE, "It was left out.", final=True)

    def views(text: str, *notes: Bubble, final: bool = False) -> View:
        said = Bubble("text0", BubbleKind.ANSWER if final else BubbleKind.PARTIAL, text, final=final)
        return View((said, *notes) if behind else (*notes, said), open=not final)

    spoken = Spoken()
    heard = text_of(spoken.new(views("The ferry lea")))
    heard += text_of(spoken.new(views("The ferry lea", note)))
    heard += text_of(spoken.new(views("The ferry leaves", note)))
    heard += text_of(spoken.new(views("The ferry leaves now.", note, final=True)))
    assert heard == "The ferry leaves now.\n\n[outspoken] It was left out."


def _with_picture(url: str) -> bytes:
    content = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": url}}]
    return json.dumps({"messages": [{"role": "user", "content": content}]}).encode()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "gopher://example.org/", "/etc/passwd", "", "http:///x", "http://[::1", "ftp://example.org/a.png",
        "http://127.0.0.1:8787/v1/models", "http://localhost/a.png", "https://192.168.0.1/x.png", "http://2130706433/", "http://0x7f.1/", "http://127.1/",
        "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://169.254.169.254/latest/meta-data", "http://metadata.google.internal/", "http://printer.local/a.png",
        "http://user@127.0.0.1/", "http://0/", "http://10.0.0.1./",
    ],
)  # fmt: skip
def test_a_picture_s_address_never_leads_into_the_network_of_the_model_s_server(url: str) -> None:
    found = parse(_with_picture(url))
    assert isinstance(found, Problem)
    assert "image_url" in found.message


@pytest.mark.parametrize("url", ["data:image/png;base64,aGk=", "https://example.org/a.png", "http://8.8.8.8/a.png"])
def test_a_picture_s_public_address_or_its_data_is_taken(url: str) -> None:
    assert isinstance(parse(_with_picture(url)), ChatRequest)


def test_a_place_that_is_kept_for_the_answer_is_nothing_to_go_on_with() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]
    found = parse(json.dumps({"messages": messages}).encode())
    assert isinstance(found, ChatRequest)
    before, asked = found.split()
    assert (before, [one.content for one in asked]) == ((), ["a"])


def test_a_call_as_programs_put_it_together_from_a_stream_is_one_that_strict_servers_take() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "x"}}}  # fmt: skip
    messages: list[dict[str, Any]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "1"}]  # fmt: skip
    found = parse(json.dumps({"messages": messages}).encode())
    assert isinstance(found, ChatRequest)
    told = {**call, "type": "function"}
    del told["index"]
    assert found.messages[1]["tool_calls"] == [told]


def test_time_is_linear_in_the_tools_of_a_request() -> None:
    tools = [{"type": "function", "function": {"name": f"tool_{number}"}} for number in range(30_000)]
    body = {"messages": [{"role": "user", "content": "hello"}], "tools": tools}
    began = time.process_time()
    found = parse(json.dumps(body).encode())
    assert isinstance(found, ChatRequest)
    assert len(found.tools) == len(tools)
    assert time.process_time() - began < 5, "some tenths of a second; quadratic takes half a minute"
    twice = parse(json.dumps({**body, "tools": [*tools, tools[7]]}).encode())
    assert isinstance(twice, Problem)
    assert "'tool_7'" in twice.message


def _with_choice(choice: object, **more: object) -> ChatRequest | Problem:
    tools = [{"type": "function", "function": {"name": name}} for name in ("weather", "news")]
    body = {"messages": [{"role": "user", "content": "x"}], "tools": tools, "tool_choice": choice, **more}
    return parse(json.dumps(body).encode())


def _allowed(mode: object, *names: str) -> dict[str, object]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_only_the_tools_are_offered_that_a_choice_allows(mode: str):
    found = _with_choice(_allowed(mode, "news"))
    assert isinstance(found, ChatRequest)
    assert [tool["function"] for tool in found.tools] == [{"name": "news"}]
    assert found.parameters["tool_choice"] == mode, "providers know this one"


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        (_allowed("auto", "weather", "wether"), "wether"),
        (_allowed("required", "wether"), "wether"),
        (_allowed("sometimes", "news"), "mode"),
        (_allowed(None, "news"), "mode"),
        ({"type": "allowed_tools"}, "must have tools"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": "news"}}, "must have tools"),
        ({"type": "allowed_tools", "allowed_tools": []}, "must have tools"),
    ],
)
def test_a_choice_that_allows_what_is_not_there_or_in_no_mode_is_refused_by_its_name(choice: object, named: str):
    found = _with_choice(choice)
    assert isinstance(found, Problem)
    assert (found.status, found.param) == (400, "tool_choice")
    assert named in found.message


def test_a_choice_may_allow_tools_of_the_gateway_where_those_are_offered_too():
    found = _with_choice(_allowed("auto", "news", "read_file"), outspoken={"tools": "both"})
    assert isinstance(found, ChatRequest)
    assert [tool["function"] for tool in found.tools] == [{"name": "news"}]
