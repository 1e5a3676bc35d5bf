"""The laws of a turn that must hold after every event, in the daemon as in the exploration of the machine. Pure.

They are cheap enough to be asked each time, and they are asked each time because a turn that breaks one would otherwise do what
this program exists to prevent: wait for nothing, end without a word, or do a thing twice. The driver ends such a turn visibly.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from agent_core.failures.exits import ExitCode
from agent_core.tools.base import EffectClass
from agent_core.turn.effects import AskApproval, AskDone, CallModel, Compact, Effect, EndTurn, RunTool, Wait
from agent_core.turn.standing import Standing
from agent_core.turn.state import Phase
from agent_core.turn.view import BubbleKind, view


def broken_laws(turn: Standing, effects: Sequence[Effect], begun: Container[str]) -> list[str]:
    """The laws that `turn` breaks after an event that led to `effects`, in words; empty if all is well.

    `begun` holds the calls of *effect* tools that were begun before this event.
    """
    found = _of_the_end(turn, effects)
    for effect in effects:
        if isinstance(effect, RunTool) and effect.call in begun and _has_effects(turn, effect.name):
            found.append(f"call {effect.call} of {effect.name} would run a second time")
    if turn.exit is None:
        found += _of_waiting(turn, effects)
    elif effects:
        found += ending_problems(turn)
    return found


def _has_effects(turn: Standing, tool: str) -> bool:
    facts = turn.settings.tool(tool)
    return facts is not None and facts.effect is EffectClass.EFFECT


def _of_the_end(turn: Standing, effects: Sequence[Effect]) -> list[str]:
    ends = [effect for effect in effects if isinstance(effect, EndTurn)]
    found: list[str] = []
    if len(ends) > 1:
        found.append(f"the turn ended {len(ends)} times at once")
    if ends and not isinstance(effects[-1], EndTurn):
        found.append("something is wanted after the turn's end")
    if ends and turn.exit != ends[-1].exit:
        found.append("the turn ended otherwise than it says")
    return found


def _of_waiting(turn: Standing, effects: Sequence[Effect]) -> list[str]:
    """An open turn waits for something that somebody does."""
    if turn.phase is not Phase.ACTING:
        wanted = {Phase.CALLING: CallModel, Phase.WAITING: Wait, Phase.COMPACTING: Compact, Phase.ASKING: AskDone}.get(
            turn.phase
        )
        lasting = [
            effect
            for effect in effects
            if isinstance(effect, CallModel | Wait | Compact | AskDone | RunTool | AskApproval)
        ]
        if wanted is None or (lasting and not isinstance(lasting[-1], wanted)):
            return [f"the turn is {turn.phase.value} and waits for {[type(effect).__name__ for effect in lasting]}"]
        return []
    if turn.round.under_way:
        return []
    return ["the turn waits for tools, and none runs"]


def ending_problems(turn: Standing) -> list[str]:
    """What is wrong with how a turn that is over looks: every one ends in an answer, a hand-over or a notice, and in one only."""
    assert turn.exit is not None
    shown = view(turn, turn.phase_since)
    kinds = [bubble.kind for bubble in shown.bubbles]
    found: list[str] = []
    if shown.open or BubbleKind.STATUS in kinds:
        found.append("the turn is over and looks as if it went on")
    match turn.exit.code:
        case ExitCode.ANSWERED:
            if kinds.count(BubbleKind.ANSWER) != 1 or BubbleKind.NOTICE in kinds:
                found.append(f"the turn was answered, and shows {[kind.value for kind in kinds]}")
        case ExitCode.HANDED_TO_CLIENT:
            if not turn.handed_calls:
                found.append("the turn was handed to the client, without calls")
        case _:
            if kinds.count(BubbleKind.NOTICE) != 1 or not shown.bubbles[-1].text.strip():
                found.append(f"the turn ended with {turn.exit.code.value}, and no notice says so")
    return found
