"""The turn's tables: every event, in every phase, is taken or refused as they say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import get_args
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.errors import ProtocolError
from agent_core.machine import taking
from agent_core.machine.turn import FACTS, HAD_ENDED, JUDGEMENTS, LEADS, Turn
from agent_core.turn.events import (
    CallBroke,
    Event,
    Fact,
    Judgement,
    OfCall,
    ReplyFinished,
    StopRequested,
    TextArrived,
    ToolCallNamed,
    TurnEnded,
    TurnOpened,
)
from agent_core.turn.invariants import broken_laws
from agent_core.turn.questions import ANSWERS, Question
from agent_core.turn.standing import Standing
from agent_core.turn.state import Phase
from tests import examples
from tests.agent_core.journals import Writer, journals
from tests.agent_core.test_folds import BASE, state
from tests.agent_core.test_journal import EXAMPLES
from tests.agent_core.turns import opened

NOT_ASKED = {
    "nothing was to be judged",
    "nothing was to be decided about this call",
    "this remedy was not at work",
    "nothing led to this end",
}
"""What is said of a judgement when no question is open."""
NOT_OF_THE_CALL = {
    "this tool call was not wanted",
    "this tool call was not begun",
    "no approval was asked for this call",
}
INTO: dict[Phase, list[Event]] = {
    Phase.CALLING: [],
    Phase.WAITING: [CallBroke(at=9, cause=BreakCause.SERVER_ERROR)],
    Phase.ACTING: [ToolCallNamed(at=9, index=0, call="c", name="read"), ReplyFinished(at=9, reason="tool_calls")],
    Phase.COMPACTING: [CallBroke(at=9, cause=BreakCause.CONTEXT_OVERFLOW)],
    Phase.ASKING: [TextArrived(at=9, text="The rest of it…"), ReplyFinished(at=9, reason="stop")],
    Phase.ENDED: [StopRequested(at=9)],
}


def turn_in(phase: Phase) -> Turn:
    turn = Turn()
    for event in [] if phase is Phase.NEW else [opened(), *INTO[phase]]:
        turn.feed(event)
    assert turn.phase is phase
    return turn


@contextmanager
def ways() -> Generator[list[tuple[Phase, Phase]]]:
    """From which phase into which the turns get meanwhile."""
    found: list[tuple[Phase, Phase]] = []
    right = taking._enter

    def enter(turn: Standing, phase: Phase, at: int) -> None:
        found.append((turn.phase, phase))
        right(turn, phase, at)

    with mock.patch.object(taking, "_enter", enter):
        yield found


def wrong(turn: Turn, event: Event) -> set[str]:
    """What may be said against an event by the tables; an empty word: it fits."""
    row = FACTS.get(type(event))
    if isinstance(event, TurnOpened):
        return {"" if turn.phase is Phase.NEW else FACTS[TurnOpened].otherwise}
    if turn.phase is Phase.NEW:
        return {f"the first event of a turn must be TurnOpened, not {event.kind()}"}
    if turn.phase is Phase.ENDED:
        return {HAD_ENDED}
    if row is None:
        return NOT_ASKED
    if turn.phase not in row.phases:
        return {row.otherwise}
    return {"", *NOT_OF_THE_CALL} if isinstance(event, OfCall) else {""}


def check(turn: Turn, event: Event) -> None:
    problem = turn.misfit(event)
    assert problem in wrong(turn, event), (turn.phase, event)
    fed, applied, before = deepcopy(turn), deepcopy(turn), turn.phase
    if problem:
        with pytest.raises(ProtocolError) as refused:
            applied.apply(event)
        assert problem in str(refused.value)
        if isinstance(event, TurnEnded):
            return  # fed, an end from outside is the last word
        if isinstance(event, TurnOpened) or before is Phase.NEW:
            with pytest.raises(ProtocolError):
                fed.feed(event)
        else:
            assert fed.feed(event) == []
            assert state(fed) == state(turn)
        return
    begun = {one.call for one in turn.round.unfinished if one.started}
    effects = fed.feed(event)
    assert broken_laws(fed, effects, begun) == []


def test_every_event_has_one_row() -> None:
    assert set(FACTS) == set(get_args(Fact))
    assert set(JUDGEMENTS) == set(get_args(Judgement))
    assert set(ANSWERS) == set(JUDGEMENTS) - {TurnEnded}
    assert {kind for kinds in ANSWERS.values() for kind in kinds} < set(get_args(Question))


@pytest.mark.parametrize("phase", Phase)
def test_every_event_is_taken_or_refused_in_every_phase_as_the_tables_say(phase: Phase) -> None:
    for event in EXAMPLES:
        check(turn_in(phase), event)


@examples.MANY
@given(journals(BASE, ended=False), st.sampled_from(EXAMPLES))
def test_so_it_is_wherever_a_turn_has_come_to(writer: Writer, event: Event) -> None:
    call = next((one.call for one in writer.turn.round.unfinished), "c")
    check(writer.turn, replace(event, call=call) if isinstance(event, OfCall) else event)


@examples.MANY
@given(st.data())
def test_a_turn_goes_only_the_ways_that_are_drawn(data: st.DataObject) -> None:
    with ways() as found:
        data.draw(journals(BASE))
    assert [way for way in found if way[1] not in LEADS[way[0]]] == []


def test_every_way_that_is_drawn_is_gone() -> None:
    ends = [event for event in EXAMPLES if type(event) in FACTS and not isinstance(event, TurnOpened)]
    with ways() as found:
        for phase in INTO:
            for event in ends:
                turn_in(phase).feed(event)
        left = turn_in(Phase.CALLING)
        left.feed(ToolCallNamed(at=9, index=0, call="c", name="read"))
        left.feed(CallBroke(at=9, cause=BreakCause.STALLED))  # asked again at once
    assert {(here, there) for here, ways_out in LEADS.items() for there in ways_out} <= set(found)
