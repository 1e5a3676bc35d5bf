"""What an append-only client is told is told once, in its place, and is not forgotten while nothing new comes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Queued, Showing, Ticket
from adapters.http.api.asked import KnownItems
from adapters.http.api.completions import Completion
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.responsesread import read
from adapters.http.api.spelling import ApiJob
from adapters.http.api.spoken import Spoken, status_comment, text_of
from adapters.http.common import Problem
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import Answered, ExitCode
from agent_core.failures.notices import ExitClass
from agent_core.records import changed
from agent_core.turn.view import Bubble, BubbleKind, View
from tests.adapters.scripted import ended, example, said, shown, text, tool
from tests.adapters.test_beside_an_answer import ASKED

BUBBLES = (
    text("a", "First.", BubbleKind.INTERIM, final=True), tool("c1", "look", "running"), tool("c1", "look", "done"), tool("c2", "read", "failed"),
    Bubble("n1", BubbleKind.NOTE, "A note.", final=True), text("b", "Second, ", final=False), text("b", "Second, and last.", final=True),
    Bubble("n2", BubbleKind.NOTICE, "⚠️ Cut.", final=True), Bubble("s", BubbleKind.STATUS, "Waiting", final=False),
)  # fmt: skip


@given(
    st.lists(st.sampled_from(BUBBLES), unique_by=lambda one: one.key),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_looking_at_the_same_again_has_nothing_new(
    bubbles: list[Bubble], open_: bool, data: bool, apart: bool, ours: bool
) -> None:
    spoken, view = Spoken(data=data, apart=apart, ours=ours), View(tuple(bubbles), open=open_)
    first = spoken.new(view)
    assert [*spoken.new(view), *spoken.new(view)] == []
    keys = [one.key for one in first]
    assert len(set(keys)) == len(keys)


@given(st.permutations(["running", "done"]), st.booleans())
def test_a_call_is_told_each_time_that_it_has_come_further(states: list[str], again: bool) -> None:
    spoken, told = Spoken(apart=True), list[str]()
    for state in ["running", *(["running"] if again else []), "done", "done"]:
        told += [one.act.state for one in spoken.new(shown(tool("c1", "look", state))) if one.act is not None]
    assert told == ["running", "done"]
    del states


def test_a_comment_tells_the_status_else_what_runs_now() -> None:
    runs = shown(tool("c1", "look", "done"), tool("c2", "read", "running", 4), tool("c3", "write", "running", 2))
    assert status_comment(runs) == "running write, 2 s"
    waits = Bubble("s", BubbleKind.STATUS, "Waiting for the model", final=False)
    assert status_comment(shown(tool("c1", "look", "running"), waits)) == "Waiting for the model"
    assert status_comment(shown(tool("c1", "look", "done"))) == ""


# ---------------------------------------------------------------------- chat completions


@pytest.mark.parametrize("structured", [True, False])
@pytest.mark.parametrize("errors", [ErrorsAs.STATUS, ErrorsAs.WORDS])
def test_a_refusal_is_text_for_who_reads_text_and_stands_apart_for_who_asks_for_data(
    errors: ErrorsAs, *, structured: bool
) -> None:
    parameters: Any = {"response_format": {"type": "json_object"}} if structured else {}
    job = ApiJob(
        changed(ASKED, parameters=parameters), Ticket(1, "s", duplicate=False), "r", 0, {}, keyed=False, errors=errors
    )  # fmt: skip
    refuses = replace(text("a", "I will not.", BubbleKind.ANSWER, final=True), refusal=True)
    whole: Any = Completion(job).whole(ended(Answered(), refuses))
    message = whole["choices"][0]["message"]
    data = structured and errors is ErrorsAs.STATUS
    assert message["content"] == (None if data else "I will not.")
    assert message["refusal"] == ("I will not." if errors is ErrorsAs.STATUS else None)
    streamed = Completion(job)
    spoken = streamed.listening()
    pieces = spoken.new(shown(refuses))
    told = [json.loads(line[6:]) for line in streamed.says(pieces).decode().split("\n\n") if line]
    deltas: list[Any] = [each["choices"][0]["delta"] for each in told]
    assert "".join(each.get("content") or "" for each in deltas) == (message["content"] or "")
    assert "".join(each.get("refusal") or "" for each in deltas) == (message["refusal"] or "")
    assert text_of(pieces) == "I will not."


async def test_a_place_in_the_line_is_told_though_nothing_more_comes_before_the_stream_begins() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    _, _, told = await said([Queued(3), 6.0, 6.0, ended(Answered(), text("a", "x", BubbleKind.ANSWER, final=True))], "/v1/chat/completions", body)  # fmt: skip
    assert b"queued, place 3" in told
    assert told.rstrip().endswith(b"data: [DONE]")


async def test_a_running_turn_is_named_though_nothing_more_comes_before_the_stream_begins() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
    waits = Showing("t_1", shown(Bubble("s", BubbleKind.STATUS, "Waiting\n\ndata: forged", final=False)))
    script = [
        waits,
        6.0,
        6.0,
        waits,
        4.0,
        waits,
        ended(example(ExitCode.ANSWERED), text("a", "x", BubbleKind.ANSWER, final=True)),
    ]
    _, _, told = await said(script, "/v1/chat/completions", body)
    assert b": turn t_1" in told
    assert b": Waiting data: forged\n\n" in told
    assert b"\ndata: forged" not in told


# ---------------------------------------------------------------------- what is wrong is named by its place


@pytest.mark.parametrize("before", range(4))
def test_what_is_wrong_with_an_item_names_that_item_whatever_came_of_those_before_it(before: int) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    items: list[dict[str, Any]] = [{"role": "user", "content": "x"}]
    items += [call | {"call_id": f"c{number}"} for number in range(before)]  # several calls are one message
    items += [{"type": "reasoning", "summary": []}, {"type": "function_call_output", "call_id": "c", "output": "x"}]
    items.append({"role": "user", "content": [{"type": "input_image", "image_url": "ftp://x"}]})
    found = read(orjson.dumps({"instructions": "Be kind.", "input": items}), "", KnownItems(items={}))
    assert isinstance(found, Problem)
    assert str(found.param).startswith(f"input[{len(items) - 1}]"), found
    assert f"input[{len(items) - 1}]" in found.message


def test_metadata_has_sixteen_texts_of_five_hundred_and_twelve_characters_at_most() -> None:
    for count, length, fits in ((16, 512, True), (17, 1, False), (1, 513, False), (0, 0, True)):
        body = {"input": "x", "metadata": {f"m{n}": "x" * length for n in range(count)}}
        found = read(orjson.dumps(body), "", KnownItems(items={}))
        assert isinstance(found, Problem) is not fits, (count, length)
    assert isinstance(read(orjson.dumps({"input": "x", "metadata": {"a": 1}}), "", KnownItems(items={})), Problem)


@pytest.mark.parametrize(
    ("store", "background", "taken"),
    [(None, True, True), (True, True, True), (False, True, False), (False, False, True)],
)
def test_what_runs_in_the_background_has_to_be_stored(store: bool | None, *, background: bool, taken: bool) -> None:
    body: dict[str, Any] = {"input": "x", "background": background} | ({} if store is None else {"store": store})
    found = read(orjson.dumps(body), "", KnownItems(items={}))
    assert isinstance(found, Problem) is not taken


# ---------------------------------------------------------------------- responses


def response(*, include: list[str] | None = None, sealing: bool = True) -> ResponseSpelling:
    again: dict[str, Any] = {} if include is None else {"include": include}
    job = ApiJob(
        changed(ASKED, kept=True, again=again), Ticket(1, "s", duplicate=False), "r", 0, {}, keyed=False,
        errors=ErrorsAs.STATUS, seal=(lambda _: "sealed") if sealing else None,
    )  # fmt: skip
    return ResponseSpelling(job)


def test_a_response_is_queued_once_however_often_its_place_changes() -> None:
    spelling = response()
    spelling.begins()
    assert b"response.queued" in spelling.queued(Queued(3))
    assert [spelling.queued(Queued(number)) for number in (2, 1)] == [b"", b""]


@pytest.mark.parametrize(
    ("include", "sealing", "sealed"),
    [
        (["reasoning.encrypted_content"], True, True),
        (["reasoning.encrypted_content"], False, False),
        ([], True, False),
        (None, True, False),
    ],
)
def test_thoughts_are_sealed_for_who_asked_for_that(include: list[str] | None, *, sealing: bool, sealed: bool) -> None:
    thoughts = {"thinking_blocks": [{"type": "thinking", "thinking": "x"}]}
    done = replace(ended(Answered(), text("a", "x", BubbleKind.ANSWER, final=True)), thoughts=thoughts)
    output: Any = response(include=include, sealing=sealing).whole(done)["output"]
    assert [one["type"] for one in output] == ["message", *(["reasoning"] if sealed else [])]


@pytest.mark.parametrize("code", ExitCode)
def test_a_message_is_whole_where_its_turn_came_to_a_good_end_and_else_incomplete(code: ExitCode) -> None:
    one = example(code)
    output: Any = response().whole(ended(one, text("a", "Half", BubbleKind.PARTIAL, final=True)))["output"]
    said = next(each for each in output if str(each["content"][0].get("text")).strip() == "Half")
    whole = one.kind in (ExitClass.CLEAN, ExitClass.HANDED)
    assert said["status"] == ("completed" if whole else "incomplete")
