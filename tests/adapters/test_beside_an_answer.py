"""What an answer has beside its words, item by item: calls of the gateway's tools by how they ended, pictures, sound, and what is not kept any more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Ended
from adapters.http.api.asked import ApiRequest
from adapters.http.api.beside import all_facts, logprobs_of, made_fields, with_data
from adapters.http.api.completions import usage_of
from adapters.http.api.responseitems import RESULT_CHARS, own_call_item, pictures_of, sound_of
from agent_core.failures.exits import ExitCode
from agent_core.jsonvalue import Json
from agent_core.model.made import DATA, FILES
from agent_core.turn.state import ActivityState
from tests.adapters.scripted import SUMMARY, ended, example, tool

ASKED = ApiRequest(
    model="m", history=(), latest=(), system=(), tools=(), parameters={}, client_output_limit=False, session="", user="",
    stream=False, include_usage=False, digest="",
)  # fmt: skip


def made(*files: dict[str, Json], **more: Json) -> Ended:
    return replace(ended(example(ExitCode.ANSWERED)), made={FILES: [*files], **more})


@pytest.mark.parametrize("result", ["", "what it gave", "x" * (RESULT_CHARS + 1)])
@pytest.mark.parametrize("state", ActivityState)
def test_a_call_shows_its_result_where_it_is_done_and_why_not_where_it_is_not(
    state: ActivityState, result: str
) -> None:
    call = replace(tool("c1", "look", state.value), arguments='{"a": 1}', result=result)
    item: Any = own_call_item("mcp_1", call)
    statuses = {
        ActivityState.DONE: "completed", ActivityState.FAILED: "failed", ActivityState.NOT_RUN: "incomplete",
        ActivityState.UNSURE: "incomplete",
    }  # fmt: skip
    assert item["status"] == statuses.get(state, "in_progress")
    shown = result if len(result) <= RESULT_CHARS else f"{result[:RESULT_CHARS]}… ({len(result)} characters)"
    assert item["output"] == (shown if state is ActivityState.DONE else None)
    failed = state in (ActivityState.FAILED, ActivityState.NOT_RUN, ActivityState.UNSURE)
    assert (item["error"] is not None) is failed
    if failed:
        (part,) = item["error"]["content"]
        said = shown if state is not ActivityState.UNSURE else ""
        assert part["text"] == (said or part["text"])
        assert part["text"]
    assert (item["name"], item["arguments"]) == ("look", '{"a": 1}')


KEPT: dict[str, Json] = {"kind": "image", "mime": "image/png", DATA: "QQ=="}
ELSEWHERE: dict[str, Json] = {"kind": "image", "mime": "image/png", "url": "https://x.example/a.png"}
GONE: dict[str, Json] = {"kind": "image", "mime": "image/png", "file": "/nowhere"}
SOUND: dict[str, Json] = {"kind": "audio", "id": "a1", "transcript": "hello", DATA: "Qg=="}


@given(st.lists(st.sampled_from([KEPT, ELSEWHERE, GONE, SOUND]), max_size=6))
def test_each_picture_that_there_is_is_told_once_in_its_order_and_what_is_gone_is_named(
    files: list[dict[str, Json]],
) -> None:
    one = made(*files)
    there = [each for each in files if each in (KEPT, ELSEWHERE)]
    fields: Any = made_fields(one)
    images = fields.get("images", [])
    assert [each["index"] for each in images] == [*range(len(there))]
    addresses = ["data:image/png;base64,QQ==" if each is KEPT else ELSEWHERE["url"] for each in there]
    assert [each["image_url"]["url"] for each in images] == addresses
    pictures: list[Any] = [*pictures_of(one, "m")]
    assert [(each["result"], each.get("url")) for each in pictures] == [
        (each.get(DATA), each.get("url")) for each in there
    ]
    assert len({each["id"] for each in pictures}) == len(there)
    assert ("audio" in fields, bool(sound_of(one))) == (SOUND in files, SOUND in files)
    left_out: Any = all_facts(one, ASKED).get("left_out", [])
    assert left_out == ["image"] * files.count(GONE)


def test_what_a_request_wished_for_and_nobody_could_give_is_named_before_what_is_lost() -> None:
    one = made(GONE, left_out=["audio"])
    told = all_facts(replace(one, summary=replace(SUMMARY, unsent=("seed",))), replace(ASKED, left_out=("include.x",)))
    assert told["left_out"] == ["include.x", "seed", "audio", "image"]
    assert "left_out" not in all_facts(made(), ASKED)


async def test_data_is_read_where_it_is_still_kept(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"A")
    one = made({"kind": "image", "file": str(tmp_path / "a.png")}, {"kind": "image", "file": str(tmp_path / "b.png")})
    found: Any = (await with_data(one)).made[FILES]
    assert [each.get(DATA) for each in found] == ["QQ==", None]


@pytest.mark.parametrize(
    ("told", "found"), [({}, None), ({"logprobs.content": []}, None), ({"logprobs.refusal": [{"token": "a"}]}, True)]
)
def test_probabilities_are_told_where_there_are_any(told: dict[str, Json], found: bool | None) -> None:
    assert (logprobs_of(made(**told)) is not None) is bool(found)


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
def test_what_was_used_adds_up_and_what_is_not_known_is_left_out(
    given_: int, said: int, cached: int, thought: int
) -> None:
    summary = replace(SUMMARY, input_tokens=given_, output_tokens=said, cached_tokens=cached, reasoning_tokens=thought)
    used: Any = usage_of(replace(made(), summary=summary))
    if not given_ and not said:
        assert used == {}
        return
    assert (used["prompt_tokens"], used["completion_tokens"], used["total_tokens"]) == (given_, said, given_ + said)
    assert used.get("prompt_tokens_details") == ({"cached_tokens": cached} if cached else None)
    assert used.get("completion_tokens_details") == ({"reasoning_tokens": thought} if thought else None)
