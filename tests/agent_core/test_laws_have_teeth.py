"""The laws of a turn say no to each kind of breach: a law that lets everything through would be kept by every program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agent_core.failures import exits
from agent_core.turn import invariants
from agent_core.turn.effects import AskApproval, CallModel, Compact, Effect, EndTurn, RunTool, Wait
from agent_core.turn.events import StopRequested
from agent_core.turn.invariants import broken_laws, ending_problems
from agent_core.turn.standing import Standing
from agent_core.turn.state import Phase
from agent_core.turn.view import Bubble, BubbleKind, View
from tests.agent_core.turns import ROUTE, Rig

CALL = CallModel(1, ROUTE, offer_tools=True)
END = EndTurn(exits.Stopped())


def always(shown: View) -> Callable[[Standing, int], View]:
    def view(turn: Standing, now: int) -> View:
        del turn, now
        return shown

    return view


def answered() -> Rig:
    rig = Rig()
    rig.says("All is well.")
    assert rig.turn.exit is not None
    return rig


def stopped() -> Rig:
    rig = Rig()
    rig.feed(StopRequested(at=rig.tick()))
    assert rig.turn.exit is not None
    return rig


def test_what_is_in_order_breaks_nothing() -> None:
    rig = Rig()
    assert broken_laws(rig.turn, [CALL], ()) == []
    assert broken_laws(rig.turn, [], ()) == []
    for over in (answered(), stopped()):
        assert over.turn.exit is not None
        assert broken_laws(over.turn, [EndTurn(over.turn.exit)], ()) == []


@pytest.mark.parametrize(
    ("effects", "words"),
    [
        ([END, END], "ended 2 times"),
        ([END, CALL], "after the turn's end"),
        ([END], "otherwise than it says"),
    ],
)
def test_an_end_is_one_and_the_last_and_the_one_that_it_says(effects: Sequence[Effect], words: str) -> None:
    assert any(words in one for one in broken_laws(answered().turn, effects, ()))


def test_a_tool_with_effects_is_not_begun_twice_and_any_other_may() -> None:
    rig = Rig()
    rig.calls_tool("send")
    run = RunTool("c1_0", "send", "{}")
    assert broken_laws(rig.turn, [run], ()) == []
    assert broken_laws(rig.turn, [run], {"c1_0"}) == ["call c1_0 of send would run a second time"]
    assert broken_laws(rig.turn, [replace(run, name="read")], {"c1_0"}) == []
    assert broken_laws(rig.turn, [replace(run, name="nobody knows it")], {"c1_0"}) == []


@pytest.mark.parametrize("phase", [Phase.CALLING, Phase.WAITING, Phase.COMPACTING, Phase.ASKING, Phase.NEW])
def test_who_waits_waits_for_what_somebody_does(phase: Phase) -> None:
    rig = Rig()
    rig.turn.phase = phase
    right = {Phase.CALLING: CALL, Phase.WAITING: Wait(1), Phase.COMPACTING: Compact()}.get(phase)
    for effect in (CALL, Wait(1), Compact(), RunTool("c", "read", "{}"), AskApproval("c", "danger", "{}", 5)):
        assert bool(broken_laws(rig.turn, [effect], ())) is (effect != right), effect


def test_who_waits_for_tools_has_one_that_runs() -> None:
    rig = Rig()
    rig.turn.phase = Phase.ACTING
    assert broken_laws(rig.turn, [], ()) == ["the turn waits for tools, and none runs"]
    acting = Rig()
    acting.calls_tool("send")
    assert broken_laws(acting.turn, [], ()) == []


def test_an_end_looks_like_one() -> None:
    handed = answered()
    handed.turn.exit = exits.HandedToClient()
    assert ending_problems(handed.turn) == ["the turn was handed to the client, without calls"]
    silent = stopped()
    silent.turn.exit = exits.Answered()
    assert any("the turn was answered, and shows" in one for one in ending_problems(silent.turn))


@pytest.mark.parametrize("words", ["", " \n"])
def test_an_end_with_a_notice_that_says_nothing_is_seen(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(_: exits.Exit) -> str:
        return words

    monkeypatch.setattr(exits.Stopped, "text", says)
    rig = stopped()
    assert rig.turn.exit is not None
    found = broken_laws(rig.turn, [EndTurn(rig.turn.exit)], ())
    assert found == ["the turn ended with stopped, and no notice says so"]


@pytest.mark.parametrize("kinds", [(BubbleKind.NOTICE, BubbleKind.NOTICE), (BubbleKind.STATUS, BubbleKind.NOTICE)])
def test_an_end_shows_one_notice_and_nothing_that_goes_on(
    kinds: Sequence[BubbleKind], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = View(tuple(Bubble(str(n), kind, "words", final=True) for n, kind in enumerate(kinds)), open=False)
    monkeypatch.setattr(invariants, "view", always(shown))
    assert len(ending_problems(stopped().turn)) == 1
    monkeypatch.setattr(invariants, "view", always(replace(shown, bubbles=shown.bubbles[1:], open=True)))
    assert ending_problems(stopped().turn) == ["the turn is over and looks as if it went on"]


def test_an_answer_with_a_notice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (BubbleKind.ANSWER, BubbleKind.NOTICE)
    shown = View(tuple(Bubble(kind, kind, "words", final=True) for kind in kinds), open=False)
    monkeypatch.setattr(invariants, "view", always(shown))
    assert len(ending_problems(answered().turn)) == 1
