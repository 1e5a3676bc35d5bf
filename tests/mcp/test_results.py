"""Laws of what is made of a result, whatever a server gives."""

from __future__ import annotations

import base64

from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.tools.mcp.results import MOST_FILES, read_result
from tests.mcp.test_listed import VALUES

DATA = st.binary(min_size=1, max_size=40).map(lambda data: base64.b64encode(data).decode()) | st.text(max_size=10)

SECRET = "sk-Zq7-WvX9-KtRm"


def hidden(text: str) -> str:
    return text.replace(SECRET, "•••")


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _file(kind: str, data: str, mime: Json) -> Json:
    return {"type": kind, "data": data, "mimeType": mime}


def _blob(uri: str, data: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "blob": data}}


def _words(uri: str, text: str) -> Json:
    return {"type": "resource", "resource": {"uri": uri, "text": text}}


PART: st.SearchStrategy[Json] = st.one_of(
    VALUES,
    st.builds(_text, st.text(max_size=300)),
    st.builds(_file, st.sampled_from(["image", "audio"]), DATA, VALUES),
    st.builds(_blob, st.text(max_size=20), DATA),
    st.builds(_words, st.text(max_size=20), st.text(max_size=50)),
)


@given(st.lists(PART, max_size=MOST_FILES + 4), VALUES, st.integers(500, 2_000))
def test_a_result_is_bounded_and_everything_in_it_is_told(parts: list[Json], structured: Json, limit: int):
    found = read_result({"content": parts, "structuredContent": structured}, "call", limit, hidden)
    assert 0 < len(found.text) <= limit
    assert len({one.path for one in found.files}) == len(found.files) <= MOST_FILES + 1
    for one in found.files:
        assert one.path.startswith("mcp/")
        assert "/" not in one.path.removeprefix("mcp/")
        assert one.path in found.text or found.left_out_chars


@given(st.text("ab\n", min_size=600, max_size=5_000))
def test_a_text_that_is_too_long_is_kept_whole_as_a_file(text: str):
    found = read_result({"content": [{"type": "text", "text": text}]}, "call", 500, hidden)
    if len(text.strip()) > 500:
        assert found.files[-1].data.decode() == text.strip()
        assert found.files[-1].path in found.text
        assert found.left_out_chars > 0


@given(st.integers(0, 3_000), st.integers(0, 3_000), st.integers(300, 2_000))
def test_no_part_of_a_secret_is_in_what_is_shown_or_kept_wherever_it_is_cut(before: int, behind: int, limit: int):
    text = "a" * before + SECRET + "b" * behind
    found = read_result({"content": [{"type": "text", "text": text}]}, "call", limit, hidden)
    for said in (found.text, *(one.data.decode() for one in found.files)):
        assert not [n for n in range(4, len(SECRET)) if SECRET[:n] in said]


def test_a_picture_is_a_file_with_the_ending_of_its_kind():
    part: Json = {"type": "image", "data": base64.b64encode(b"\x89PNG").decode(), "mimeType": "image/png"}
    found = read_result({"content": [part]}, "call", 1_000, hidden)
    assert found.files[0].data == b"\x89PNG"
    assert found.files[0].path.endswith(".png")


def test_a_type_that_is_a_path_does_not_become_one():
    part: Json = {"type": "image", "data": base64.b64encode(b"x").decode(), "mimeType": "../../etc/passwd"}
    assert read_result({"content": [part]}, "call", 1_000, hidden).files[0].path.endswith("-1.bin")


def test_a_structured_result_is_shown_once():
    found = read_result(
        {"content": [{"type": "text", "text": '{"a": 1}'}], "structuredContent": {"a": 1}}, "call", 1_000, hidden
    )
    assert found.text == '{"a": 1}'
    found = read_result(
        {"content": [{"type": "text", "text": "words"}], "structuredContent": {"result": "words"}},
        "call",
        1_000,
        hidden,
    )
    assert found.text == "words"
    found = read_result({"content": [], "structuredContent": {"a": 1}}, "call", 1_000, hidden)
    assert found.text == '{\n  "a": 1\n}'


def test_a_failure_of_the_tool_is_one():
    assert read_result({"content": [{"type": "text", "text": "no"}], "isError": True}, "call", 1_000, hidden).failed


def test_nothing_is_told_as_nothing():
    assert (
        read_result({"content": []}, "call", 1_000, hidden).text == "The tool gave no result; it says that it was done."
    )


def test_what_two_calls_brought_lies_in_files_of_its_own_and_what_one_brought_twice_in_the_same() -> None:
    picture: Json = {"type": "image", "data": "eA==", "mimeType": "image/png"}
    raw: dict[str, Json] = {"content": [picture, picture]}
    paths = {call: [one.path for one in read_result(raw, call, 9_000, hidden).files] for call in ("c1", "c2", "\ud800")}
    assert len({path for one in paths.values() for path in one}) == 6
    assert [one.path for one in read_result(raw, "c1", 9_000, hidden).files] == paths["c1"]
