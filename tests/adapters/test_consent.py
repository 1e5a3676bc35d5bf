"""Whose tools a request agrees to, and which requests are front ends' own errands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.common import Problem
from adapters.http.consent import Wish, gone_with, wish_of_key, wish_with
from adapters.http.errorsas import Disconnect
from adapters.http.openai_request import ChatRequest, parse
from agent_core.tools.offer import ToolsFrom

TOOL = {"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}
TITLE = "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"


def _wish(words: str = "hello", headers: dict[str, str] | None = None, **more: Any) -> Wish:
    found = parse(json.dumps({"messages": [{"role": "user", "content": words}], **more}).encode())
    assert isinstance(found, ChatRequest), found
    wish = wish_with(found.wish, headers or {})
    assert isinstance(wish, Wish), wish
    return wish


def _asked(tools: str) -> dict[str, Any]:
    return {"outspoken": {"tools": tools}}


@pytest.mark.parametrize(
    ("more", "source"),
    [
        ({}, ToolsFrom.GATEWAY),
        ({"tools": [TOOL]}, ToolsFrom.CLIENT),
        ({"functions": [TOOL["function"]]}, ToolsFrom.CLIENT),
        ({"tools": []}, ToolsFrom.NONE),
        ({"tools": None}, ToolsFrom.GATEWAY),
        ({"tool_choice": "none"}, ToolsFrom.NONE),
        ({"function_call": "none"}, ToolsFrom.NONE),
        ({"tools": [TOOL], "tool_choice": "none"}, ToolsFrom.NONE),
        ({"tools": [TOOL], **_asked("both")}, ToolsFrom.BOTH),
        ({"tools": [TOOL], **_asked("gateway")}, ToolsFrom.GATEWAY),
        ({"tools": [], **_asked("gateway")}, ToolsFrom.GATEWAY),
        ({"tools": [TOOL], "tool_choice": "none", **_asked("both")}, ToolsFrom.NONE),
        (_asked("none"), ToolsFrom.NONE),
    ],
)
def test_a_request_says_whose_tools_may_be_used(more: dict[str, Any], source: ToolsFrom) -> None:
    assert _wish(**more).tools is source


def test_a_header_counts_where_the_body_says_nothing() -> None:
    header = {"X-Outspoken-Tools": "both"}
    assert _wish(headers=header, tools=[TOOL]).tools is ToolsFrom.BOTH
    assert _wish(headers=header, tools=[TOOL], **_asked("none")).tools is ToolsFrom.NONE
    assert _wish(headers=header, tool_choice="none").tools is ToolsFrom.NONE
    assert isinstance(wish_with(Wish(), {"X-Outspoken-Tools": "all"}), Problem)


@pytest.mark.parametrize(
    "words",
    [
        TITLE,
        "### Task:\nSuggest 3-5 relevant follow-up questions\n<chat_history>\nUSER: hi\n</chat_history>",
        "### Task:\nYou are an autocompletion system. Continue the text in `<text>`",
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
    ],
)
def test_what_front_ends_ask_for_themselves_is_an_errand_without_tools(words: str) -> None:
    wish = _wish(words)
    assert wish.errand
    assert wish.tools is ToolsFrom.NONE


@pytest.mark.parametrize(
    "words",
    [
        "### Task:\nRespond to the user query using the provided context.\n<chat_history>",
        "What is a title?",
        "### Task: buy milk",
    ],
)
def test_a_persons_question_is_no_errand(words: str) -> None:
    assert not _wish(words).errand


def test_a_conversation_that_quotes_an_errand_is_none() -> None:
    messages = [
        {"role": "user", "content": TITLE},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "why?"},
    ]
    found = parse(json.dumps({"messages": messages}).encode())
    assert isinstance(found, ChatRequest)
    assert not found.wish.errand


@pytest.mark.parametrize(
    ("headers", "errand"),
    [
        ({"X-OpenWebUI-Task": "title_generation"}, True),
        ({"X-Outspoken-Task": "tags"}, True),
        ({"X-OpenWebUI-Task": ""}, False),
        ({"X-OpenWebUI-Task": "{{TASK}}"}, False),
    ],
)
def test_a_header_names_an_errand(headers: dict[str, str], errand: bool) -> None:
    assert _wish(headers=headers).errand is errand
    assert _wish(headers=headers).tools is (ToolsFrom.NONE if errand else ToolsFrom.GATEWAY)


@pytest.mark.parametrize("wish", [Wish(ToolsFrom.NONE, errand=True), Wish(ToolsFrom.GATEWAY)])
def test_a_header_that_comes_with_every_request_gives_an_errand_none_of_the_gateways_tools(wish: Wish) -> None:
    """As Open WebUI sends what its administrator sets for a connection, with titles and tags too."""
    found = wish_with(wish, {"X-Outspoken-Tools": "both", "X-OpenWebUI-Task": "title_generation"})
    assert isinstance(found, Wish)
    assert (found.errand, found.tools.gateways) == (True, False)


def test_a_choice_that_names_no_tool_is_refused() -> None:
    choice = {"type": "function", "function": {"name": "other"}}
    body = {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL], "tool_choice": choice}
    found = parse(json.dumps(body).encode())
    assert isinstance(found, Problem)
    assert found.param == "tool_choice"


@given(st.sampled_from(ToolsFrom), st.sampled_from(ToolsFrom))
def test_what_is_allowed_is_never_widened(asked: ToolsFrom, allowed: ToolsFrom) -> None:
    found = asked.within(allowed)
    assert found.clients == (asked.clients and allowed.clients)
    assert found.gateways == (asked.gateways and allowed.gateways)


@pytest.mark.parametrize(
    "headers", [{}, {"X-Outspoken-Tools": "both"}, {"X-Outspoken-Task": "tags", "X-Outspoken-Tools": "gateway"}]
)
@pytest.mark.parametrize("asked", [None, *ToolsFrom])
@pytest.mark.parametrize("allowed", ToolsFrom)
def test_no_request_has_tools_that_its_key_may_not_use_and_who_asked_for_them_is_told(
    allowed: ToolsFrom, asked: ToolsFrom | None, headers: dict[str, str]
) -> None:
    bodies: list[dict[str, Any]] = [{}, {"tools": [TOOL]}, {"tools": []}, {"tool_choice": "none"}]
    for body in bodies:
        for words in ("hello", TITLE):
            wish = _wish(words, headers, **body, **({} if asked is None else _asked(asked)))
            found = wish_of_key(wish, allowed)
            fits = wish.tools.within(allowed) is wish.tools
            if isinstance(found, Problem):
                assert (found.status, found.code) == (403, "tools_not_allowed")
                assert not fits
                assert wish.said or wish.tools.clients, "nothing was asked for"
            else:
                assert found.tools.within(allowed) is found.tools
                assert fits or not (wish.said or wish.tools.clients), "it is told that it has none"
            assert wish_of_key(wish, None) == wish


@pytest.mark.parametrize("own", [{"tols": "none"}, {"approval": "wait"}, {"disconnect": "detach"}])
def test_what_is_misspelt_in_its_own_options_is_refused_by_its_name(own: dict[str, str]) -> None:
    found = parse(json.dumps({"messages": [{"role": "user", "content": "hello"}], "outspoken": own}).encode())
    assert isinstance(found, Problem)
    assert f"outspoken.{next(iter(own))}" in found.message


def test_what_becomes_of_a_client_that_hangs_up_is_known_or_refused() -> None:
    assert gone_with({}, Disconnect.CANCEL) is Disconnect.CANCEL
    assert gone_with({"X-Outspoken-Disconnect": " Detach "}, Disconnect.CANCEL) is Disconnect.DETACH
    assert isinstance(gone_with({"X-Outspoken-Disconnect": "detached"}, Disconnect.CANCEL), Problem)


@pytest.mark.parametrize("allowed", [ToolsFrom.CLIENT, ToolsFrom.BOTH])
def test_an_errand_that_brings_tools_has_those_alone_whatever_its_key_has(allowed: ToolsFrom) -> None:
    wish = wish_of_key(_wish(TITLE, {"X-Outspoken-Task": "tags"}, tools=[TOOL]), allowed)
    assert isinstance(wish, Wish)
    assert (wish.errand, wish.tools) == (True, ToolsFrom.CLIENT)
