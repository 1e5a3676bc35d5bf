"""``/v1/responses``: by the published schema, in order, through the real SDK, and kept where it says so."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from adapters.contract.base import Ended, LeftOpen, Queued, Showing, Sight, Ticket
from adapters.http.api.asked import ApiRequest, KnownItems, Referring
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.responsesread import read
from adapters.http.api.spelling import ApiJob
from adapters.http.api.truth import shown as shown_at_the_end
from adapters.http.common import Problem
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import Answered, ExitCode
from agent_core.turn.state import CallItem
from agent_core.turn.view import Bubble, BubbleKind
from gateway.daemon import Serving
from tests.adapters.scripted import ended, example, said, shown, text, tool
from tests.e2e.upstream import HEAD, call, delta, end, upstream
from tests.serving import served

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
Script = Sequence[Sight | float | BaseException]


def events_of(raw: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each as its schema has it."""
    found: list[dict[str, Any]] = []
    for block in raw.decode().split("\n\n"):
        if not block or block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENTS.validate_python(event)
        found.append(event)
    return found


def check_order(events: Sequence[Mapping[str, Any]]) -> None:
    """Numbers have no gap; items begin before they grow, and are over before the response is; what was streamed is what is said at the end."""
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    begun: dict[int, str] = {}
    over: dict[int, Mapping[str, Any]] = {}
    texts: dict[int, str] = {}
    for event in events:
        index: Any = event.get("output_index")
        match event["type"]:
            case "response.output_item.added":
                assert index == len(begun)
                begun[index] = event["item"]["id"]
            case "response.output_item.done":
                assert begun[index] == event["item"]["id"]
                over[index] = event["item"]
            case "response.output_text.delta":
                assert index in begun
                assert index not in over
                texts[index] = texts.get(index, "") + event["delta"]
            case _:
                assert index is None or index in begun
    last = events[-1]
    assert last["type"] in ("response.completed", "response.failed", "response.incomplete", "error")
    if last["type"] != "error":
        Response.model_validate(last["response"])
        assert last["response"]["output"] == [over[index] for index in sorted(over)]
        assert set(over) == set(begun)
        for index, item in over.items():
            if item["type"] == "message" and index in texts:
                assert "".join(part["text"] for part in item["content"]) == texts[index]


# --- any turn ---

words = st.sampled_from(["Hello", "I look.", "one\n[outspoken] two", "{", ""])
kinds = st.sampled_from(
    [BubbleKind.INTERIM, BubbleKind.ANSWER, BubbleKind.NOTE, BubbleKind.ACTIVITY, BubbleKind.PARTIAL]
)


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[Sight], Ended]:
    """A turn as it is seen: bubbles that come one behind the other, and grow."""
    before: list[Bubble] = []
    sights: list[Sight] = [Queued(1)] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 4))):
        kind, said_here = draw(kinds), draw(words)
        match kind:
            case BubbleKind.ACTIVITY:
                ways = [["running", "done"], ["waiting", "running", "failed"], ["approval", "not_run"], ["done"]]
                way = [tool(f"c{number}", "look", state) for state in draw(st.sampled_from(ways))]
                sights += [Showing("t_1", shown(*before, bubble)) for bubble in way]
                before.append(way[-1])
            case BubbleKind.NOTE:
                before.append(Bubble(f"n{number}", BubbleKind.NOTE, "Something was left out.", final=True))
            case _ if said_here:
                grown = [text(f"s{number}", said_here[:length]) for length in range(1, len(said_here) + 1, 2)]
                sights += [Showing("t_1", shown(*before, bubble)) for bubble in grown]
                before.append(text(f"s{number}", said_here, kind, final=True))
            case _:
                pass
    code = draw(st.sampled_from(list(ExitCode)))
    handed = (CallItem("c_1", "mine", '{"a": 1}'), CallItem("c_2", "patch", '{"input": "x"}'))
    last = ended(example(code), *before, handed=handed if code is ExitCode.HANDED_TO_CLIENT else ())
    return sights, last


def job(errors: ErrorsAs, **more: Any) -> ApiJob:
    asked = read(json.dumps({"input": "hi", "model": "m", **more}).encode(), "", KnownItems())
    assert isinstance(asked, ApiRequest)
    return ApiJob(asked, Ticket(7, "s_1", duplicate=False), "r", 1_700_000_000, {}, keyed=False, errors=errors)


@given(turns(), st.sampled_from([ErrorsAs.WORDS, ErrorsAs.STATUS]), st.booleans())
def test_any_turn_is_streamed_by_the_schema_and_in_order(turn: tuple[list[Sight], Ended], errors: ErrorsAs, data: bool):
    sights, last = turn
    tools: Any = [
        {"type": "function", "name": "mine", "parameters": {"type": "object"}, "strict": True},
        {"type": "custom", "name": "patch", "description": "d"},
    ]
    asked = job(errors, tools=tools, **({"text": {"format": {"type": "json_object"}}} if data else {}))
    spelling = ResponseSpelling(asked)
    spoken, raw = spelling.listening(), spelling.begins()
    for sight in sights:
        match sight:
            case Queued():
                raw += spelling.queued(sight)
            case Showing():
                raw += spelling.says(spoken.new(sight.view))
            case _:
                pass
    raw += spelling.ended(last, spoken.new(shown_at_the_end(last)))
    events = events_of(raw)
    check_order(events)
    whole: Any = ResponseSpelling(asked).whole(last)
    Response.model_validate(whole)
    streamed = events[-1]["response"]
    assert data or {**whole, "output": None} == {**streamed, "output": None}
    once, streaming = ({item["id"] for item in one["output"]} for one in (whole, streamed))
    assert once <= streaming if data else once == streaming, "data that turns out to be said beside a tool has gone out"


# --- one by one ---

DOOR = "/v1/responses"
ASKED: dict[str, Any] = {"model": "some-model", "input": "hi"}
STATUS = {"X-Outspoken-Errors": "status"}


async def streamed(script: Script, headers: Mapping[str, str] = STATUS, **more: Any) -> list[dict[str, Any]]:
    status, _, raw = await said(script, DOOR, {**ASKED, "stream": True, **more}, headers)
    assert status == 200, raw
    events = events_of(raw)
    check_order(events)
    return events


async def test_the_gateways_tools_are_items_that_a_client_shows_and_does_not_carry_out():
    interim = text("s0", "Let me look.", BubbleKind.INTERIM, final=True)
    events = await streamed([
        Showing("t_1", shown(text("s0", "Let me"))),
        Showing("t_1", shown(interim, tool("c1", "list_files", "running"))),
        Showing("t_1", shown(interim, tool("c1", "list_files", "done"))),
        ended(Answered(), interim, tool("c1", "list_files", "done"), text("s1", "One file.", BubbleKind.ANSWER, final=True)),
    ])  # fmt: skip
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "mcp_call", "message"]
    assert [item.get("phase") for item in output] == ["commentary", None, "final_answer"]
    assert (output[1]["name"], output[1]["server_label"], output[1]["status"]) == (
        "list_files",
        "outspoken",
        "completed",
    )
    assert Response.model_validate(events[-1]["response"]).output_text == "Let me look.\n\nOne file."


@pytest.mark.parametrize("door", [DOOR, "/v1/chat/completions"])
async def test_an_event_is_one_line_also_for_clients_that_end_lines_where_unicode_does(door: str):
    """As httpx reads a stream's lines: `str.splitlines`."""
    words = "one\u2028two\u2029three\u0085four\x0bfive – ü 😀"
    body = {**ASKED, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    status, _, raw = await said(
        [
            Showing("t_1", shown(text("s0", words))),
            ended(Answered(), tool("c1", words, "done"), text("s1", words * 2, BubbleKind.ANSWER, final=True)),
        ],
        door,
        {key: value for key, value in body.items() if key != ("messages" if door == DOOR else "input")},
        STATUS,
    )
    assert status == 200
    lines = [line for line in raw.decode().splitlines() if line]
    assert all(line.startswith(("data: ", "event: ", ":")) for line in lines)
    told = "".join(line for line in lines if line.startswith("data: {"))
    assert "\\u2028two" in told
    assert "five – ü 😀" in told


async def test_what_is_said_beside_calls_of_a_clients_tools_is_commentary():
    calls = (CallItem("c_1", "mine", '{"a": 1}'),)
    said_ = text("s0", "Let me look.", BubbleKind.INTERIM, final=True)
    events = await streamed([
        Showing("t_1", shown(text("s0", "Let me"))),
        ended(example(ExitCode.HANDED_TO_CLIENT), said_, handed=calls),
    ])  # fmt: skip
    output = events[-1]["response"]["output"]
    assert [(item["type"], item.get("phase")) for item in output] == [
        ("message", "commentary"),
        ("function_call", None),
    ]


async def test_the_notice_stands_apart_from_what_was_said_before_it():
    events = await streamed([
        Showing("t_1", shown(text("s0", "Half a"))),
        ended(example(ExitCode.STOPPED), text("s0", "Half a", BubbleKind.ANSWER, final=True)),
    ])  # fmt: skip
    response = Response.model_validate(events[-1]["response"])
    assert [item.type for item in response.output] == ["message", "message"]
    assert response.output_text.startswith("Half a\n\n[outspoken] ")


@pytest.mark.parametrize(
    ("code", "kind", "status", "error"),
    [
        (ExitCode.ANSWERED, "response.completed", "completed", None),
        (ExitCode.BROKEN_IN_TEXT, "response.failed", "failed", "broken_in_text"),
        (ExitCode.CUT_BY_LENGTH, "response.incomplete", "incomplete", None),
        (ExitCode.REFUSED_MIDWAY, "response.incomplete", "incomplete", None),
        (ExitCode.STOPPED, "response.incomplete", "cancelled", None),
    ],
)
async def test_how_it_ended_is_told_by_the_event_the_status_and_the_error(
    code: ExitCode, kind: str, status: str, error: str | None
):
    ending = Answered() if code is ExitCode.ANSWERED else example(code)
    last = (
        await streamed([Showing("t", shown(text("s0", "Half"))), ended(ending, text("s0", "Half of", final=True))])
    )[-1]
    response = last["response"]
    assert (last["type"], response["status"]) == (kind, status)
    assert (response["error"]["type"] if response["error"] else None) == error
    assert response["outspoken"]["exit"] == code.value
    said, *ours = response["output"]
    assert [part["text"].strip() for part in said["content"]] == ["Half of"], (
        "what the gateway says has a place of its own"
    )
    noticed = [item["content"][0]["text"] for item in ours if item["outspoken"] == {"by": "gateway"}]
    assert [each.startswith("[outspoken] ") for each in noticed] == ([] if code is ExitCode.ANSWERED else [True]), (
        "who looks at the text alone must not take a half for the whole"
    )


async def test_people_get_the_notice_as_a_message():
    headers = {"X-Outspoken-Errors": "words"}
    last = (await streamed([ended(example(ExitCode.BROKEN_IN_TEXT), text("s0", "Half of", final=True))], headers))[-1]
    ours = [item for item in last["response"]["output"] if item.get("outspoken") == {"by": "gateway"}]
    assert "[outspoken] The reply above is cut short" in ours[0]["content"][0]["text"]


async def test_what_produced_nothing_is_an_http_error_and_late_a_response_that_failed():
    denied = ended(example(ExitCode.NOT_AUTHORISED, tools_done=[]))
    for stream in (False, True):
        status, _, body = await said([denied], DOOR, {**ASKED, "stream": stream}, STATUS)
        assert (status, json.loads(body)["error"]["code"]) == (401, "not_authorised")
    waiting = Showing("t_1", shown(Bubble("status", BubbleKind.STATUS, "Waiting", final=False)))
    last = (await streamed([waiting, 11.0, waiting, denied]))[-1]
    assert (last["type"], last["response"]["error"]["type"]) == ("response.failed", "not_authorised")


async def test_a_turn_that_goes_on_in_the_next_process_ends_the_stream_with_an_error_event():
    last = (await streamed([Showing("t", shown(text("s0", "Half"))), LeftOpen("t", shown(text("s0", "Half of")))]))[-1]
    assert (last["type"], last["code"]) == ("error", "left_open")


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": []}, "input"),
    ({"input": [7]}, "input[0]"),
    ({"input": [{"role": "king", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user", "content": "x"}, {"role": "user"}]}, "input[1].content"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
    ({"input": "x", "temperature": "hot"}, "temperature"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "tools": [{"type": "code_interpreter"}]}, "tools[0].type"),
    ({"input": "x", "previous_response_id": "resp_s_nothing_1", "conversation": "c"}, "previous_response_id"),
    ({"input": "x", "previous_response_id": "resp_s_nothing_1"}, "previous_response_id"),
    ({"input": "x", "previous_response_id": "nonsense"}, "previous_response_id"),
    ({"input": "x", "background": True, "store": False}, "background"),
    ({"input": "x", "metadata": {"a": 1}}, "metadata"),
    ({"input": "x", "prompt": {"id": "p"}}, "prompt"),
]


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path, {"OUTSPOKEN_SERVER__ERRORS": "auto"}) as serving:
        yield serving


@pytest.fixture
async def client(up: Serving) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as made:
        yield made


async def test_what_is_wrong_is_named_by_its_path_in_the_body_that_was_sent(up: Serving):
    async with aiohttp.ClientSession() as http:
        for body, param in BAD:
            async with http.post(f"{up.url}{DOOR}", json=body) as response:
                error = (await response.json())["error"]
                assert (response.status, error["param"]) == (400, param), error


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "name", "call_id", "id", "output", "format"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
fields = st.sampled_from(
    ["input", "instructions", "tools", "tool_choice", "text", "reasoning", "store", "background", "conversation", "metadata", "stream", "prompt",
     "previous_response_id", "max_output_tokens", "user", "model"]
)  # fmt: skip


@given(
    st.binary(max_size=60) | st.dictionaries(fields, values, max_size=5).map(lambda value: json.dumps(value).encode())
)
def test_whatever_the_bytes_there_is_a_request_or_a_problem(body: bytes):
    found = read(body, "", KnownItems())
    assert isinstance(found, ApiRequest | Problem | Referring)
    if isinstance(found, Problem):
        assert (found.status, bool(found.message)) == (400, True)


# --- the whole gateway, and the real SDK ---


async def test_a_question_is_answered_streamed_and_not_and_got_again(client: openai.AsyncOpenAI):
    whole = await client.responses.create(
        model="outspoken", input="hello there", metadata={"a": "b"}, instructions="Be kind."
    )
    assert (whole.status, whole.metadata, whole.instructions) == ("completed", {"a": "b"}, "Be kind.")
    assert "hello there" in whole.output_text
    assert whole.usage is not None
    again = await client.responses.retrieve(whole.id)
    timed = {"created_at": 0, "completed_at": 0, "outspoken": None}
    assert {**again.model_dump(), **timed} == {**whole.model_dump(), **timed}
    async with client.responses.stream(model="outspoken", input="hello there") as stream:
        kinds_seen = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert final.output_text == whole.output_text
    assert kinds_seen[0] == "response.created"
    assert kinds_seen[-1] == "response.completed"
    items = await client.responses.input_items.list(whole.id, order="asc")
    assert [item.type for item in items.data] == ["message", "message"]
    with pytest.raises(openai.NotFoundError) as unknown:  # an empty page would say that there is nothing more
        await client.responses.input_items.list(whole.id, after=f"{items.data[0].id}x")
    assert unknown.value.param == "after"


async def test_a_response_goes_on_from_another_and_each_branch_has_its_own_past(
    client: openai.AsyncOpenAI, up: Serving
):
    first = await client.responses.create(model="outspoken", input="one")
    second = await client.responses.create(model="outspoken", input="two", previous_response_id=first.id)
    branch = await client.responses.create(model="outspoken", input="three", previous_response_id=first.id)
    after = await client.responses.create(model="outspoken", input="four", previous_response_id=branch.id)
    assert second.id.split("_")[2] == first.id.split("_")[2], "the same session: nothing came between"
    assert len({one.id.split("_")[2] for one in (first, branch, after)}) == 3

    async def past(response: Response) -> list[str]:
        kept = await up.hub.response(*_ref(response.id))
        assert kept is not None
        told = await up.hub.told_after(kept)
        assert told is not None
        return [str(message["content"]) for message in told if message["role"] == "user"]

    assert await past(second) == ["one", "two"]
    assert await past(branch) == ["one", "three"]
    assert await past(after) == ["one", "three", "four"]


def _ref(made: str) -> tuple[str, int]:
    session, _, number = made.removeprefix("resp_").rpartition("_")
    return session, int(number)


async def test_two_that_go_on_from_one_at_the_same_time_do_not_hear_each_other(client: openai.AsyncOpenAI, up: Serving):
    first = await client.responses.create(model="outspoken", input="one")
    both = await asyncio.gather(
        *(
            client.responses.create(model="outspoken", input=each, previous_response_id=first.id)
            for each in ("two", "three")
        )
    )
    assert len({one.id.split("_")[2] for one in both}) == 2


async def test_a_conversation_is_the_session_of_that_name_at_either_endpoint(client: openai.AsyncOpenAI, up: Serving):
    one = await client.responses.create(model="outspoken", input="one", conversation="mine")
    assert one.conversation is not None
    assert one.conversation.id == "mine"
    words: list[Any] = [{"role": "user", "content": "two"}]
    await client.chat.completions.create(
        model="outspoken", messages=words, extra_headers={"X-Outspoken-Session": "mine"}
    )
    three = await client.responses.create(model="outspoken", input="three", conversation="mine")
    kept = await up.hub.response(*_ref(three.id))
    assert kept is not None
    told = await up.hub.told_after(kept) or ()
    assert [str(message["content"]) for message in told if message["role"] == "user"] == ["one", "two", "three"]


async def test_a_clients_tools_are_called_and_their_results_go_on(client: openai.AsyncOpenAI):
    tools: Any = [
        {
            "type": "function",
            "name": "list_files",
            "description": "lists",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]
    first = await client.responses.create(model="outspoken", input="list files", tools=tools)
    call: Any = first.output[-1]
    assert (call.type, call.name, first.status) == ("function_call", "list_files", "completed")
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "one.txt"}]
    second = await client.responses.create(model="outspoken", input=result, previous_response_id=first.id, tools=tools)
    assert "one.txt" in second.output_text
    history: Any = [{"role": "user", "content": "list files"}, *[item.model_dump() for item in first.output], *result]
    alone = await client.responses.create(model="outspoken", input=history, tools=tools, store=False)
    assert "one.txt" in alone.output_text


async def test_a_result_is_told_behind_its_call_whatever_the_program_puts_between_them(tmp_path: Path):
    """As the agents SDK hands over: the call is one agent's, its result comes with the instructions of the next."""
    asked: list[list[dict[str, Any]]] = []

    def heard(body: Mapping[str, Any]) -> None:
        asked.append(body["messages"])

    replies = ((HEAD, call("handover", "{}", 0, "call_1"), end("tool_calls")), (HEAD, delta(content="I am B."), end()))
    tools: Any = [
        {"type": "function", "name": "handover", "parameters": {"type": "object", "properties": {}}, "strict": False}
    ]
    result: Any = {"type": "function_call_output", "call_id": "call_1", "output": "handed over"}
    message: Any = {"role": "user", "content": "scenario: go"}
    async with upstream({"go": [*replies, *replies]}, {"go": heard}) as model:
        env = {"OUTSPOKEN_MODEL__BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OUTSPOKEN_MODEL__NAME": "m"}
        async with (
            served(tmp_path, env) as up,
            openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as client,
        ):
            first = await client.responses.create(model="m", instructions="You are A.", input=[message], tools=tools)
            await client.responses.create(
                model="m", instructions="You are B.", input=[result], previous_response_id=first.id, tools=tools
            )
            again = await client.responses.create(model="m", input=[message], tools=tools)
            called: Any = next(item for item in again.output if item.type == "function_call")
            said: Any = {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I hand over."}],
            }
            brought: Any = [message, called.model_dump(), said, result]
            await client.responses.create(model="m", input=brought, tools=tools)
    for told in (asked[1], asked[3]):
        where = next(n for n, one in enumerate(told) if one.get("tool_calls"))
        assert (told[where + 1]["role"], told[where + 1]["content"]) == ("tool", "handed over")
        assert not [one for one in told if "not known" in str(one["content"]) or "not part of" in str(one["content"])]


async def test_what_runs_in_the_background_is_got_and_can_be_cancelled(client: openai.AsyncOpenAI):
    quick = await client.responses.create(model="outspoken", input="hello", background=True)
    assert quick.status == "queued"
    async with asyncio.timeout(30):
        while (now := await client.responses.retrieve(quick.id)).status in ("queued", "in_progress"):
            await asyncio.sleep(0.1)
    assert now.status == "completed"
    slow = await client.responses.create(model="outspoken", input="count to 90 slowly", background=True)
    cancelled = await client.responses.cancel(slow.id)
    assert cancelled.status == "cancelled"
    assert (await client.responses.retrieve(slow.id)).status == "cancelled"


async def test_what_was_deleted_or_never_kept_is_not_found(client: openai.AsyncOpenAI, tmp_path: Path):
    kept = await client.responses.create(model="outspoken", input="a secret word: xylophone")
    await client.responses.delete(kept.id)
    alone = await client.responses.create(model="outspoken", input="hello", store=False)
    for made in (kept.id, alone.id, "resp_s_nothing_1", "nonsense"):
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(made)
    with pytest.raises(openai.BadRequestError):
        await client.responses.create(model="outspoken", input="go on", previous_response_id=kept.id)


async def test_what_was_accepted_for_the_background_ends_over_a_restart(tmp_path: Path):
    env = {"OUTSPOKEN_SERVER__DRAIN_SECONDS": "0"}
    async with (
        served(tmp_path, env) as first,
        openai.AsyncOpenAI(base_url=f"{first.url}/v1", api_key="none", max_retries=0) as client,
    ):
        made = await client.responses.create(model="outspoken", input="count to 20 slowly", background=True)
        await asyncio.sleep(0.5)
    async with (
        served(tmp_path, env) as second,
        openai.AsyncOpenAI(base_url=f"{second.url}/v1", api_key="none", max_retries=0) as client,
    ):
        async with asyncio.timeout(60):
            while (now := await client.responses.retrieve(made.id)).status in ("queued", "in_progress"):
                await asyncio.sleep(0.1)
        assert now.status == "completed", now
        assert now.output_text.endswith("19, 20.")


async def test_the_stream_of_a_kept_response_is_given_again_from_its_beginning(client: openai.AsyncOpenAI):
    made = await client.responses.create(model="outspoken", input="hello there")
    texts = [
        event.delta
        async for event in await client.responses.retrieve(made.id, stream=True)
        if event.type == "response.output_text.delta"
    ]
    assert "".join(texts) == made.output_text
    with pytest.raises(openai.BadRequestError):
        await client.responses.retrieve(made.id, stream=True, starting_after=4)


async def test_a_stream_in_the_background_that_was_lost_is_gone_on_with(client: openai.AsyncOpenAI):
    stream = await client.responses.create(model="outspoken", input="count to 30 slowly", background=True, stream=True)
    texts: list[str] = []
    seen, made = -1, ""
    async for event in stream:
        seen = event.sequence_number
        if event.type == "response.created":
            made = event.response.id
        if event.type == "response.output_text.delta":
            texts.append(event.delta)
            if len(texts) == 3:
                break
    await stream.close()
    rest = await client.responses.retrieve(made, stream=True, starting_after=seen)
    async for event in rest:
        assert event.sequence_number > seen
        if event.type == "response.output_text.delta":
            texts.append(event.delta)
    whole = await client.responses.retrieve(made)
    assert (whole.status, whole.output_text) == ("completed", "".join(texts))
    last = [event.type async for event in await client.responses.retrieve(made, stream=True, starting_after=10_000_000)]
    assert last == []


async def test_what_a_tool_of_the_gateways_gave_is_shown_and_a_client_says_how_often_it_may_be_called(
    client: openai.AsyncOpenAI,
):
    shown_ = await client.responses.create(model="outspoken", input="list files")
    call: Any = next(item for item in shown_.output if item.type == "mcp_call")
    assert (call.name, call.status) == ("list_files", "completed")
    assert call.output
    wish = "call list_files {} and call list_files {}"
    some = await client.responses.create(model="outspoken", input=wish, max_tool_calls=1)
    assert some.max_tool_calls == 1
    assert sum(item.type == "mcp_call" for item in some.output) <= 1
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model="outspoken", input="x", max_tool_calls=0)
    assert refused.value.param == "max_tool_calls"


async def test_items_of_a_kept_response_are_named_in_place_of_being_sent_again(client: openai.AsyncOpenAI, up: Serving):
    first = await client.responses.create(model="outspoken", input="one")
    asked = await client.responses.input_items.list(first.id)
    named: Any = [{"type": "item_reference", "id": one.id} for one in (*reversed(asked.data), *first.output)]
    second = await client.responses.create(model="outspoken", input=[*named, {"role": "user", "content": "two"}])
    kept = await up.hub.response(*_ref(second.id))
    assert kept is not None
    told: Any = await up.hub.told_after(kept) or ()
    people = [_words(one["content"]) for one in told if one["role"] == "user"]
    assert people == ["one", "two"]
    assert first.output_text in _words(told[1]["content"])
    missing: Any = [{"type": "item_reference", "id": f"{first.output[0].id}x"}, {"role": "user", "content": "x"}]
    with pytest.raises(openai.APIStatusError) as refused:
        await client.responses.create(model="outspoken", input=missing)
    body: Any = refused.value.body
    assert (refused.value.status_code, body["param"]) == (404, "input[0].id")


def _words(content: Any) -> str:
    return content if isinstance(content, str) else " ".join(part["text"] for part in content)


async def test_sealed_thoughts_say_nothing_and_come_back_to_nobody_else(client: openai.AsyncOpenAI):
    async def asked(given: Any) -> Response:
        return await client.responses.create(
            model="outspoken", input=given, store=False, include=["reasoning.encrypted_content"]
        )

    first = await asked("think")
    sealed = [item for item in first.output if item.type == "reasoning" and item.encrypted_content]
    assert len(sealed) == 1
    blob = sealed[0].encrypted_content or ""
    thought = next(part.text for item in first.output if item.type == "reasoning" for part in item.summary)
    assert thought.split()[0] not in str(base64.urlsafe_b64decode(blob.partition(".")[2]))
    before: Any = [item.model_dump(exclude_none=True) for item in first.output]
    question: Any = {"role": "user", "content": "think"}
    second = await asked([question, *before, question])
    assert "left_out" not in (second.model_extra or {})["outspoken"]
    for item in before:
        if "encrypted_content" in item:
            item["encrypted_content"] = f"{blob[:-9]}AAAAAAAA="
    third = await asked([question, *before, question])
    assert (third.model_extra or {})["outspoken"]["left_out"] == ["input[].encrypted_content"]


PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mPQq43GihiGlgQAjP9BgSm9lmsAAAAASUVORK5CYII="
)


async def test_a_picture_that_was_made_is_in_the_response_whenever_it_is_asked_for(client: openai.AsyncOpenAI):
    made = await client.responses.create(model="outspoken", input="draw", background=True)
    async with asyncio.timeout(30):
        while (now := await client.responses.retrieve(made.id)).status in ("queued", "in_progress"):
            await asyncio.sleep(0.1)
    pictures = [item.result for item in now.output if item.type == "image_generation_call"]
    assert pictures
    assert all(pictures)
    cancelled = await client.responses.cancel(made.id)
    assert [item.result for item in cancelled.output if item.type == "image_generation_call"] == pictures
    streamed_ = [event async for event in await client.responses.retrieve(made.id, stream=True)]
    whole: Any = streamed_[-1]
    assert [item.result for item in whole.response.output if item.type == "image_generation_call"] == pictures


async def test_a_picture_that_was_brought_is_told_again_and_goes_on_to_the_model_where_it_is_only_named(
    client: openai.AsyncOpenAI, up: Serving
):
    words: Any = {"type": "input_text", "text": "what is this?"}
    seen: Any = {"type": "input_image", "image_url": PICTURE, "detail": "low"}
    file: Any = {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain;base64,eA=="}
    first = await client.responses.create(model="outspoken", input=[{"role": "user", "content": [words, seen, file]}])
    asked: Any = await client.responses.input_items.list(first.id)
    content = [
        {name: value for name, value in one.model_dump().items() if value is not None} for one in asked.data[0].content
    ]
    assert content == [words, seen, file]
    named: Any = [{"type": "item_reference", "id": asked.data[0].id}, {"role": "user", "content": "and now?"}]
    second = await client.responses.create(model="outspoken", input=named)
    kept = await up.hub.response(*_ref(second.id))
    assert kept is not None
    told: Any = [*(kept.inbound.own_history or ()), *(one.to_message() for one in kept.inbound.input)]
    pictures = [
        part
        for one in told
        if isinstance(one["content"], list)
        for part in one["content"]
        if part["type"] == "image_url"
    ]
    assert [one["image_url"]["url"] for one in pictures] == [PICTURE]


async def test_a_page_of_another_origin_reads_the_stream_of_a_kept_response(tmp_path: Path):
    env = {"OUTSPOKEN_SERVER__CORS_ORIGINS": '["https://a.example"]'}
    async with served(tmp_path, env) as up, aiohttp.ClientSession(headers={"Origin": "https://a.example"}) as http:
        async with http.post(f"{up.url}{DOOR}", json={"model": "outspoken", "input": "hello"}) as response:
            made = (await response.json())["id"]
        for more in ("", "?stream=true"):
            async with http.get(f"{up.url}{DOOR}/{made}{more}") as response:
                assert response.headers["Access-Control-Allow-Origin"] == "https://a.example"
                assert b"completed" in await response.read()


async def test_a_title_is_no_part_of_the_conversation_that_it_is_for(client: openai.AsyncOpenAI, up: Serving):
    first = await client.responses.create(model="outspoken", input="hello")
    title = {"X-Outspoken-Task": "title"}
    named = await client.responses.create(
        model="outspoken", input="A title, please", previous_response_id=first.id, extra_headers=title
    )
    assert named.status == "completed"
    kept = await up.hub.response(*_ref(first.id))
    assert kept is not None
    assert kept.latest
