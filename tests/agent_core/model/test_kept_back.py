"""What is known of a model's thoughts never shows one, and never takes an answer: a beginning that is kept back, and one that was shown too soon."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.model.families.pieces import Piece, TextCall, Thought, VisibleText, merged
from agent_core.model.stream.text_calls import TextCallParser
from agent_core.turn.events import Event, TextArrived, TextTakenBack
from tests.agent_core.model.test_client import HEAD, delta, text_of, upstream

WORDS = ["One. ", "Two, ", "\n", "\n\n", "`", "```\n", "> ", "(", ")", "and ", '{"a": 1}', " ", "é"]
OPENINGS = [
    "<think>",
    "<thinking>",
    "<THINK>",
    "<reasoning>",
    "[THINK]",
    "◁think▷",
    "<thin",
    "<",
    "<mm:think>",
    "analysis",
]
CALL = '<tool_call>{"name": "ls", "arguments": {}}</tool_call>'


def pieces(text: str, *, kept: bool, size: int) -> list[Piece]:
    parser = TextCallParser(inside_thought=kept)
    found = [piece for at in range(0, len(text), size) for piece in parser.feed(text[at : at + size])]
    return merged([*found, *parser.finish(well=True)])


def seen(found: list[Piece]) -> tuple[str, list[tuple[str, str]]]:
    text = "".join(piece.text for piece in found if isinstance(piece, VisibleText))
    return text, [(piece.name, piece.arguments) for piece in found if isinstance(piece, TextCall)]


@given(st.lists(st.sampled_from([*WORDS, *OPENINGS, CALL]), max_size=12).map("".join), st.integers(1, 40))
@example("<think>I must not say this, and on", 7)
@example("<THINK> a", 3)
@example("Write <think> before it, and </ never", 5)
@example("The answer is [THINK] four", 4)
def test_a_reply_without_an_end_of_a_thought_is_what_it_is_to_whoever_knows_nothing(text: str, size: int):
    assert seen(pieces(text, kept=True, size=size)) == seen(pieces(text, kept=False, size=size))


def test_a_thought_that_the_model_opens_itself_and_never_ends_is_a_thought_however_its_replies_began_before():
    found = pieces("<think>They want a number. Hm", kept=True, size=5)
    assert found == [Thought("They want a number. Hm")]


def said(*parts: str, end: bytes) -> bytes:
    return HEAD + b"".join(delta(f'"content": {json.dumps(part)}') for part in parts) + end


STOP = delta("", '"stop"')


async def second_of(*answers: bytes) -> list[Event]:
    """What the second of these answers of one model is to who has read the first."""
    replies = list(answers)

    async def peer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(replies.pop(0))
        await writer.drain()

    async with upstream(peer) as call:
        await call()
        events, _ = await call()
    return events


async def test_after_a_reply_that_only_ends_its_thought_one_that_never_ends_its_own_is_still_a_thought():
    first, second = (said("Hm, four.", "</think>", "Four.", end=STOP), said("<think>", "They want", " five.", end=STOP))
    events = await second_of(first, second)
    assert text_of(events) == ""


def taken_back(events: list[Event]) -> list[bool]:
    return [event.earlier for event in events if isinstance(event, TextTakenBack)]


@pytest.mark.parametrize(
    ("first", "earlier"),
    [
        (said("They want a number.", end=b""), [True]),
        (said("Plain words, whole.", end=STOP), [False]),
        (said("Plain words, too many", end=delta("", '"length"')), [True]),
    ],
    ids=["nothing is known", "its replies begin with the answer", "one that was cut says nothing"],
)
async def test_what_an_earlier_call_had_said_was_a_thought_as_well_unless_the_models_replies_begin_otherwise(
    first: bytes, earlier: list[bool]
):
    events = await second_of(first, said("Five? ", "</think>", "Four.", end=STOP))
    assert taken_back(events) == earlier
    assert [event.text for event in events if isinstance(event, TextArrived)][-1] == "Four."
