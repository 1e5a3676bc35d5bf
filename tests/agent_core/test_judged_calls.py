"""Which of a reply's calls run, which are asked about, and what is no judgement where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent_core.failures.errors import ProtocolError
from agent_core.failures.exits import ExitCode, StepLimit
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.rules.taint import FORWARDED, QUOTED
from agent_core.settings import ToolFacts
from agent_core.tools.base import EffectClass, Reach, ToolStatus
from agent_core.turn.effects import Effect, EndTurn, Record, RunTool
from agent_core.turn.events import (
    ApprovalAsked,
    Reply,
    ReplyFinished,
    ReplyJudged,
    SummaryAsked,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
)
from tests.agent_core.turns import SETTINGS, Rig, opened

THEIRS = "theirs"


def asks_for(turn: Turn, *calls: tuple[str, str]) -> Sequence[Effect]:
    """What a reply leads to that asks for these tools, each with its arguments."""
    for index, (name, arguments) in enumerate(calls):
        turn.feed(ToolCallNamed(at=1_001, index=index, call=f"c{index}", name=name))
        turn.feed(ToolArgumentsArrived(at=1_001, index=index, text=arguments))
    return turn.feed(ReplyFinished(at=1_002, reason="tool_calls"))


@pytest.mark.parametrize(
    ("most", "names", "runs", "handed"),
    [
        (2, ("read", THEIRS, "read"), 2, 1),
        (1, ("read", THEIRS, "read"), 1, 1),  # the client's own are not counted
        (1, (THEIRS, THEIRS, "read"), 1, 2),
        (1, ("read", "read", THEIRS), 1, 0),  # what stands behind the last one that is allowed waits for the next reply
    ],
)
def test_a_limit_of_calls_counts_the_gateways_own(most: int, names: Sequence[str], runs: int, handed: int) -> None:
    rig = Rig(replace(SETTINGS, most_tool_calls=most, client_tools=(THEIRS,)))
    effects = asks_for(rig.turn, *((name, "{}") for name in names))
    assert sum(isinstance(one, RunTool) for one in effects) == runs
    assert len(rig.turn.to_hand) == handed


URL = "https://one.example/x?y=z"
FETCH = ToolFacts("fetch", EffectClass.PURE, reach=Reach.ADDRESS)


@pytest.mark.parametrize(
    ("foreign", "words", "address", "asked"),
    [
        (FORWARDED, f"look at {URL}", URL, False),  # the person has put it before the model
        (FORWARDED, f"look at {URL}", f"{URL}&all=that-was-said", True),  # the model has composed it
        (FORWARDED, "look", URL, True),
        (QUOTED, f"look at {URL}", URL, True),  # somebody else has
        ("", f"look at {URL}", f"{URL}&more", False),  # no words of others at all
    ],
)
def test_an_address_is_asked_about_unless_the_person_has_put_it_there(
    foreign: str, words: str, address: str, asked: bool
) -> None:
    turn = Turn()
    settings = replace(SETTINGS, tools=(*SETTINGS.tools, FETCH))
    turn.feed(replace(opened(settings), input=(InputMessage(words, foreign=foreign),)))
    effects = asks_for(turn, ("fetch", f'{{"url": "{address}"}}'))
    judged = [one.event for one in effects if isinstance(one, Record)]
    assert any(isinstance(one, ApprovalAsked) for one in judged) is asked
    assert any(isinstance(one, RunTool) for one in effects) is not asked


def test_last_words_are_such_only_where_they_were_asked_for() -> None:
    rig = Rig(replace(SETTINGS, max_steps=1))
    turn = Turn()
    turn.apply(rig.turn.opened or opened())
    for event in (TextArrived(at=1_001, text="So far."), ReplyFinished(at=1_002, reason="stop")):
        turn.apply(event)
    with pytest.raises(ProtocolError, match="not to be the last words"):
        turn.apply(ReplyJudged(at=1_002, reply=Reply.SUMMARY))
    effects = [*asks_for(rig.turn, ("read", "{}"))]
    (call,) = [one.call for one in effects if isinstance(one, RunTool)]
    rig.turn.feed(ToolStarted(at=1_003, call=call))
    effects = rig.turn.feed(ToolReturned(at=1_004, call=call, status=ToolStatus.OK, text="done"))
    asked = [one.event for one in effects if isinstance(one, Record) and isinstance(one.event, SummaryAsked)]
    assert [type(one.exit) for one in asked] == [StepLimit]
    rig.turn.feed(TextArrived(at=1_005, text="So far."))
    effects = rig.turn.feed(ReplyFinished(at=1_006, reason="stop"))
    assert [one.exit.code for one in effects if isinstance(one, EndTurn)] == [ExitCode.STEP_LIMIT]
