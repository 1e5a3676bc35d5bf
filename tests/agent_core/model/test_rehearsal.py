"""The rehearsal model: deterministic, honest about itself, and complete in its faults."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.remedies import Failure
from agent_core.jsonvalue import Json
from agent_core.model.rehearsal import rehearsal_server
from agent_core.model.rehearsal.conversation import RehearsalRequest, read
from agent_core.model.rehearsal.faults import FAULTS, fault_named
from agent_core.model.rehearsal.forms import sample
from agent_core.model.rehearsal.script import plan
from agent_core.model.rehearsal.server import RehearsalServer
from agent_core.model.rehearsal.wire import EndReply, PlayedCall, Say

TOOLS = frozenset(
    {
        "write_file",
        "append_file",
        "read_file",
        "edit_file",
        "delete_file",
        "list_files",
        "search_files",
        "fetch_url",
        "remember",
        "recall",
        "todo",
    }
)


def conversation(
    words: str, *, results: tuple[str, ...] = (), tools: frozenset[str] = TOOLS, asked: int = 1
) -> RehearsalRequest:
    return RehearsalRequest(words=words, results=results, said="", advice="", tools=tools, attempt=asked, asked=asked)


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("write notes.txt: buy milk", "write_file"),
        ("append to notes.txt: bread", "append_file"),
        ("read notes.txt", "read_file"),
        ("edit notes.txt: replace milk with tea", "edit_file"),
        ("delete notes.txt", "delete_file"),
        ("list files", "list_files"),
        ("search for tea", "search_files"),
        ("fetch https://example.org/x", "fetch_url"),
        ("remember that tea is nice", "remember"),
        ("what do you remember", "recall"),
        ("todo: a, b", "todo"),
    ],
)
def test_plain_requests_are_done_with_the_tool_that_does_them(words: str, tool: str):
    script = plan(conversation(words))
    assert [step.name for step in script if isinstance(step, PlayedCall)] == [tool]
    without = plan(conversation(words, tools=frozenset()))
    assert isinstance(without[0], Say)
    assert "Nothing was done" in without[0].text


@given(st.text(max_size=100), st.integers(1, 5))
def test_the_same_request_always_gets_the_same_reply_and_an_end(words: str, asked: int):
    one, two = conversation(words, asked=asked), conversation(words, asked=asked)
    assert plan(one) == plan(two)
    if not words.strip().lower().startswith("rehearse"):
        assert isinstance(plan(one)[-1], EndReply)


def test_every_ladder_has_a_fault_to_rehearse():
    needed = {
        Failure.BEFORE_CONTENT: "stall before text",
        Failure.IN_TEXT: "drop in text",
        Failure.NOTHING_MORE: "drop in text",
        Failure.THOUGHT_MORE: "drop in text",
        Failure.IN_TOOL_CALL: "stall in tool call",
        Failure.EMPTY: "empty after tools",
        Failure.THINKING_ONLY: "reasoning only",
        Failure.PROMISED: "promise without acting",
        Failure.LENGTH: "cut by length",
        Failure.LENGTH_IN_TOOL_CALL: "length in tool call",
        Failure.OVERFLOW: "context overflow",
        Failure.TOO_LARGE: "context overflow",
        Failure.CREDENTIAL: "unauthorised",
        Failure.REQUEST: "bad request",
    }
    assert set(needed) == set(Failure)
    assert set(needed.values()) <= set(FAULTS)
    assert fault_named("rehearse Stall in tool call FOREVER.") == ("stall in tool call", True)


def test_what_is_asked_for_is_done_though_files_came_along():
    asked: Json = [{"role": "user", "content": "list files\n📎 plan.pdf\n📎 cat.png"}]
    assert read(asked, None, 1, 1).words == "list files"
    assert read([{"role": "user", "content": "📎 plan.pdf"}], None, 1, 1).words == "📎 plan.pdf"


def test_the_gateways_advice_is_not_taken_for_the_persons_words():
    messages: list[Json] = [
        {"role": "user", "content": "rehearse stall in text"},
        {"role": "assistant", "content": "half"},
        {"role": "user", "content": "[outspoken] go on"},
    ]
    found = read(messages, None, 1, 1)
    assert (found.words, found.said) == ("rehearse stall in text", "half")


async def test_it_says_plainly_what_it_is_and_wants_its_key():
    async with rehearsal_server(speed=50) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key) as client:
            answer = await client.chat.completions.create(
                model="rehearsal", messages=[{"role": "user", "content": "hello"}], stream=True
            )
            text = "".join([c.choices[0].delta.content or "" async for c in answer if c.choices])
            assert "no AI model is configured" in text
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="other", max_retries=0) as client:
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()


SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 20},
        "size": {"type": "integer", "minimum": 5},
        "kind": {"enum": ["a", "b"]},
        "when": {"type": "string", "format": "date"},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 2},
        "maybe": {"anyOf": [{"type": "null"}, {"type": "string"}]},
    },
    "required": ["name", "size", "kind", "when", "parts", "maybe"],
    "$defs": {"part": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}},
}


def test_a_form_is_filled_in_as_its_schema_wants():
    found = sample(SCHEMA)
    assert isinstance(found, dict)
    assert found | {"name": ""} == {
        "name": "", "size": 5, "kind": "a", "when": "2026-11-23", "parts": [{"on": True}, {"on": True}], "maybe": None,
    }  # fmt: skip
    assert len(str(found["name"])) == 20


@given(
    st.recursive(
        st.none() | st.text(max_size=4),
        lambda inner: st.dictionaries(
            st.sampled_from(["type", "properties", "items", "$ref", "anyOf", "enum", "minItems"]), inner
        ),
        max_leaves=8,
    )
)
def test_no_schema_breaks_the_form(schema: Json):
    sample(schema)


async def test_a_program_s_tools_choices_forms_thoughts_and_pictures_are_played():
    weather: Any = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    async with (
        rehearsal_server(50) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0) as client,
    ):

        async def deltas(words: str, **more: Any) -> list[dict[str, Any]]:
            said: Any = [{"role": "user", "content": words}]
            stream: Any = await client.chat.completions.create(model="rehearsal", messages=said, stream=True, **more)
            return [c.delta.model_dump(exclude_none=True) async for chunk in stream for c in chunk.choices]

        for words, choice in (
            ("How is the weather?", "auto"),
            ("hello", "required"),
            ("hello", {"type": "function", "function": {"name": "get_weather"}}),
        ):
            found = await deltas(words, tools=[weather], tool_choice=choice)
            assert any("tool_calls" in delta for delta in found), words
        assert not any("tool_calls" in delta for delta in await deltas("hello", tools=[weather]))
        filled = "".join(delta.get("content", "") for delta in await deltas("hello", response_format=form))
        assert json.loads(filled) == sample(SCHEMA)
        assert any("reasoning_content" in delta for delta in await deltas("think about it"))
        assert any("images" in delta for delta in await deltas("draw a square"))


def test_a_tool_that_takes_one_text_is_given_the_words_behind_its_name():
    schema: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    asked = replace(conversation("call shout Hello, there!", tools=frozenset({"shout"})), schemas={"shout": schema})
    assert plan(asked)[0] == PlayedCall("shout", '{"input": "Hello, there!"}')


@pytest.mark.parametrize(
    "words", ["rehearse stall in tool call", "write notes.txt: buy milk", "todo: a, b", "help", "continue"]
)
def test_in_a_group_the_speakers_name_does_not_spoil_what_is_asked_for(words: str) -> None:
    assert plan(conversation(f"Ada Lovelace: {words}")) == plan(conversation(words))


async def test_who_rehearses_a_stall_after_somebody_who_was_stopped_in_it_sees_it_too() -> None:
    async def begins(server: RehearsalServer) -> str:
        """What the model writes before it stalls, or is done."""
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key=server.api_key, max_retries=0) as client:
            stream = await client.chat.completions.create(
                model="rehearsal",
                messages=[{"role": "user", "content": "rehearse stall in tool call"}],
                tools=[{"type": "function", "function": {"name": name}} for name in ("write_file", "append_file")],
                stream=True,
            )
            said = ""
            async for chunk in stream:
                said += "".join(choice.delta.content or "" for choice in chunk.choices)
                if said.endswith("."):
                    break
            await stream.close()
        return said

    async with rehearsal_server() as server:
        assert await begins(server) == await begins(server) == "I will write the page."  # as the gateway asks again
        assert await begins(server) == "In smaller pieces, then."
        server.anew_seconds = 0.05
        await asyncio.sleep(0.1)
        assert await begins(server) == "I will write the page."
