"""What a reply holds beside text: pictures, sound, sources, probabilities, a refusal."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.made import BESIDE_BYTES, DATA, FILES, MOST_FILES, MadeKeeper
from agent_core.model.stream.chunks import ChunkReader
from agent_core.turn.events import TextArrived

PIXEL = "data:image/png;base64," + b64encode(b"\x89PNG picture").decode()


def _read(*deltas: dict[str, Any], finish: str = "stop", **choice: Any) -> tuple[str, ChunkReader]:
    """(the text, the reader) of a stream."""
    reader = ChunkReader(1, (), parse_text_calls=True)
    payloads = [orjson.dumps({"choices": [{"index": 0, "delta": delta, **choice}]}) for delta in deltas]
    events = reader.feed(
        [*payloads, orjson.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})], 1
    )
    events = [*events, *reader.finish(1)]
    return "".join(event.text for event in events if isinstance(event, TextArrived)), reader


def _picture() -> dict[str, Any]:
    return {"images": [{"type": "image_url", "index": 0, "image_url": {"url": PIXEL}}]}


def test_a_picture_alone_is_no_empty_reply() -> None:
    text, reader = _read(_picture())
    assert text == "(a picture)"
    files: Any = reader.made.kept()[FILES]
    assert [(file["kind"], file["mime"]) for file in files] == [("image", "image/png")]
    assert files[0][DATA] == [PIXEL.partition(",")[2]]


def test_beside_text_a_picture_is_not_named() -> None:
    assert _read({"content": "Here it is."}, _picture())[0] == "Here it is."


def test_a_picture_in_a_part_of_the_content_is_one() -> None:
    text, reader = _read({"content": [{"type": "image_url", "image_url": {"url": PIXEL}}]})
    assert text == "(a picture)"
    assert FILES in reader.made.kept()


def test_what_is_spoken_is_read_and_its_sound_is_kept_in_its_pieces() -> None:
    pieces = [b64encode(piece).decode() for piece in (b"one", b"twoo")]
    sound = [
        {"id": "a1"},
        {DATA: pieces[0]},
        {"transcript": "Good "},
        {DATA: pieces[1]},
        {"transcript": "day."},
        {"expires_at": 7},
    ]
    text, reader = _read(*({"audio": piece} for piece in sound))
    assert text == "Good day."
    (file,) = [*_files(reader)]
    assert file == {"kind": "audio", "id": "a1", "transcript": "Good day.", "expires_at": 7, DATA: pieces}


def test_sound_without_words_is_no_empty_reply() -> None:
    assert _read({"audio": {"id": "a1", DATA: "AAAA"}})[0] == "(sound)"


def test_a_refusal_is_said_and_marked() -> None:
    text, reader = _read({"refusal": "I can't "}, {"refusal": "do that."})
    assert text == "I can't do that."
    assert reader.made.kept() == {}


def test_sources_and_probabilities_are_kept_in_order() -> None:
    token: dict[str, Any] = {"token": "hi", "logprob": -0.5, "bytes": None, "top_logprobs": []}
    _, reader = _read({"content": "h"}, {"content": "i"}, logprobs={"content": [token], "refusal": None})
    assert reader.made.kept() == {"logprobs.content": [token, token]}
    _, reader = _read({"content": "x", "annotations": [{"type": "url_citation"}]}, {"annotations": [{"type": "file"}]})
    assert reader.made.kept() == {"annotations": [{"type": "url_citation"}, {"type": "file"}]}


def test_what_is_too_much_is_left_out_whole_and_named() -> None:
    keeper = MadeKeeper()
    for _ in range(3):
        keeper.logprobs({"content": ["x" * (BESIDE_BYTES // 2)]})
    assert keeper.kept() == {"left_out": ["logprobs.content"]}
    keeper = MadeKeeper()
    for _ in range(MOST_FILES + 1):
        keeper.delta(_picture())
    assert len(keeper.kept()[FILES]) == MOST_FILES  # pyright: ignore[reportArgumentType]
    assert keeper.kept()["left_out"] == ["image"]


def _files(reader: ChunkReader) -> list[Any]:
    files: Any = reader.made.kept().get(FILES, [])
    return files


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["url", "image_url", "data", "transcript", "id"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["images", "audio", "annotations", "refusal"]), values, max_size=4), max_size=4
    )
)
def test_nothing_that_a_server_writes_there_breaks_the_reader(deltas: list[dict[str, Any]]) -> None:
    keeper = MadeKeeper()
    for delta in deltas:
        keeper.delta(delta)
        keeper.logprobs(delta.get("audio"))
    orjson.dumps(keeper.kept())
