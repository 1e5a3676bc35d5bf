"""What a client asks for arrives at the model's server: fields, tools, messages; and what is not asked for does not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.http.fields import CHAT, FieldFate
from tests.e2e.talking import Talk, fine, person, talking
from tests.gateway.rig import call_chunk, chunk

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
TITLE = "### Task:\nGenerate a concise, 3-5 word title.\n<chat_history>\nUSER: hi\n</chat_history>"
VALUES: dict[str, Any] = {
    "temperature": 0.5, "top_p": 0.5, "top_logprobs": 2, "parallel_tool_calls": False, "top_k": 3, "top_a": 0.5, "min_p": 0.1, "typical_p": 0.5,
    "repetition_penalty": 1.5, "length_penalty": 1.0, "min_tokens": 1, "frequency_penalty": 0.5, "presence_penalty": 0.5, "seed": 7,
    "max_tokens": 100, "max_completion_tokens": 100, "stop": ["x"], "metadata": {"a": "b"}, "modalities": ["text"], "priority": 1,
    "thinking_budget": 10, "random_seed": 7,
}  # fmt: skip


def _some(name: str) -> Any:
    """A value that the field's row takes."""
    check = CHAT[name].check
    values: list[Any] = [VALUES.get(name), {"a": 1}, "some", True, ["some"], 1]
    for value in values:
        if value is not None and (check is None or check(value) is None):
            return value
    raise AssertionError(f"nothing fits {name}")


def _tools(talk: Talk) -> list[str]:
    return [tool["function"]["name"] for tool in talk.sent.get("tools", ())]


async def test_each_field_that_is_passed_on_arrives_as_it_came_and_so_does_one_without_a_row(tmp_path: Path) -> None:
    names = [name for name, row in CHAT.items() if row.fate is FieldFate.PASSED and name != "parallel_tool_calls"]
    async with talking(tmp_path) as talk:
        for some in (names[::2], names[1::2]):
            given = {name: _some(name) for name in some} | {"chat_id": "c-1", "user": "ada"}
            await talk.ask(person("hi"), extra_body=given)
            assert {name: talk.sent.get(name) for name in given} == given


async def test_the_operators_words_and_the_clients_stand_before_the_conversation_as_one(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.ask({"role": "developer", "content": "Speak Latin."}, person("hi"))
        first, second = talk.sent["messages"]
        assert first["role"] == "system"
        assert first["content"].endswith("Speak Latin.")
        assert len(first["content"]) > len("Speak Latin.") + 10, "the operator's are gone"
        assert second == person("hi")


async def test_in_a_session_what_the_system_says_is_told_once_until_it_changes(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        for latin in ("Speak Latin.", "Speak Latin.", "Speak Greek.", "Speak Greek."):
            system = {"role": "system", "content": latin}
            await talk.ask(system, person("hi"), extra_headers={"X-Outspoken-Session": "s1"})
        said = [m["content"] for m in talk.sent["messages"]]
        assert [sum(words in str(content) for content in said) for words in ("Speak Latin.", "Speak Greek.")] == [1, 1]


@pytest.mark.parametrize("role", ["assistant", "system"])
async def test_continue_in_a_front_end_is_answered(tmp_path: Path, role: str) -> None:
    async with talking(tmp_path) as talk:
        found = await talk.ask(person("hi"), {"role": role, "content": "The ferry lea"})
        assert found.choices[0].message.content == "fine"
        assert "The ferry lea" in str(talk.sent["messages"])


async def test_a_result_without_its_call_is_told(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.ask(person("hi"), {"role": "tool", "tool_call_id": "gone", "content": "It rains."})
        assert talk.sent["messages"][-1]["role"] == "user"
        assert "It rains." in talk.sent["messages"][-1]["content"]


async def test_nobodys_tools_are_offered_to_who_wants_none_and_ones_own_to_who_brings_some(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        ways: list[dict[str, Any]] = [
            {"tool_choice": "none"},
            {"tools": []},
            {"extra_body": {"outspoken": {"tools": "none"}}},
        ]
        for none in ways:
            await talk.ask(person("hi"), **none)
            assert "tools" not in talk.sent, none
        await talk.ask(person(TITLE))
        assert "tools" not in talk.sent
        await talk.ask(person("hi"), tools=[WEATHER])
        assert _tools(talk) == ["weather"]
        await talk.ask(person("hi"))
        assert "read_file" in _tools(talk)
        await talk.ask(person("hi"), tools=[WEATHER], extra_headers={"X-Outspoken-Tools": "both"})
        assert {"weather", "read_file"} <= set(_tools(talk))


async def test_a_tool_that_nobody_offered_is_not_run(tmp_path: Path) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await fine(messages, response, _)
        else:
            await response.write(call_chunk("write_file", '{"path": "a.txt", "content": "x"}'))

    async with talking(tmp_path, reply) as talk:
        await talk.ask(person("hi"), tools=[])
        assert not list(tmp_path.rglob("a.txt"))


async def test_an_errand_is_asked_once_more_at_most_and_is_no_incident(tmp_path: Path) -> None:
    async def broken(_: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        await response.write(b": nothing\n\n")

    async with talking(tmp_path, broken) as talk:
        found = await talk.ask(person(TITLE))
        assert found.model_extra["outspoken"]["exit"] == "broken_before_text"
        assert len(talk.model.requests) == 2
        with closing(sqlite3.connect(next(tmp_path.rglob("*.db")))) as database:
            counted = database.execute("select count(*) from troubles").fetchall()
        assert counted == [(0,)]


async def test_the_gateways_calls_are_run_and_the_clients_handed_out_in_one_step(tmp_path: Path) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await response.write(chunk({"content": "It rains on your files."}, "stop"))
            return
        await response.write(call_chunk("write_file", '{"path": "a.txt", "content": "here"}', None, "call_g"))
        function = {"name": "weather", "arguments": "{}"}
        call = {"index": 1, "id": "call_c", "type": "function", "function": function}
        await response.write(chunk({"tool_calls": [call]}, "tool_calls"))

    session = {"X-Outspoken-Session": "s1", "X-Outspoken-Tools": "both"}
    async with talking(tmp_path, reply) as talk:
        first = await talk.ask(person("hi"), tools=[WEATHER], extra_headers=session)
        assert first.choices[0].finish_reason == "tool_calls"
        assert [call.function.name for call in first.choices[0].message.tool_calls] == ["weather"]
        assert [file.read_text() for file in tmp_path.rglob("a.txt")] == ["here"]
        rain = {"role": "tool", "tool_call_id": "call_c", "content": "rain"}
        second = await talk.ask(rain, tools=[WEATHER], extra_headers=session)
        assert second.choices[0].message.content == "It rains on your files."
        results = {m["tool_call_id"]: m["content"] for m in talk.sent["messages"] if m["role"] == "tool"}
        assert set(results) == {"call_g", "call_c"}
        assert results["call_c"] == "rain"


async def test_a_conversation_whose_calls_were_the_gateways_and_the_clients_goes_on_after_a_restart(
    tmp_path: Path,
) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await response.write(chunk({"content": "It rains on your files."}, "stop"))
            return
        await response.write(call_chunk("write_file", '{"path": "a.txt", "content": "here"}', None, "call_g"))
        function = {"name": "weather", "arguments": "{}"}
        call = {"index": 1, "id": "call_c", "type": "function", "function": function}
        await response.write(chunk({"tool_calls": [call]}, "tool_calls"))

    session = {"X-Outspoken-Session": "s1", "X-Outspoken-Tools": "both"}
    async with talking(tmp_path, reply) as talk:
        await talk.ask(person("hi"), tools=[WEATHER], extra_headers=session)
    async with talking(tmp_path, reply) as talk:
        rain = {"role": "tool", "tool_call_id": "call_c", "content": "rain"}
        second = await talk.ask(rain, tools=[WEATHER], extra_headers=session)
        assert second.choices[0].message.content == "It rains on your files."
        results = {m["tool_call_id"]: m["content"] for m in talk.sent["messages"] if m["role"] == "tool"}
        assert (set(results), results["call_c"]) == ({"call_g", "call_c"}, "rain")


async def test_a_call_that_is_demanded_is_demanded_once(tmp_path: Path) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        done = messages[-1]["role"] == "tool"
        await response.write(chunk({"content": "done"}, "stop") if done else call_chunk("list_files", "{}"))

    async with talking(tmp_path, reply) as talk:
        found = await talk.ask(person("hi"), tool_choice="required")
        assert found.choices[0].message.content == "done"
        assert [request.get("tool_choice") for request in talk.model.requests] == ["required", None]
