"""What a server sends twice is said once, and what is merely alike is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.stream.chunks import ChunkReader
from agent_core.model.stream.once import SaidOnce
from agent_core.turn.events import TextArrived, ToolArgumentsArrived

PIECES = ["Hello", " there,", " this is", " the whole", " answer."]


def choice(finish: str | None = None, **fields: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, **fields, "finish_reason": finish}]}).encode()


def said(*payloads: bytes) -> str:
    reader = ChunkReader(1, (), parse_text_calls=True)
    events = [*reader.feed(payloads, 1), *reader.finish(2)]
    return "".join(event.text for event in events if isinstance(event, TextArrived))


def deltas() -> list[bytes]:
    return [choice(delta={"content": piece}) for piece in PIECES]


WHOLE = "".join(PIECES)
WAYS: dict[str, list[bytes]] = {
    "a message behind the deltas": [*deltas(), choice("stop", delta={}, message={"role": "assistant", "content": WHOLE})],
    "a message in a chunk without deltas": [*deltas(), choice("stop", message={"content": WHOLE})],
    "a message that was trimmed": [*deltas(), choice("stop", message={"content": WHOLE.strip(".")})],
    "the whole beside the finish reason": [*deltas(), choice("stop", delta={"content": WHOLE})],
    "the whole before the finish reason": [*deltas(), choice(delta={"content": WHOLE}), choice("stop", delta={})],
    "all so far in every delta": [
        *(choice(delta={"content": "".join(PIECES[: n + 1])}) for n in range(len(PIECES))),
        choice("stop", delta={}),
    ],
    "all so far in two deltas": [choice(delta={"content": "Hello"}), choice("stop", delta={"content": WHOLE})],
    "a message alone": [choice("stop", message={"content": WHOLE})],
    "deltas alone": [*deltas(), choice("stop", delta={})],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_it_is_said_once(way: str) -> None:
    assert said(*WAYS[way]) == WHOLE


@pytest.mark.parametrize(
    "pieces",
    [["ha", "ha"], ["ha", "haha", "!"], ["1", "10", "100"], ["-", "--", "---x"], ["no", "no", "no"], ["a", "ab", "b"], ["\n", "\n\n", "x"]],
)  # fmt: skip
def test_words_that_are_alike_are_all_said(pieces: list[str]) -> None:
    payloads = [choice(delta={"content": piece}) for piece in pieces]
    assert said(*payloads, choice("stop", delta={})) == "".join(pieces)


@given(st.lists(st.text(min_size=1, max_size=12), max_size=30))
def test_pieces_are_said_as_they_come_unless_one_says_all_again(pieces: list[str]) -> None:
    once = SaidOnce()
    got = "".join([*(once.feed(piece) for piece in pieces), once.finish()])
    whole = "".join(pieces)
    so_far = ["".join(pieces[:n]) for n in range(len(pieces))]
    begins = [bool(before) and piece.startswith(before) for piece, before in zip(pieces, so_far, strict=True)]
    if not any(begins):
        assert got == whole


@given(st.lists(st.text(min_size=1, max_size=8), min_size=3, max_size=12))
def test_all_so_far_in_each_piece_is_said_once(pieces: list[str]) -> None:
    once = SaidOnce()
    pieces = ["Well, ", *pieces]
    so_far = ["".join(pieces[: n + 1]) for n in range(len(pieces))]
    assert "".join([*(once.feed(each) for each in so_far), once.finish()]) == so_far[-1]


def test_calls_that_stand_in_the_message_as_well_are_called_once() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a": 1}'}}
    reader = ChunkReader(1, (), parse_text_calls=True)
    events = reader.feed(
        [choice(delta={"tool_calls": [call]}), choice("tool_calls", message={"tool_calls": [call]})], 1
    )
    assert "".join(event.text for event in events if isinstance(event, ToolArgumentsArrived)) == '{"a": 1}'


def test_arguments_that_come_a_second_time_are_taken_once() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"a": {"a": 1}}'}}
    reader = ChunkReader(1, (), parse_text_calls=True)
    events = reader.feed([choice(delta={"tool_calls": [call]}), choice("tool_calls", delta={"tool_calls": [call]})], 1)
    assert "".join(event.text for event in events if isinstance(event, ToolArgumentsArrived)) == '{"a": {"a": 1}}'
