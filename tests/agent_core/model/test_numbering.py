"""However a server numbers and names the calls of a reply, and wherever it cuts them: they are the calls that were made."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.stream.chunks import ChunkReader
from agent_core.turn.events import Event, ToolArgumentsArrived, ToolCallNamed

TOOLS: tuple[str, ...] = ("write", "write_file", "read_file", "re")
NUMBERED = ("right", "all zero", "none")
IDENTIFIED = ("each piece", "the first piece", "then empty", "then another", "never")
NAMED = ("the first piece", "each piece", "in pieces", "then empty")


@st.composite
def replies(draw: st.DrawFn) -> tuple[list[tuple[str, str]], list[dict[str, Any]]]:
    """Calls that follow each other, and how a server sends them."""
    made = draw(st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from(['{"n": 1}', '{"path": "a"}', "{}"])), min_size=1, max_size=3))  # fmt: skip
    numbered = draw(st.sampled_from(NUMBERED))
    ids = draw(st.sampled_from(IDENTIFIED if len(made) == 1 or numbered == "right" else IDENTIFIED[:3]))
    names = draw(st.sampled_from(NAMED if len(made) == 1 or numbered == "right" else NAMED[:1] + NAMED[2:]))
    if ids == "then another":  # nobody could tell two calls from one if nothing else held its pieces together
        numbered, names = "right", "the first piece"
    entries: list[dict[str, Any]] = []
    for at, (name, arguments) in enumerate(made):
        first = draw(st.sampled_from(("", arguments)))
        cut = draw(st.integers(0, len(arguments)))
        rest = [] if first else [each for each in (arguments[:cut], arguments[cut:]) if each]
        pieces: list[tuple[str | None, str]] = [(name, first), *((None, each) for each in rest)]
        if names == "in pieces" and not first:
            half = draw(st.integers(1, len(name) - 1))
            pieces[:1] = [(name[:half], ""), (name[half:], "")]
        for number, (called, part) in enumerate(pieces):
            said = called if called is not None else {"each piece": name, "then empty": ""}.get(names)
            identity = {
                "each piece": f"id{at}",
                "never": None,
                "then empty": "",
                "then another": f"id{at}_{number}",
            }.get(ids)
            identity = f"id{at}" if number == 0 and ids != "never" else identity
            entry: dict[str, Any] = {"id": identity, "function": {"name": said, "arguments": part}}
            if numbered != "none":
                entry["index"] = at if numbered == "right" else 0
            entries.append(entry)
    return made, entries


def calls(events: list[Event]) -> list[tuple[str, str]]:
    found: dict[int, list[str]] = {}
    for event in events:
        match event:
            case ToolCallNamed():
                found[event.index] = [event.name, ""]
            case ToolArgumentsArrived():
                found[event.index][1] += event.text
            case _:
                pass
    return [(name, arguments) for name, arguments in found.values()]


@given(replies())
def test_calls_are_read_as_they_were_made_however_they_are_numbered_named_and_cut(
    reply: tuple[list[tuple[str, str]], list[dict[str, Any]]],
):
    made, entries = reply
    reader = ChunkReader(1, (), parse_text_calls=True, offered=TOOLS)
    payloads = [json.dumps({"choices": [{"delta": {"tool_calls": [entry]}}]}).encode() for entry in entries]
    events = [event for payload in payloads for event in reader.feed([payload], 0)] + reader.finish(0)
    assert calls(events) == made


@pytest.mark.parametrize("name", [*TOOLS, "another"])
def test_a_name_that_may_go_on_is_not_taken_before_it_is_whole(name: str) -> None:
    for cut in range(1, len(name)):
        reader = ChunkReader(1, (), parse_text_calls=True, offered=TOOLS if name in TOOLS else (*TOOLS, name))
        functions = [{"name": name[:cut]}, {"name": name[cut:]}, {"arguments": "{}"}]
        chunks = [{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": one}]}}]} for one in functions]
        events = [event for chunk in chunks for event in reader.feed([json.dumps(chunk).encode()], 0)]
        assert calls(events + reader.finish(0)) == [(name, "{}")]


def test_of_several_replies_to_one_question_the_calls_of_one_are_taken() -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    events: list[Event] = []
    for index in (0, 1, 0, 1):
        call = {"index": 0, "id": f"c{index}", "function": {"name": "write", "arguments": '{"n":'}}
        more = {"index": 0, "function": {"arguments": "1}"}}
        delta = {"tool_calls": [call if len(events) == 0 or index else more]}
        chunk = {"choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        events += reader.feed([json.dumps(chunk).encode()], 0)
    assert [one.name for one in events if isinstance(one, ToolCallNamed)] == ["write"]
    assert "".join(one.text for one in events if isinstance(one, ToolArgumentsArrived)) == '{"n":1}'


def test_calls_that_come_in_a_choice_beside_the_text_are_taken() -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    call = {"index": 0, "id": "c1", "function": {"name": "write", "arguments": "{}"}}
    choices = [{"index": 0, "delta": {"content": "Now."}}, {"index": 1, "delta": {"tool_calls": [call]}}]
    events = reader.feed([json.dumps({"choices": choices}).encode()], 0)
    assert [one.name for one in events if isinstance(one, ToolCallNamed)] == ["write"]


@pytest.mark.parametrize(
    ("said", "foreign"),
    [({"id": "c1", "usage": None}, False), ({"type": "ping", "at": 1}, False), ({}, False), ({"pages": 1}, True)],
)
def test_what_only_counts_or_shows_life_is_no_foreign_answer(said: dict[str, Any], foreign: bool) -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    reader.feed([json.dumps(said).encode()], 0)
    assert reader.foreign is foreign


def read(*entries: dict[str, Any]) -> list[tuple[str, str]]:
    reader = ChunkReader(1, (), parse_text_calls=True, offered=TOOLS)
    payloads = [json.dumps({"choices": [{"delta": {"tool_calls": [entry]}}]}).encode() for entry in entries]
    return calls([event for payload in payloads for event in reader.feed([payload], 0)] + reader.finish(0))


def test_calls_keep_the_numbers_of_their_server_in_whatever_order_they_begin() -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    made = [{"index": at, "id": f"c{at}", "function": {"name": "write", "arguments": "{}"}} for at in (2, 0, 1)]
    payload = json.dumps({"choices": [{"delta": {"tool_calls": made}}]}).encode()
    events = [*reader.feed([payload], 0), *reader.finish(0)]
    assert sorted(one.index for one in events if isinstance(one, ToolCallNamed)) == [0, 1, 2]


def test_what_comes_under_a_number_that_nobody_has_and_names_no_call_goes_on_with_the_latest() -> None:
    """A call begins under the number of the one before, and goes on under its own (agno #8880)."""
    begun = {"index": 0, "id": "b", "function": {"name": "read_file", "arguments": ""}}
    rest = [{"index": 1, "function": {"arguments": part}} for part in ('{"path": ', '"b"}')]
    first = {"index": 0, "id": "a", "function": {"name": "write", "arguments": '{"n": 1}'}}
    assert read(first, begun, *rest) == [("write", '{"n": 1}'), ("read_file", '{"path": "b"}')]
    late = {"index": 1, "function": {"name": "read_file"}}
    assert read(first, *rest, late) == [("write", '{"n": 1}'), ("read_file", '{"path": "b"}')]


@given(
    st.lists(st.text('ab":{}[], \\n1', min_size=1, max_size=6), min_size=1, max_size=6),
    st.sampled_from(("right", "none")),
)
def test_arguments_that_come_with_all_so_far_in_each_piece_are_read_once(words: list[str], numbered: str) -> None:
    """DeepSeek's at Qianfan (hermes-agent #35592, vercel/ai #12052)."""
    whole = json.dumps({f"k{n}": word for n, word in enumerate(words)})
    entries: list[dict[str, Any]] = [
        {"id": "a", "function": {"name": "write", "arguments": whole[:upto]}} for upto in range(1, len(whole) + 1)
    ]
    if numbered == "right":
        entries = [{**entry, "index": 0} for entry in entries]
    assert read(*entries, entries[-1]) == [("write", whole)]


@given(
    st.recursive(
        st.integers(0, 1),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("a", "{", '{"a')), inner, max_size=2)
        ),
        max_leaves=8,
    ),
    st.data(),
)
def test_arguments_that_come_in_pieces_are_read_as_they_are(value: Any, data: st.DataObject) -> None:
    whole = json.dumps({"a": value}, separators=(",", ":"))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    head = {"index": 0, "id": "a", "function": {"name": "write", "arguments": ""}}
    assert read(head, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)) == [("write", whole)]


def test_a_call_is_known_by_an_id_that_no_earlier_one_had() -> None:
    taken: set[str] = set()
    for _ in range(300):  # as many turns, whose provider numbers from the beginning, or does not at all
        for entry in ({"index": 0, "id": "call_0", "function": {"name": "write", "arguments": "{}"}}, {"index": 0, "function": {"name": "write", "arguments": "{}"}}):  # fmt: skip
            reader = ChunkReader(1, frozenset(taken), parse_text_calls=True, offered=TOOLS)
            payload = json.dumps({"choices": [{"delta": {"tool_calls": [entry]}}]}).encode()
            made = {
                event.call
                for event in [*reader.feed([payload], 0), *reader.finish(0)]
                if isinstance(event, ToolCallNamed)
            }
            assert len(made) == 1
            assert not made & taken
            assert max(map(len, made)) <= 40
            taken |= made


def piece(index: int | None = 0, **said: object) -> dict[str, Any]:
    """A piece of a call: `call` is its id, `name` and `arguments` are its function's."""
    entry: dict[str, Any] = {} if index is None else {"index": index}
    if "call" in said:
        entry["id"] = said.pop("call")
    return {**entry, "function": said}


WRITE, HALF, REST = '{"n": 1}', '{"n"', ": 1}"
SENT: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "arguments before the name": ([piece(arguments=HALF), piece(name="write", arguments=REST)], [("write", WRITE)]),
    "arguments before the name, known by an id": (
        [piece(None, call="c", arguments=HALF), piece(None, call="c", name="write", arguments=REST)],
        [("write", WRITE)],
    ),
    "an empty object before them": (
        [piece(name="write", arguments="{}"), piece(arguments=HALF), piece(arguments=REST)],
        [("write", WRITE)],
    ),
    "an empty object that is all": ([piece(name="write", arguments="{}")], [("write", "{}")]),
    "an empty object that is only their beginning": (
        [piece(name="write", arguments="{}"), piece(arguments=" ")],
        [("write", "{} ")],
    ),
    "all of them a second time": (
        [piece(call="c", name="write", arguments=""), *[piece(arguments=one) for one in (HALF, REST, HALF, REST)]],
        [("write", WRITE)],
    ),
    "all of them once more at the end": (
        [
            piece(call="c", name="write", arguments=HALF),
            piece(arguments=REST),
            piece(call="c", name="write", arguments=WRITE),
        ],
        [("write", WRITE)],
    ),
    "two calls of one tool as one": (
        [piece(call="c", name="write", arguments="{}"), piece(call="c", name="write", arguments=WRITE)],
        [("write", "{}"), ("write", WRITE)],
    ),
    "two calls with one number": (
        [piece(call="c1", name="write", arguments=WRITE), piece(call="c2", name="write", arguments='{"n": 2}')],
        [("write", WRITE), ("write", '{"n": 2}')],
    ),
    "an object and no text": ([piece(name="write", arguments={"n": 1})], [("write", '{"n":1}')]),
}
"""What servers send (tests/e2e/faults/hosted_calls.py has where each was seen), and what is to come of it."""


@pytest.mark.parametrize("form", SENT)
def test_calls_are_read_as_they_were_meant_whatever_order_their_pieces_have_and_what_comes_twice(form: str) -> None:
    entries, meant = SENT[form]
    reader = ChunkReader(1, (), parse_text_calls=True, offered=TOOLS)
    chunks = [{"choices": [{"delta": {"tool_calls": [entry]}}]} for entry in entries]
    events = [event for chunk in chunks for event in reader.feed([json.dumps(chunk).encode()], 0)]
    assert calls(events + reader.finish(0)) == meant


@pytest.mark.parametrize(
    ("said", "native", "reason"),
    [
        ("stop", "MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"), ("stop", "max_tokens", "max_tokens"),
        ("stop", "end_turn", "stop"), ("length", "stop", "length"), ("", "SAFETY", "SAFETY"), ("tool_calls", "", "tool_calls"),
        ("tool_calls", "MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"), ("tool_calls", "tool_use", "tool_calls"),
    ],
)  # fmt: skip
def test_of_two_words_for_the_end_the_one_that_says_more_counts(said: str, native: str, reason: str) -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    choice = {"delta": {"content": "x"}, "finish_reason": said, "native_finish_reason": native}
    reader.feed([json.dumps({"choices": [choice]}).encode()], 0)
    assert reader.finish_reason == reason


BEHIND: list[tuple[dict[str, Any], bool]] = [
    ({"choices": [{"delta": {"content": " more"}}]}, True),
    ({"choices": [{"delta": {"tool_calls": [piece(name="write", arguments="{}")]}}]}, True),
    ({"choices": [{"delta": {}}]}, False),
    ({"choices": [], "usage": {"prompt_tokens": 1}}, False),
]


@pytest.mark.parametrize(("behind", "belied"), BEHIND)
def test_a_server_that_gives_a_reason_with_every_piece_is_known_by_what_comes_behind_one(
    behind: dict[str, Any], belied: bool
) -> None:
    reader = ChunkReader(1, (), parse_text_calls=False)
    chunks = [{"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, behind]
    for chunk in chunks:
        assert not reader.belied
        reader.feed([json.dumps(chunk).encode()], 0)
    assert reader.belied is belied
