"""``/v1/responses``, any turn: its stream is by the published schema and in order, however it is cut, with all that a reply can have; each field and
event type of the schema is told, or it is said why not; and a stream is gone on with behind any of its events.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from adapters.contract.base import Ended, LeftOpen, Queued, Showing, Ticket
from adapters.http.api.asked import ApiRequest, KnownItems
from adapters.http.api.responseitems import annotations_of
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.responsesread import read
from adapters.http.api.spelling import ApiJob
from adapters.http.api.spoken import TextPiece
from adapters.http.api.truth import shown as shown_at_the_end
from adapters.http.common import Problem
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import ExitCode
from agent_core.jsonvalue import Json
from agent_core.model.made import FILES
from agent_core.turn.state import CallItem, ThoughtText
from agent_core.turn.view import Bubble, BubbleKind
from tests.adapters.scripted import ended, example, shown, text, tool

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
Event = dict[str, Any]


def events_of(raw: bytes) -> list[Event]:
    """The events of a stream, each as its schema has it."""
    found: list[Event] = []
    for block in raw.decode().split("\n\n"):
        if not block or block.startswith(":"):
            continue
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        EVENTS.validate_python(event)
        found.append(event)
    return found


class Told:
    """What a client makes of a stream: items that begin, grow and are over, and the response at the end."""

    def __init__(self) -> None:
        self.begun: dict[int, str] = {}
        self.over: dict[int, Mapping[str, Any]] = {}
        self.grown: dict[tuple[int, str], str] = {}
        self.last: Event = {}

    def take(self, events: Sequence[Event]) -> Told:
        for event in events:
            assert not self.last, "nothing comes behind the end"
            self._take(event)
        return self

    def _take(self, event: Event) -> None:
        index: Any = event.get("output_index")
        kind: str = event["type"]
        if kind == "response.output_item.added":
            assert index == len(self.begun)
            self.begun[index] = event["item"]["id"]
        elif kind == "response.output_item.done":
            assert self.begun[index] == event["item"]["id"]
            self.over[index] = event["item"]
        elif index is not None:
            assert index in self.begun
            assert index not in self.over
            assert event["item_id"] == self.begun[index]
            if kind.endswith(".delta"):
                grown = (index, kind.removesuffix(".delta"))
                self.grown[grown] = self.grown.get(grown, "") + event["delta"]
            for part in ("text", "refusal", "arguments", "input"):
                if kind.endswith(".done") and part in event and "part" not in event:
                    assert self.grown.get((index, kind.removesuffix(".done")), "") == event[part]
        if kind in ("response.completed", "response.failed", "response.incomplete", "error"):
            self.last = event

    def check(self) -> None:
        """It has come to its end, and that says the same."""
        if self.last["type"] == "error":
            return
        response = self.last["response"]
        Response.model_validate(response)
        assert response["output"] == [self.over[index] for index in sorted(self.over)]
        assert set(self.over) == set(self.begun)
        assert len(set(self.begun.values())) == len(self.begun), "an item's id is its own"


def check_numbers(events: Sequence[Event], *, placed: bool) -> None:
    numbers = [event["sequence_number"] for event in events]
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    if not placed:
        assert numbers == list(range(len(events)))
    assert numbers == sorted(set(numbers))


# --- any turn ---

words = st.sampled_from(["Hello", "I look.", "one\n[outspoken] two", "{", "Ünï 🙂"])
kinds = st.sampled_from(
    [BubbleKind.INTERIM, BubbleKind.ANSWER, BubbleKind.NOTE, BubbleKind.ACTIVITY, BubbleKind.PARTIAL, None, None]
)
WAYS = [["running", "done"], ["waiting", "running", "failed"], ["approval", "not_run"], ["done"], ["running", "unsure"]]
SOURCE: Json = {
    "type": "url_citation",
    "url_citation": {"url": "https://x.example/", "title": "X", "start_index": 0, "end_index": 2},
}
LIKELY: Json = {
    "token": "é",
    "logprob": -0.5,
    "bytes": None,
    "top_logprobs": [{"token": "e", "logprob": -1, "bytes": [101]}],
}
made = st.fixed_dictionaries({}, optional={
    "annotations": st.just([SOURCE]),
    "logprobs.content": st.just([LIKELY]),
    FILES: st.just([
        {"kind": "image", "mime": "image/png", "data": "aGk="}, {"kind": "image", "url": "https://x.example/p.png"},
        {"kind": "audio", "id": "a1", "expires_at": 3, "transcript": "Hello", "data": "aGk="},
    ]),
})  # fmt: skip


def called(key: str, state: str) -> Bubble:
    return replace(tool(key, "look", state), result="One file." if state in ("done", "failed") else "")


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[Queued | Showing], Ended]:
    """A turn as it is seen: bubbles that come one behind the other, grow, and are thought about; calls side by side."""
    before: list[Bubble] = []
    sights: list[Queued | Showing] = [Queued(1)] if draw(st.booleans()) else []
    pieces: list[tuple[str, str]] = []
    behind = ""

    def see(*bubbles: Bubble) -> None:
        thought = ThoughtText()
        for piece, place in pieces:
            thought.add(piece, place)
        sights.append(Showing("t_1", shown(*before, *bubbles), thought))

    for number in range(draw(st.integers(0, 5))):
        match draw(kinds):
            case BubbleKind.ACTIVITY:
                side_by_side = [(f"c{number}{n}", draw(st.sampled_from(WAYS))) for n in range(draw(st.integers(1, 2)))]
                longest = max(len(way) for _, way in side_by_side)
                for step in range(longest):
                    see(*(called(key, way[min(step, len(way) - 1)]) for key, way in side_by_side))
                before += [called(key, way[-1]) for key, way in side_by_side]
                behind = side_by_side[-1][0]
            case BubbleKind.NOTE:
                before.append(Bubble(f"n{number}", BubbleKind.NOTE, "Something was left out.", final=True))
            case None:
                pieces += [(piece, behind) for piece in draw(st.lists(words, min_size=1, max_size=3))]
                see()
            case kind:
                whole, refusal = draw(words), draw(st.integers(0, 5)) == 0
                for length in range(1, len(whole) + 1, 2):
                    see(replace(text(f"s{number}", whole[:length]), refusal=refusal))
                    if draw(st.integers(0, 5)) == 0:
                        pieces.append(("in the middle", f"s{number}"))
                before.append(replace(text(f"s{number}", whole, kind, final=True), refusal=refusal))
                behind = f"s{number}"
    code = draw(st.sampled_from(list(ExitCode)))
    handed = (CallItem("c_1", "mine", '{"a": 1}'), CallItem("c_2", "patch", '{"input": "x"}'))
    last = ended(example(code), *before, handed=handed if code is ExitCode.HANDED_TO_CLIENT else ())
    thought = ThoughtText()
    for piece, place in pieces:
        thought.add(piece, place)
    sealed: dict[str, Json] = (
        {"thinking_blocks": [{"type": "thinking", "signature": "s"}]} if draw(st.booleans()) else {}
    )
    return sights, replace(last, thought=thought, made=draw(made), thoughts=sealed)


TOOLS: Any = [
    {"type": "function", "name": "mine", "parameters": {"type": "object"}, "strict": True},
    {"type": "custom", "name": "patch", "description": "d"},
]


def job(errors: ErrorsAs, *, placed: bool = False, thinking: bool = True, **more: Any) -> ApiJob:
    asked = read(
        json.dumps({"input": "hi", "model": "m", "include": ["reasoning.encrypted_content"], **more}).encode(),
        "",
        KnownItems(),
    )
    assert isinstance(asked, ApiRequest)
    return ApiJob(
        asked, Ticket(7, "s_1", duplicate=False), "r", 1_700_000_000, {}, keyed=False, errors=errors, thinking=thinking,
        seal=json.dumps, placed=placed,
    )  # fmt: skip


def streamed(asked: ApiJob, sights: Sequence[Queued | Showing], last: Ended) -> bytes:
    """The stream of somebody who sees so much of the turn."""
    spelling = ResponseSpelling(asked)
    spoken, raw, thought = spelling.listening(), spelling.begins(), 0

    def think(seen: ThoughtText) -> Iterator[bytes]:
        nonlocal thought
        placed, thought = seen.placed(thought) if asked.thinking else [], seen.chars
        yield from (spelling.thinks(piece, behind) for behind, piece in placed)

    for sight in sights:
        if isinstance(sight, Queued):
            raw += spelling.queued(sight)
        else:
            raw += b"".join(think(sight.thought)) + spelling.says(spoken.new(sight.view))
    raw += b"".join(think(last.thought))
    return raw + spelling.ended(last, spoken.new(shown_at_the_end(last)))


styles = st.sampled_from([ErrorsAs.WORDS, ErrorsAs.STATUS])


@given(turns(), styles, st.booleans(), st.booleans(), st.booleans())
def test_any_turn_is_streamed_by_the_schema_and_in_order_and_is_the_same_when_it_is_asked_for_again(
    turn: tuple[list[Queued | Showing], Ended], errors: ErrorsAs, placed: bool, thinking: bool, data: bool
):
    sights, last = turn
    more = {"text": {"format": {"type": "json_object"}}} if data else {}
    asked = job(errors, placed=placed, thinking=thinking, tools=TOOLS, **more)
    events = events_of(streamed(asked, sights, last))
    check_numbers(events, placed=placed)
    Told().take(events).check()
    whole: Any = ResponseSpelling(asked).whole(last)
    Response.model_validate(whole)
    calls = [one.key for one in last.view.bubbles if one.kind is BubbleKind.ACTIVITY]
    told = [item["id"] for item in events[-1]["response"]["output"] if item["type"] == "mcp_call"]
    assert told == [f"mcp_s_1_7_{key}" for key in calls], "each of them is told, also what ran beside another"
    assert data or whole == events[-1]["response"], "data that turns out to be said beside a tool has gone out"


@settings(deadline=None)
@given(turns(), styles, st.data())
def test_a_stream_in_the_background_is_gone_on_with_behind_any_event(
    turn: tuple[list[Queued | Showing], Ended], errors: ErrorsAs, data: st.DataObject
):
    sights, last = turn
    asked = job(errors, placed=True, tools=TOOLS)
    live = events_of(streamed(asked, sights, last))
    cut = data.draw(st.integers(0, len(live) - 1), label="seen")
    seen_again = data.draw(st.integers(0, len(sights)), label="sights of the second")
    after = replace(asked, after=live[cut]["sequence_number"])
    rest = events_of(streamed(after, sights[seen_again:], last))
    told = Told().take([*live[: cut + 1], *rest])
    told.check()
    assert told.last == live[-1]
    assert all(event["sequence_number"] > after.after for event in rest)
    again = events_of(streamed(asked, sights[seen_again:], last))
    assert rest == [event for event in again if event["sequence_number"] > after.after], (
        "clients that leave out by numbers"
    )


def test_a_stream_in_the_background_that_is_left_is_gone_on_with_behind_its_last_event():
    said = "One two three."
    last = ended(example(ExitCode.ANSWERED), text("s0", said, BubbleKind.ANSWER, final=True))
    for seen in range(len(said) + 1):
        asked, events = job(ErrorsAs.WORDS, placed=True), list[Event]()
        for _ in range(2):  # whoever has had all that there is, is told of the end as well
            spelling = ResponseSpelling(asked)
            sofar = spelling.listening().new(shown(text("s0", said[:seen]))) if seen else []
            *told, left = events_of(spelling.begins() + spelling.left(LeftOpen("t_1", shown()), sofar))
            assert left["type"] == "error"
            events += told
            asked = replace(asked, after=left["sequence_number"])
        whole = Told().take([*events, *events_of(streamed(asked, [], last))])
        whole.check()
        assert said in whole.grown.values()


def test_whoever_sees_a_call_and_what_was_thought_behind_it_at_once_is_told_them_in_their_order():
    before, thoughts = called("c1", "done"), ThoughtText()
    sights: list[Queued | Showing] = [Showing("t_1", shown(before), thoughts)]
    for words_so_far in (["Hello"], ["Hello", ", and more"]):
        thoughts = ThoughtText()
        for piece in words_so_far:
            thoughts.add(piece, "c1")
        sights.append(Showing("t_1", shown(before), thoughts))
    last = replace(ended(example(ExitCode.ANSWERED), before), thought=thoughts)
    asked = job(ErrorsAs.WORDS, placed=True)
    live = events_of(streamed(asked, sights, last))
    for cut, seen_again in product(range(len(live)), range(len(sights) + 1)):
        after = replace(asked, after=live[cut]["sequence_number"])
        told = Told().take([*live[: cut + 1], *events_of(streamed(after, sights[seen_again:], last))])
        told.check()
        assert told.last == live[-1]


# --- nothing of the schema is forgotten ---

_HOSTED = "of a tool that OpenAI carries out"
NOT_TOLD = {
    "response.reasoning_text.delta": "thoughts are told as summaries, which clients show",
    "response.reasoning_text.done": "the same",
    "response.image_generation_call.partial_image": "a picture comes whole",
    "response.mcp_list_tools.in_progress": "which tools the gateway has is no part of an answer",
    "response.mcp_list_tools.completed": "the same",
    "response.mcp_list_tools.failed": "the same",
    "response.compaction.compacting": "the gateway shortens conversations itself",
    **{
        f"response.{tool}.{word}": _HOSTED
        for tool in ("code_interpreter_call", "file_search_call", "web_search_call")
        for word in ("in_progress", "completed", "searching", "interpreting")
    },
    "response.code_interpreter_call_code.delta": _HOSTED,
    "response.code_interpreter_call_code.done": _HOSTED,
    **{
        f"response.shell_call_{what}": _HOSTED
        for what in ("command.added", "command.delta", "command.done", "output_content.delta", "output_content.done")
    },
}
NOT_IN_OBJECTS = {
    "access_programs", "image", "input_transformations", "moderation", "prompt", "prompt_cache_diagnostics", "prompt_cache_options", "tool_usage",
}  # fmt: skip
"""Fields of a response that tell of wishes which are refused, or of what only OpenAI's own servers know."""


def _literals(kind: Any) -> set[str]:
    if typing.get_origin(kind) is typing.Literal:
        return {str(one) for one in typing.get_args(kind)}
    return {word for one in typing.get_args(kind) for word in _literals(one)}


def _all_of_it() -> list[Event]:
    """Streams that have everything in them."""
    thought = ThoughtText()
    thought.add("I look.", "")
    acts = [called("c0", "done"), called("c1", "failed")]
    answer = text("s1", "One.", BubbleKind.ANSWER, final=True)
    refusal = replace(text("s0", "No."), refusal=True)
    files: Json = [
        {"kind": "image", "mime": "image/png", "data": "aGk="},
        {"kind": "audio", "transcript": "One.", "data": "aGk="},
    ]
    beside: dict[str, Json] = {"annotations": [SOURCE], FILES: files}
    whole = replace(ended(example(ExitCode.ANSWERED), *acts, answer), thought=thought, made=beside)
    calls = (CallItem("c_1", "mine", "{}"), CallItem("c_2", "patch", '{"input": "x"}'))
    asked = job(ErrorsAs.STATUS, tools=TOOLS)
    running = ResponseSpelling(asked)
    raw = streamed(asked, [Queued(1)], whole) + running.begins() + running.left(LeftOpen("t", shown()), [])
    for last in (
        ended(example(ExitCode.HANDED_TO_CLIENT), handed=calls),
        ended(example(ExitCode.ANSWERED), refusal),
        ended(example(ExitCode.BROKEN_IN_TEXT), text("s0", "Half", final=True)),
        ended(example(ExitCode.REFUSED)),
    ):
        raw += streamed(asked, [], last)
    return events_of(raw + ResponseSpelling(asked).failed(Problem(500, "x")))


def test_each_event_type_of_the_published_schema_is_told_or_it_is_said_why_not():
    published = {
        word
        for one in typing.get_args(typing.get_args(ResponseStreamEvent)[0])
        for word in _literals(one.model_fields["type"].annotation)
    }
    told = {event["type"] for event in _all_of_it()}
    assert told - published == set()
    assert published - told - set(NOT_TOLD) == set()
    assert told & set(NOT_TOLD) == set()


def test_each_field_of_a_published_response_is_told_or_it_is_said_why_not():
    whole = ResponseSpelling(job(ErrorsAs.STATUS)).whole(ended(example(ExitCode.ANSWERED)))
    assert set(Response.model_fields) - set(whole) - NOT_IN_OBJECTS == set()
    assert set(whole) & NOT_IN_OBJECTS == set()


def test_calls_that_run_side_by_side_are_told_one_after_the_other_and_none_is_lost() -> None:
    """In the background, where numbers of events stand for places."""
    spelling, met = ResponseSpelling(job(ErrorsAs.STATUS, placed=True)), list[str]()
    states = [("a", "running"), ("b", "running"), ("c", "running"), ("b", "done"), ("a", "done"), ("c", "done")]
    for key, state in states:
        told = spelling.says([TextPiece("", key=key, act=tool(key, "look", state))])
        items = [one for one in events_of(told) if "item" in one]
        met += [f"{one['type'].rpartition('.')[2]} {one['item']['id'][-1]}" for one in items]
    assert met == ["added a", "done a", "added b", "done b", "added c", "done c"]


def test_a_source_of_an_answer_names_its_title_and_its_place() -> None:
    odd: Json = {"type": "url_citation", "url": "https://y.example/", "start_index": True, "end_index": "2"}
    beside: dict[str, Json] = {"annotations": [SOURCE, odd]}
    told: Any = annotations_of(replace(ended(example(ExitCode.ANSWERED)), made=beside))
    assert told == [
        {"type": "url_citation", "url": "https://x.example/", "title": "X", "start_index": 0, "end_index": 2},
        {"type": "url_citation", "url": "https://y.example/", "title": "", "start_index": 0, "end_index": 0},
    ]


def test_a_message_that_is_gone_on_with_behind_another_one_has_an_id_of_its_own_each_time() -> None:
    spelling = ResponseSpelling(job(ErrorsAs.STATUS))
    raw = spelling.begins() + b"".join(
        spelling.says([TextPiece("Hello", key=key)]) for key in ("s0", "s1", "s0", "s1", "s0")
    )
    told = [event["item"]["id"] for event in events_of(raw) if event["type"] == "response.output_item.added"]
    assert len(set(told)) == len(told) == 5
