"""Why a turn went as it did, in plain sentences, from its events alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_never

from agent_core.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    Event,
    ReplyFinished,
    RungClimbed,
    SpendRefused,
    Steered,
    StopRequested,
    TakenOver,
    ToolReturned,
    TurnEnded,
    TurnOpened,
)
from agent_core.exits import ExitCode, Facts
from agent_core.notices import budget_words, cause_words
from agent_core.recovery import Rung
from agent_core.tools.base import ToolStatus

MOST_LINES = 15


def rung_words(rung: Rung) -> str:
    """A remedy in words."""
    match rung:
        case Rung.RETRY:
            return "tried the same call again"
        case Rung.NEXT_ROUTE:
            return "went to the next key or model"
        case Rung.CONTINUE:
            return "asked the model to go on from the text so far"
        case Rung.ADVISE_SMALLER:
            return "advised the model to send the work in smaller pieces"
        case Rung.NUDGE:
            return "reminded the model to go on"
        case Rung.CONTINUE_THINKING:
            return "asked the model to reply from its thoughts so far"
        case Rung.COMPACT:
            return "shortened the conversation"
        case _:
            assert_never(rung)


def story(events: Sequence[Event]) -> tuple[str, ...]:
    """At most 15 lines, the first with the time of day (UTC), the others with seconds since the turn began."""
    opened = next((event for event in events if isinstance(event, TurnOpened)), None)
    if opened is None:
        return ()
    lines: list[str] = []
    for event in events:
        words = _words(event)
        if words:
            lines.append(f"{(event.at - opened.at) / 1000:.1f} s: {words}")
    if len(lines) > MOST_LINES - 1:
        left_out = len(lines) - (MOST_LINES - 2)
        lines = [*lines[:6], f"… {left_out} more events …", *lines[-(MOST_LINES - 8) :]]
    began = datetime.fromtimestamp(opened.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    route = opened.settings.routes[0]
    return (f"Began {began}, model {route.model} at {route.endpoint}.", *lines)


def _words(event: Event) -> str:
    match event:
        case TurnOpened() if event.known.stalls:
            tools = ", ".join(stall.tool for stall in event.known.stalls)
            return f"calls of {tools} had broken off in earlier turns of this conversation; the model was advised from the start"
        case TurnOpened() if event.known.incidents:
            return f"{len(event.known.incidents)} incidents were open about this gateway's models"
        case CallBroke():
            facts = Facts(
                cause=event.cause, seconds=round(event.waited_seconds), status=event.status, detail=event.detail
            )
            return f"the model call failed: {cause_words(facts)}"
        case ReplyFinished():
            return f"the model's reply ended (“{event.reason}”, {event.output_tokens} tokens)"
        case SpendRefused():
            return f"the model was not asked: {budget_words(event.spend.budget)} has no room"
        case RungClimbed():
            return rung_words(event.rung) + (f" (number {event.number})" if event.number > 1 else "")
        case ToolReturned():
            ok = event.status is ToolStatus.OK
            return (
                f"a tool returned after {event.seconds:.1f} s: {'done' if ok else event.status.value.replace('_', ' ')}"
            )
        case TakenOver():
            return "the gateway had been restarted; the turn was taken up again"
        case StopRequested():
            return "a person said stop"
        case Steered():
            return "the person added something"
        case Compacted():
            return "the conversation was shortened" if event.helped else "the conversation could not be shortened"
        case ApprovalAnswered():
            return f"approval: {event.verdict.value}"
        case TurnEnded():
            clean = event.exit.code in (ExitCode.ANSWERED, ExitCode.HANDED_TO_CLIENT)
            return "answered" if clean else f"ended: {event.exit.code.value.replace('_', ' ')}"
        case _:
            return ""
