"""Thoughts go back to the model that had them, as they were, where its provider wants them, and to nobody else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.messages import THOUGHTS, Message, carried_thoughts
from agent_core.model.manners import POLITE, Manners
from agent_core.model.stream.chunks import ChunkReader
from agent_core.model.thinking import KEPT_BYTES, SKIP, with_thoughts
from agent_core.turn.events import ToolCallNamed
from agent_core.turn.transcript import problems

SIGNATURE = "EqoBCkgIARABGAIiQL2UoU0b1OHYi+/=\t\u00e9"


def kept(*deltas: dict[str, Any]) -> dict[str, Json]:
    reader = ChunkReader(1, (), parse_text_calls=True)
    for delta in deltas:
        reader.feed([json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()], 1)
    reader.finish(2)
    return reader.keeper.kept()


def call(index: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "tool_calls": [
            {
                "index": index,
                "id": f"c{index}",
                "type": "function",
                "function": {"name": "look", "arguments": "{}"},
                **more,
            }
        ]
    }


def conversation(thoughts: dict[str, Json], *, calls: int = 1) -> list[Message]:
    """A turn with calls (if any) by a model that thought so, and the next message."""
    asked: list[Json] = [
        {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}} for n in range(calls)
    ]
    first: Message = {"role": "assistant", "content": "Looking.", THOUGHTS: thoughts}
    if calls:
        first["tool_calls"] = asked
    results: list[Message] = [{"role": "tool", "tool_call_id": f"c{n}", "content": "ok"} for n in range(calls)]
    return [{"role": "user", "content": "Look"}, first, *results, {"role": "user", "content": "And now?"}]


def sent(
    deltas: Sequence[dict[str, Any]],
    *,
    to: tuple[str, str] = ("up", "m"),
    calls: int = 1,
    text: str = "hm",
    manners: Manners = POLITE,
) -> Message:
    thoughts = carried_thoughts("up", "m", text, kept(*deltas), {n: f"c{n}" for n in range(calls)})
    messages = with_thoughts(conversation(thoughts, calls=calls), *to, manners)
    assert all(THOUGHTS not in message for message in messages)
    assert not problems(messages)
    return messages[1]


def test_plain_thoughts_go_back_in_their_own_field_with_calls() -> None:
    for name in ("reasoning_content", "reasoning"):
        message = sent([{name: "h"}, {name: "m"}, call()])
        assert message[name] == "hm"
        assert set(message) == {"role", "content", "tool_calls", name}


@pytest.mark.parametrize("pieces", [1, 4_000, 8_100])
def test_a_call_at_the_end_of_a_long_thought_is_found(pieces: int) -> None:
    """Some models call in their thoughts, and say nothing else."""
    reader = ChunkReader(1, (), parse_text_calls=True, offered=("read",))
    call = '<tool_call>{"name": "read", "arguments": {}}</tool_call>'
    for text in (*["so I think of something else. "] * pieces, call, *["\n"] * 200):
        reader.feed([json.dumps({"choices": [{"delta": {"reasoning_content": text}}]}).encode()], 0)
    reader.feed([b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}'], 0)
    found = reader.finish(0)
    assert [one.name for one in found if isinstance(one, ToolCallNamed)] == ["read"]


@pytest.mark.parametrize("said", ["", "Well, I am done."])
def test_a_call_in_a_thought_is_none_where_something_was_said(said: str) -> None:
    reader = ChunkReader(1, (), parse_text_calls=True, offered=("read",))
    call = '<tool_call>{"name": "read", "arguments": {}}</tool_call>'
    for delta in ({"reasoning_content": f"I might say {call}"}, {"content": said}):
        reader.feed([json.dumps({"choices": [{"delta": delta}]}).encode()], 0)
    reader.feed([b'{"choices": [{"delta": {}, "finish_reason": "stop"}]}'], 0)
    found = [one for one in reader.finish(0) if isinstance(one, ToolCallNamed)]
    assert bool(found) is not bool(said)


def test_a_turn_without_calls_gives_none_back() -> None:
    """The API of R1 refused them, and its successors ignore them."""
    assert set(sent([{"reasoning_content": "hm"}], calls=0)) == {"role", "content"}


@given(st.permutations(range(4)), st.sets(st.integers(0, 5)))
def test_what_came_with_a_call_goes_back_with_that_call(order: list[int], had: set[int]) -> None:
    brought: dict[str, Json] = {"calls": {str(index): {"of": index} for index in order if index in had}}
    ids = {index: f"c{index}" for index in range(3)}  # the last one was no call in the end
    carried = carried_thoughts("up", "m", "", brought, ids)
    assert carried["calls"] == {f"c{index}": {"of": index} for index in range(3) if index in had}


def test_pieces_of_details_are_one_and_unchanged() -> None:
    deltas = [
        {
            "reasoning": "a",
            "reasoning_details": [{"type": "reasoning.text", "text": "a", "index": 0, "format": "anthropic-claude-v1"}],
        },
        {"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "signature": SIGNATURE, "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x+/=", "id": "r1", "index": 1}]},
        call(),
    ]
    message = sent(deltas)
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "ab", "index": 0, "format": "anthropic-claude-v1", "signature": SIGNATURE},
        {"type": "reasoning.encrypted", "data": "x+/=", "id": "r1", "index": 1},
    ]
    assert "reasoning" not in message


def test_signed_blocks_come_back_byte_by_byte() -> None:
    deltas = [
        {"reasoning_content": "a", "thinking_blocks": [{"type": "thinking", "thinking": "a"}]},
        {"reasoning_content": "b", "thinking_blocks": [{"type": "thinking", "thinking": "b"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": SIGNATURE}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": "AAAA"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "c", "signature": "s2"}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "d", "signature": "s3"}]},
        call(),
    ]
    assert sent(deltas)["thinking_blocks"] == [
        {"type": "thinking", "thinking": "ab", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "thinking", "thinking": "c", "signature": "s2"},
        {"type": "thinking", "thinking": "d", "signature": "s3"},
    ]


def test_signatures_of_calls_stay_with_their_calls_and_those_of_texts_with_their_texts() -> None:
    signed = {"google": {"thought_signature": SIGNATURE}}
    message: Any = sent([call(0, extra_content=signed), call(1)], calls=2)
    assert message["tool_calls"][0]["extra_content"] == signed
    assert "extra_content" not in message["tool_calls"][1]
    assert sent([{"content": "x", "extra_content": signed}], calls=0)["extra_content"] == signed


def test_thoughts_in_the_text_go_back_into_the_text() -> None:
    assert sent([{"content": "<think>hm</think>Looking."}, call()])["content"] == "<think>hm</think>\n\nLooking."


@pytest.mark.parametrize("to", [("other", "m"), ("up", "n")])
def test_nobody_else_gets_them(to: tuple[str, str]) -> None:
    deltas = [
        {"reasoning_content": "hm", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        call(0, extra_content={"google": {"thought_signature": "s"}}),
    ]
    message: Any = sent(deltas, to=to)
    assert set(message) == {"role", "content", "tool_calls"}
    assert set(message["tool_calls"][0]) == {"id", "type", "function"}


def test_who_wants_thoughts_of_calls_that_another_made_gets_what_stands_for_them() -> None:
    message: Any = sent([call()], to=("deepseek", "v4"), manners=Manners(wants_thoughts=True))
    assert message["reasoning_content"].isspace()
    message = sent([call(0), call(1)], to=("google", "g"), calls=2, manners=Manners(wants_signatures=True))
    assert message["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": SKIP}}
    assert "extra_content" not in message["tool_calls"][1]


def test_who_refuses_them_gets_none() -> None:
    for manners in (Manners(thoughts_refused=True), Manners(forget_thoughts=True)):
        assert set(sent([{"reasoning_content": "hm"}, call()], manners=manners)) == {"role", "content", "tool_calls"}


def test_what_does_not_fit_takes_along_what_stood_beside_it() -> None:
    small = {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
    assert {"beside", "calls"} <= set(kept(small, call(0, **small)))
    large = {"type": "thinking", "thinking": "x" * KEPT_BYTES, "signature": "s"}
    assert kept(small, call(0, **small), {"thinking_blocks": [large]}) == {}


def test_too_much_is_left_out_whole() -> None:
    block = {"type": "thinking", "thinking": "x" * (KEPT_BYTES // 2), "signature": "s"}
    assert "thinking_blocks" in kept({"thinking_blocks": [block]})
    assert "thinking_blocks" not in kept(
        {"thinking_blocks": [block]},
        {"thinking_blocks": [{**block, "index": 1}]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "y"}]},
    )


@given(
    st.dictionaries(
        st.sampled_from(["reasoning_content", "reasoning_details", "thinking_blocks", "extra_content", "content"]),
        st.recursive(
            st.none() | st.text(max_size=5) | st.integers(),
            lambda s: (
                st.lists(s, max_size=3)
                | st.dictionaries(st.sampled_from(["type", "text", "index", "signature", "thinking"]), s, max_size=3)
            ),
            max_leaves=8,
        ),
    )
)
def test_whatever_stands_there_is_read_and_can_be_stored(delta: dict[str, Any]) -> None:
    json.dumps(kept(delta, delta), allow_nan=False)
