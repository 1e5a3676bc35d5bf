"""What is read of a plain turn without folding it is what the fold tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.journal.rows import fold, row_of
from agent_core.jsonvalue import Json
from agent_core.judging.compaction import ToldTurn, told_turn
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage, Message
from agent_core.turn.events import Event, ReplyFinished, TextArrived, TurnEnded
from gateway.sessions.plainpast import told_plainly
from gateway.sessions.recall import told_of
from tests.agent_core.journals import TEXTS, Writer, journals
from tests.agent_core.turns import opened

PICTURE: Json = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "no-longer-kept:"}}]
inputs = st.lists(
    st.builds(
        InputMessage,
        content=st.one_of(st.text(), st.just(PICTURE)),
        role=st.sampled_from(["user", "system", "tool"]),
        tool_call_id=st.sampled_from(["", "", "c"]),
        name=st.sampled_from(["", "ann"]),
    ),
    min_size=1,
    max_size=3,
)


def rows(events: list[Event]) -> list[tuple[str, bytes]]:
    return [(row.kind, row.body) for row in (row_of(event, seq) for seq, event in enumerate(events))]


@pytest.mark.parametrize("brought", [None, (), ({"role": "user", "content": "before"},)])
def test_a_turn_whose_client_brought_the_conversation_is_told_in_none(brought: tuple[Message, ...] | None) -> None:
    """It is in what that client brings next time; and nobody else has heard of it."""
    writer = Writer()
    begun = replace(opened(writer.settings, 1_000), own_history=brought)
    writer.turn, writer.events, writer.wanted = Turn(), [], []
    writer.take(begun)
    writer.take(TextArrived(at=writer.tick(), text="Four."))
    writer.take(ReplyFinished(at=writer.tick(), reason="stop"))
    told = told_of("t", rows(writer.events))
    assert told == (told_turn(fold(rows(writer.events))) if brought is None else ToldTurn())
    assert (told == ToldTurn()) is (brought is not None)


@given(
    inputs,
    st.lists(st.sampled_from(TEXTS) | st.text(min_size=1), min_size=1, max_size=4),
    st.sampled_from(["stop", "length"]),
)
def test_a_plain_turn_is_told_as_the_fold_tells_it(asked: list[InputMessage], texts: list[str], reason: str) -> None:
    writer = Writer()
    begun = replace(opened(writer.settings, 1_000), input=tuple(asked))
    writer.turn, writer.events, writer.wanted = Turn(), [], []
    writer.take(begun)
    writer.take(*(TextArrived(at=writer.tick(), text=text) for text in texts))
    writer.take(ReplyFinished(at=writer.tick(), reason=reason))
    journal = rows(writer.events)
    told = told_plainly(journal)
    if told is not None:
        assert told == told_turn(fold(journal))
    elif isinstance(writer.events[-1], TurnEnded) and len(journal) == len(texts) + 3 and reason == "stop":
        assert not "".join(texts).strip() or any(one.tool_call_id for one in asked)


@given(journals())
def test_whatever_was_written_is_told_as_the_fold_tells_it_or_is_left_to_it(writer: Writer) -> None:
    journal = rows(writer.events)
    if (told := told_plainly(journal)) is not None:
        assert told == told_turn(fold(journal))


@given(
    st.lists(
        st.tuples(st.sampled_from(["TurnOpened", "TextArrived", "ReplyFinished", "TurnEnded"]), st.binary(max_size=9)),
        max_size=6,
    )
)
def test_nothing_that_is_stored_breaks_it(journal: list[tuple[str, bytes]]) -> None:
    assert told_plainly(journal) is None
