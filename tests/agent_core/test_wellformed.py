"""Nothing that a model's side sends brings text into a turn that cannot be stored or shown."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.journal.rows import decode, encode
from agent_core.model.failures import rejection
from agent_core.model.stream.chunks import ChunkReader
from agent_core.text.wellformed import well_formed
from agent_core.tools.arguments import parsed
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import ToolReturned

ODD = st.text(st.one_of(st.characters(), st.integers(0xD800, 0xDFFF).map(chr)), max_size=6)


@given(ODD)
def test_what_is_well_formed_stays_and_what_is_not_becomes_so(text: str) -> None:
    found = well_formed(text)
    found.encode()
    assert well_formed(found) == found
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert found == text


def test_halves_that_stand_together_are_joined() -> None:
    assert well_formed("a\ud83d\ude00b") == "a😀b"
    assert well_formed("a\ud83db") == "a\ufffdb"


@given(ODD, ODD, ODD, ODD, ODD, st.booleans(), st.booleans())
def test_whatever_a_reply_holds_can_be_journalled(
    name: str, call: str, arguments: str, words: str, reason: str, streamed: bool, as_object: bool
) -> None:
    reader = ChunkReader(1, (), parse_text_calls=True)
    given_as: Any = {arguments: arguments} if as_object else arguments
    tool = {"index": 0, "id": call, "function": {"name": name, "arguments": given_as}}
    in_text = f"<tool_call>{json.dumps({'name': name, 'arguments': {'a': words}})}</tool_call>"
    delta = {"content": words + in_text, "reasoning": words, "refusal": reason, "tool_calls": [tool]}
    body: Any = {"choices": [{"delta" if streamed else "message": delta, "finish_reason": reason}]}
    events = reader.feed([json.dumps(body).encode()], 1) if streamed else reader.whole(body, 1)
    for event in (*events, *reader.finish(2)):
        encode(event)
    reader.finish_reason.encode()


@given(ODD, ODD, ODD)
def test_whatever_a_refusal_holds_can_be_journalled(message: str, kind: str, code: str) -> None:
    body = {"error": {"message": message, "type": kind, "code": code, "param": code}}
    rejection(400, json.loads(json.dumps(body))).detail.encode()


@given(ODD)
def test_arguments_can_be_used_as_they_are_read(text: str) -> None:
    found = parsed(json.dumps({"path": text, text: [text]}))
    json.dumps(found, ensure_ascii=False).encode()


ODDEST = st.recursive(
    ODD | st.integers(-(2**70), 2**70) | st.floats() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD, inner, max_size=3),
    max_leaves=8,
)


@example({"large": 2**64, "none": math.nan, "half": "\ud83d"}, False)
@given(st.dictionaries(ODD, ODDEST, max_size=4), st.booleans())
def test_whatever_a_result_holds_can_be_journalled_and_read_again(facts: dict[str, Any], deep: bool) -> None:
    """An end that cannot be stored is none: better another number than no row."""
    if deep:
        found: Any = 2**64
        for _ in range(300):
            found = [found]
        facts = {**facts, "deep": found}
    row = encode(ToolReturned(at=1, call="c", status=ToolStatus.OK, text="x", facts=facts))
    event = decode(row.kind, row.body)
    assert isinstance(event, ToolReturned)
    assert event.facts.keys() == {well_formed(name) for name in facts} or "\0" in "".join(facts)
