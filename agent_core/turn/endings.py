"""The facts that an ending's notice needs, put together from where a turn stands. Pure; used by `judging` alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agent_core.judging.remedies import Failure, Remedy
from agent_core.learning.troubles import Troubles
from agent_core.turn.events import CallBroke
from agent_core.turn.exits import BreakCause, Facts
from agent_core.turn.state import Activity, Phase
from agent_core.turn.toolround import ToolRound


def failed_facts(
    broke: CallBroke,
    names: Sequence[str],
    last_tool: str,
    attempts: int,
    failed_seconds: float,
    promised: str,
    chars: int = 0,
) -> Facts:
    """A model call failed for good. `names` are the tools whose call was arriving, `last_tool` is what had run last."""
    silent = broke.cause in (BreakCause.NO_CONTENT, BreakCause.STALLED)
    return Facts(
        cause=broke.cause,
        seconds=round(broke.waited_seconds if silent else failed_seconds),
        attempts=attempts,
        status=broke.status,
        retry_after_seconds=round(broke.retry_after_seconds),
        detail=broke.detail,
        announced=promised,
        chars=chars,
        tool=names[0] if names else last_tool,
    )


def during_facts(facts: Facts, broke: CallBroke, attempts: int) -> Facts:
    """A limit came while a model call was failing: that is why nothing came of the turn."""
    silent = broke.cause in (BreakCause.NO_CONTENT, BreakCause.STALLED)
    return replace(
        facts,
        cause=broke.cause,
        seconds=round(broke.waited_seconds) if silent else 0,
        attempts=attempts,
        status=broke.status,
        detail=broke.detail,
    )


def cut_facts(facts: Facts, cut_by: BreakCause | None, *, unclear: bool) -> Facts:
    """A text was cut, and asked to go on the model brought nothing: what had cut it is the cause, not what came of going on."""
    if cut_by in (None, facts.cause):
        return replace(facts, unclear=unclear)
    return replace(facts, cause=cut_by, seconds=0, unclear=unclear)


def again_facts(
    facts: Facts, names: Sequence[str], chars: int, troubles: Troubles, remedies: Iterable[tuple[Failure, Remedy]]
) -> Facts:
    """The call of a tool broke off so often that trying it again is of no use."""
    tool = max(names, key=lambda name: troubles.rounds_of([name], chars))
    return replace(
        facts,
        tool=tool,
        pattern=f"the call of {tool} breaks off while its arguments arrive",
        count=troubles.rounds_of([tool], chars),
        tried=troubles.tried(tool, remedies),
    )


def end_facts(
    facts: Facts,
    *,
    model: str,
    steps: int,
    tools: ToolRound,
    dropped: tuple[str, ...],
    unsure: Sequence[str],
    text_shown: bool,
) -> Facts:
    """What is said at every end: what had run, what had not, and what may have."""
    return replace(
        facts,
        model=model,
        steps=steps,
        tools_done=tuple(tools.tools_done),
        tools_dropped=dropped,
        tools_unsure=(*tools.tools_unsure, *unsure),
        text_shown=text_shown,
    )


def doing(phase: Phase, naming: str, unfinished: Sequence[Activity]) -> str:
    """What a turn is at, for the notice of a stop. `naming` is the tool whose call is arriving."""
    match phase:
        case Phase.CALLING:
            return f"the call of {naming} that was arriving" if naming else "waiting for the model"
        case Phase.WAITING:
            return "the next try"
        case Phase.COMPACTING:
            return "shortening the conversation"
        case Phase.ACTING:
            return ", ".join(activity.name for activity in unfinished)
        case Phase.ASKING:
            return "making sure that the reply is finished"
        case Phase.NEW | Phase.ENDED:
            return ""
