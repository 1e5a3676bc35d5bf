"""Chunks that are alike say the same whether they are read together or one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import orjson
from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from agent_core.model.stream.alike import TRIES, Alike, BodyReader, only_text
from agent_core.model.stream.chunks import ChunkReader
from agent_core.model.stream.sse import SseReader
from agent_core.turn.events import Event, ReasoningArrived, TextArrived, ToolArgumentsArrived

WORDS = st.one_of(
    st.sampled_from(
        ["Hello", " ", "wörld", "<think>", "</think>", "\n\n", "data: ", '"', "\\", "<tool_call>", "😀", ""]
    ),
    st.text(max_size=12),
)


def chunk(delta: dict[str, object], finish: str | None = None, **beside: object) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return orjson.dumps({"id": "c", "object": "chat.completion.chunk", "created": 1, "choices": [choice], **beside})


def said(text: str) -> bytes:
    return chunk({"content": text})


CALL = {"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}
OTHERS = st.sampled_from(
    [
        chunk({"role": "assistant", "content": ""}),
        chunk({"role": "assistant", "content": "with a role"}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "both", "reasoning_content": "hm"}),
        chunk({"tool_calls": [CALL]}),
        chunk({"content": "beside usage"}, usage={"prompt_tokens": 3, "completion_tokens": 2}),
        chunk({"content": "the last"}, "stop"),
        chunk({}, "length"),
        chunk({"refusal": "no"}),
        json.dumps(json.loads(said("spaced"))).encode(),
        chunk({}).replace(b'"delta":{}', rb'"delta":{"content":"\ud83d"}'),
        chunk({}).replace(b'"delta":{}', rb'"delta":{"content":"\ude00"}'),
        chunk({}).replace(b'"delta":{}', rb'"delta":{"content":"a","b"}'),
        chunk({}).replace(b'"delta":{}', b'"delta":{"content":["a"]}'),
        chunk({}).replace(b'"delta":{}', b'"delta":{"content":7}'),
        b"[DONE]",
        b'{"error":{"message":"gone"}}',
        b"keep-alive",
    ]
)
EVENTS = st.lists(st.one_of(WORDS.map(said), WORDS.map(said), WORDS.map(said), OTHERS), max_size=40)
ENDS = st.sampled_from([b"\n\n", b"\n\n", b"\n\n", b"\n", b"\r\n\r\n", b"\n: ping\n\n", b"\n\n\n"])


def flat(events: Sequence[Event]) -> list[object]:
    """Events without where text was cut."""
    out: list[object] = []
    kind: object = None
    for event in events:
        match event:
            case TextArrived() | ReasoningArrived():
                same, text = type(event), event.text
            case ToolArgumentsArrived():
                same, text = (type(event), event.index), event.text
            case _:
                out.append(event)
                kind = None
                continue
        if same == kind:
            out[-1] = f"{out[-1]}{text}"
        else:
            out += [same, text]
            kind = same
    return out


def reader() -> ChunkReader:
    return ChunkReader(0, (), parse_text_calls=True, offered=("look",), tools=b"[]")


def state(chunks: ChunkReader) -> tuple[object, ...]:
    return (
        chunks.finish_reason, chunks.done, chunks.error, chunks.bad_chunk, chunks.recognised, chunks.chars, chunks.belied,
        chunks.input_tokens, chunks.output_tokens,
    )  # fmt: skip


def long_way(pieces: Sequence[bytes]) -> tuple[list[Event], tuple[object, ...], bytes]:
    sse, chunks = SseReader(), reader()
    events: list[Event] = []
    for piece in pieces:
        events += chunks.feed([event.data for event in sse.feed(piece)], 0)
    events += chunks.feed([event.data for event in sse.finish()], 0)
    return events + chunks.finish(0), state(chunks), sse.stray


def short_way(pieces: Sequence[bytes]) -> tuple[list[Event], tuple[object, ...], bytes]:
    chunks = reader()
    body = BodyReader(chunks)
    events: list[Event] = []
    for piece in pieces:
        events += body.feed(piece, 0)
    events += body.finish(0)
    return events + chunks.finish(0), state(chunks), body.stray


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@given(EVENTS, st.lists(ENDS, min_size=1, max_size=5), st.lists(st.integers(0, 10_000), max_size=20))
@example([said("Well"), said(", then"), said(' a "b'), said('","'), said("x")], [b"\n\n"], [130, 200, 333])
def test_what_is_read_together_says_the_same_as_what_is_read_one_by_one(
    payloads: list[bytes], ends: list[bytes], places: list[int]
) -> None:
    data = b"".join(b"data: " + payload + ends[n % len(ends)] for n, payload in enumerate(payloads))
    pieces = cut(data, places)
    events, after, stray = short_way(pieces)
    expected, expected_after, expected_stray = long_way(pieces)
    assert flat(events) == flat(expected)
    assert after == expected_after
    assert stray == expected_stray


@given(st.lists(st.binary(max_size=30), max_size=6), st.lists(st.integers(0, 10_000), max_size=9))
def test_no_bytes_between_chunks_that_are_alike_are_taken_for_text(middles: list[bytes], places: list[int]) -> None:
    """Whatever a server puts where the text would be."""
    begin = [said("One"), said(" two"), said(" three, and so on and so on")]
    before, behind = said("X").split(b'"X"')
    payloads = [*begin, *(before + middle + behind for middle in middles), said(" end")]
    pieces = cut(b"".join(b"data: " + payload + b"\n\n" for payload in payloads), places)
    events, after, _ = short_way(pieces)
    expected, expected_after, _ = long_way(pieces)
    assert (flat(events), after) == (flat(expected), expected_after)


def payloads_of_the_long_way(pieces: Sequence[bytes]) -> int:
    """How many chunks were read one by one."""
    read = 0

    class Counting(ChunkReader):
        __slots__ = ()

        @override
        def feed(self, payloads: Iterable[bytes], at: int) -> list[Event]:
            nonlocal read
            found = list(payloads)
            read += len(found)
            return super().feed(found, at)

    body = BodyReader(Counting(0, (), parse_text_calls=True))
    for piece in pieces:
        body.feed(piece, 0)
    return read


def test_of_a_steady_stream_only_the_first_chunks_are_read_one_by_one() -> None:
    pieces = [b"data: " + said(f"word{n} ") + b"\n\n" for n in range(500)]
    assert payloads_of_the_long_way(pieces) <= 4
    whole = b"".join(pieces)
    cuts = [whole[n : n + 1_000] for n in range(0, len(whole), 1_000)]
    assert payloads_of_the_long_way(cuts) <= 2 * (1_000 // len(pieces[0]) + 1)


def test_nothing_alike_is_looked_for_where_each_chunk_has_another_filling() -> None:
    alike = Alike()
    pieces = [b"data: " + chunk({"content": "w"}, number=n) + b"\n\n" for n in range(50)]
    assert payloads_of_the_long_way(pieces) == 50
    for piece in pieces:
        alike.learn(piece[6:-2])
    assert alike.read(pieces[TRIES - 1], 9) is not None
    assert alike.read(pieces[-1], 9) is None


def test_a_chunk_with_anything_beside_its_text_is_no_text_alone() -> None:
    assert only_text(orjson.loads(said("so"))) == "so"
    assert only_text(orjson.loads(chunk({"role": "assistant", "content": "so", "tool_calls": None}))) == "so"
    for other in (
        chunk({"content": "so"}, "stop"),
        chunk({"content": "so"}, usage={"prompt_tokens": 1}),
        chunk({"content": "so"}, error={"message": "no"}),
        chunk({"content": "so", "reasoning": "hm"}),
        chunk({"content": "so", "tool_calls": [CALL]}),
        chunk({"content": "so", "refusal": "no"}),
    ):
        assert not only_text(orjson.loads(other)), other
