"""Knowledge never hurts: some hundreds of the scripts of which `make soak` plays a hundred thousand, and mistakes that they have to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

import pytest

import agent_core.judging.judge as judging
import agent_core.machine.turn as turn_module
from agent_core.failures.remedies import Case, Failure, Remedy
from agent_core.machine import taking
from agent_core.machine.turn import Turn
from agent_core.turn.effects import Effect
from agent_core.turn.events import CallBroke, Event, RemedyChosen
from agent_core.turn.questions import Question
from agent_core.turn.standing import Standing
from agent_core.turn.state import Item
from tests.knowledge.playing import hurts, script

SCRIPTS = range(7_000_000, 7_001_000)


def spoilt() -> Iterator[str]:
    return (f"script {seed}: {'; '.join(found)}" for seed in SCRIPTS if (found := hurts(script(seed))))


def test_a_turn_that_knows_something_recovers_whenever_one_that_knows_nothing_would() -> None:
    assert list(spoilt()) == []


def never_given_up(patch: pytest.MonkeyPatch) -> None:
    right = judging._case

    def wrong(turn: Turn, failure: Failure, broke: CallBroke) -> Case:
        turn.trying = False
        return right(turn, failure, broke)

    patch.setattr(judging, "_case", wrong)


def advice_stays(patch: pytest.MonkeyPatch) -> None:
    def never(_: Item) -> bool:
        return False

    patch.setattr(taking, "of_the_start", never)


def other_model_for_good(patch: pytest.MonkeyPatch) -> None:
    right = turn_module.JUDGEMENTS[RemedyChosen]

    def escalate(turn: Standing, event: Event, question: Question | None) -> list[Effect]:
        assert isinstance(event, RemedyChosen)
        return right(turn, replace(event, route=-1) if event.remedy is Remedy.AS_USUAL else event, question)

    patch.setitem(cast("dict[type, object]", turn_module.JUDGEMENTS), RemedyChosen, escalate)


@pytest.mark.parametrize("mistake", [never_given_up, advice_stays, other_model_for_good])
def test_a_mistake_is_found(mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mistake(monkeypatch)
    assert next(spoilt(), "")
