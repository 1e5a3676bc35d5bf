"""The rehearsal model: deterministic, honest about itself, and complete in its faults."""

from __future__ import annotations

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.failures.remedies import Failure
from agent_core.jsonvalue import Json
from agent_core.model.rehearsal import rehearsal_server
from agent_core.model.rehearsal.conversation import RehearsalRequest, read
from agent_core.model.rehearsal.faults import FAULTS, fault_named
from agent_core.model.rehearsal.script import plan
from agent_core.model.rehearsal.wire import Call, EndReply, Say

TOOLS = frozenset(
    {
        "write_file",
        "append_file",
        "read_file",
        "edit_file",
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
    assert [step.name for step in script if isinstance(step, Call)] == [tool]
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
