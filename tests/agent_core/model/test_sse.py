"""Server-sent events: the same events however the bytes are cut, and nothing that is no event gets lost unseen."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.stream.sse import STRAY_BYTES, SseEvent, SseReader, SseTooLarge


def read(data: bytes, size: int | None = None) -> tuple[list[SseEvent], SseReader]:
    reader = SseReader()
    step = size or max(1, len(data))
    events = [event for at in range(0, len(data), step) for event in reader.feed(data[at : at + step])]
    return events + reader.finish(), reader


def payloads(data: bytes) -> list[bytes]:
    whole = [event.data for event in read(data)[0]]
    assert [event.data for event in read(data, 1)[0]] == whole
    return whole


def test_events_of_an_ordinary_stream_are_read() -> None:
    assert payloads(b'data: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n') == [b'{"a": 1}', b'{"b": 2}', b"[DONE]"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_three_line_ends_are_line_ends(end: bytes) -> None:
    data = b"event: one\ndata: x\ndata: y\n\ndata: z\n\n".replace(b"\n", end)
    for size in (None, 1, 2, 3):
        assert read(data, size)[0] == [SseEvent(b"x\ny", "one"), SseEvent(b"z")]


def test_one_space_after_the_colon_belongs_to_the_format_and_a_missing_one_is_no_fault() -> None:
    assert payloads(b"data:x\n\ndata:  x\n\n") == [b"x", b" x"]


def test_an_event_without_data_is_none() -> None:
    assert payloads(b"data\n\ndata:\n\nevent: ping\ndata: \n\ndata: x\n\ndata:\n\n") == [b"x"]
    assert payloads(b"data: {}\n\ndata: \n\n") == [b"{}"]


def test_a_byte_order_mark_is_passed_over_only_at_the_start() -> None:
    assert payloads(b"\xef\xbb\xbfdata: \xef\xbb\xbfx\n\n") == [b"\xef\xbb\xbfx"]


def test_comments_are_counted_and_are_no_content() -> None:
    events, reader = read(b": ping\n\n:\n\ndata: x\n:again\n\n")
    assert [event.data for event in events] == [b"x"]
    assert reader.comments == 3
    assert reader.stray == b""


def test_ids_and_retry_times_are_passed_over() -> None:
    events, reader = read(b"id: 4\nretry: 10\ndata: x\n\nid\n\n")
    assert events == [SseEvent(b"x")]
    assert reader.stray == b""


def test_event_names_belong_to_one_event() -> None:
    events, _ = read(b"event: error\ndata: x\n\ndata: y\n\nevent: lonely\n\ndata: z\n\n")
    assert events == [SseEvent(b"x", "error"), SseEvent(b"y"), SseEvent(b"z")]


def test_json_lines_without_blank_lines_between_them_are_events_of_their_own() -> None:
    assert payloads(b'data: {"a": 1}\ndata: {"b": 2}\ndata: [DONE]\n') == [b'{"a": 1}', b'{"b": 2}', b"[DONE]"]


def test_one_json_text_over_several_lines_is_one_event() -> None:
    assert payloads(b'data: {"a":\ndata: {"b": [\ndata: {"c": 1},\ndata: {"c": 2}\ndata: ]}}\n\n') == [
        b'{"a":\n{"b": [\n{"c": 1},\n{"c": 2}\n]}}'
    ]
    assert payloads(b"data: one\ndata: {two}\ndata: three\n\n") == [b"one\n{two}\nthree"]


def test_done_is_known_without_a_blank_line_after_it() -> None:
    reader = SseReader()
    assert reader.feed(b'data: {"a": 1}\n') == []
    assert reader.feed(b"data: [DONE]\n") == [SseEvent(b'{"a": 1}'), SseEvent(b"[DONE]")]
    assert reader.feed(b"\n") == []
    assert reader.finish() == []


def test_an_event_without_its_blank_line_comes_at_the_end() -> None:
    for data in (b'data: {"a": 1}', b'data: {"a": 1}\n'):
        events, reader = read(data)
        assert events == [SseEvent(b'{"a": 1}')]
        assert reader.ended_inside_line == (not data.endswith(b"\n"))


def test_an_object_that_stops_in_the_middle_of_a_line_is_no_event() -> None:
    events, reader = read(b'data: {"a": 1}\n\ndata: {"b": {"c": 1}')
    assert events == [SseEvent(b'{"a": 1}')]
    assert reader.ended_inside_line


@pytest.mark.parametrize(
    "body",
    [b'{"error": {"message": "no credit"}}', b"<html>\n<body>502 Bad Gateway</body>\n</html>", b"upstream error"],
)
def test_what_is_no_event_stream_is_kept_for_diagnosis(body: bytes) -> None:
    for size in (None, 1):
        events, reader = read(body, size)
        assert events == []
        assert reader.stray == body


def test_only_the_first_4096_stray_bytes_are_kept() -> None:
    body = b"\n".join(b"line %d" % number for number in range(5000))
    assert read(body, 100)[1].stray == body[:STRAY_BYTES]


def test_characters_cut_between_two_writes_come_out_whole() -> None:
    data = "data: zażółć 🦀\n\n".encode()
    assert read(data, 1)[0] == [SseEvent("zażółć 🦀".encode())]


@pytest.mark.parametrize(
    "data", [b"data: " + b"x" * 100, b"data: xxxxxxxxxxxxxxx\n" * 9, b": " + b"c" * 100 + b"\n", b"x" * 100]
)
def test_an_event_over_the_limit_is_refused_and_what_came_before_it_is_kept(data: bytes) -> None:
    stream = b"data: good\n\n" + data + b"\n\n"
    for size in (1, 7, 1000):
        reader = SseReader(limit_bytes=64)
        events: list[SseEvent] = []

        def read_on(reader: SseReader = reader, step: int = size, events: list[SseEvent] = events) -> None:
            for at in range(0, len(stream), step):
                events += reader.feed(stream[at : at + step])
            reader.finish()

        with pytest.raises(SseTooLarge, match="more than 64 bytes"):
            read_on()
        assert events == [SseEvent(b"good")]
        with pytest.raises(SseTooLarge):
            reader.feed(b"data: more\n\n")


def test_events_up_to_the_limit_are_given() -> None:
    for size in (1, 1000):
        reader = SseReader(limit_bytes=64)
        stream = (b"data: " + b"x" * 58 + b"\n\n") * 3
        events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
        assert events == [SseEvent(b"x" * 58)] * 3


fragments = st.sampled_from(
    [b"data: ", b"data:", b"data", b"event: e", b": c", b"id: 1", b'{"a": 1}', b"{", b"}", b"[DONE]", b"x", b" ", b":", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\n\r\n", b"\xef\xbb\xbf", "ż".encode(), b"<html>", b"\x0b\x0c\x1c\x85"]
)  # fmt: skip
streams = st.lists(fragments, max_size=30).map(b"".join)


@given(streams, st.lists(st.integers(0, 200), max_size=8))
def test_every_way_of_cutting_the_bytes_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    whole, reference = read(data)
    reader = SseReader()
    events: list[SseEvent] = []
    for begin, end in pairwise([0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]):
        events += reader.feed(data[begin:end])
    events += reader.finish()
    assert events == whole
    assert (reader.stray, reader.comments, reader.ended_inside_line) == (
        reference.stray,
        reference.comments,
        reference.ended_inside_line,
    )
    assert read(data, 1)[0] == whole


@given(st.lists(st.tuples(st.sampled_from(["", "e"]), st.lists(st.text("ab: ż}", max_size=5), min_size=1)), max_size=5))
def test_what_a_server_writes_by_the_standard_is_read_back(written: list[tuple[str, list[str]]]) -> None:
    stream = b""
    for name, lines in written:
        stream += b"event: e\n" if name else b""
        stream += b"".join(b"data: " + line.encode() + b"\n" for line in lines) + b"\n"
    said = [("\n".join(lines).encode(), name) for name, lines in written]
    assert read(stream)[0] == [SseEvent(data, name) for data, name in said if data.strip()]


@pytest.mark.parametrize("size", [1 << 20, 4096, 200])
def test_a_long_stream_is_read_in_linear_time(size: int) -> None:
    line = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
    stream = line * 30_000
    begin = time.process_time()
    events, _ = read(stream, size)
    seconds = time.process_time() - begin
    print(f"{len(stream) / seconds / 1e6:.0f} MB/s in pieces of {size}")
    assert len(events) == 30_000
    assert seconds < 5, "some hundredths of a second; quadratic would take minutes"


def test_one_long_line_in_small_pieces_takes_linear_time() -> None:
    def seconds(length: int) -> float:
        best = 9.0
        for _ in range(3):
            begin = time.process_time()
            assert len(read(b"data: " + b"x" * length + b"\n\n", 16)[0]) == 1
            best = min(best, time.process_time() - begin)
        return best

    assert seconds(1_600_000) < 8 * seconds(400_000) + 0.05


def test_an_error_line_holds_an_error() -> None:
    reader = SseReader()
    events = reader.feed(b'data: {"choices": []}\nerror: {"code": 500, "message": "no room"}\n\nerror: in words\n')
    assert [one.data for one in events] == [b'{"choices": []}', b'{"error": {"code": 500, "message": "no room"}}']
    assert reader.stray == b"error: in words"
