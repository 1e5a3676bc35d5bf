"""What programs are told beside the words, in the ``outspoken`` object of either endpoint. Pure."""

from __future__ import annotations

from adapters.contract.base import Ended, LeftOpen, Queued
from agent_core.failures.notices import for_programs
from agent_core.jsonvalue import Json
from agent_core.turn.view import BubbleKind, View

LEFT_OPEN = "left_open"
"""What stands in an exit's place where there is none yet."""
BY_US: dict[str, Json] = {"by": "gateway"}
"""Of a piece whose words are the gateway's own."""


def queue_facts(queued: Queued) -> dict[str, Json]:
    """Of a message that waits."""
    scope = "gateway" if queued.line else "conversation"
    return {"status": "queued", "place": queued.line or queued.position, "queue": scope}


def facts_of(ended: Ended, session: str) -> dict[str, Json]:
    """How the turn really ended."""
    summary = ended.summary
    return {
        "exit": ended.exit.code.value,
        "turn": ended.turn,
        "session": session or None,
        "seconds": round(summary.seconds, 3),
        "steps": summary.steps,
        "tool_calls": summary.tool_calls,
        "model_calls": summary.attempts,
        "model": summary.model,
        "notice": next(
            (for_programs(b.text, ended.view.language) for b in ended.view.bubbles if b.kind is BubbleKind.NOTICE), None
        ),
    } | _remarks(ended.view)


def _remarks(view: View) -> dict[str, Json]:
    """What had gone wrong for some time on the way and was mended, and what the gateway said meanwhile; nothing if there was nothing."""
    mended: list[Json] = [bubble.text for bubble in view.bubbles if bubble.kind is BubbleKind.MENDED]
    notes: list[Json] = [
        for_programs(bubble.text, view.language) for bubble in view.bubbles if bubble.kind is BubbleKind.NOTE
    ]
    return {**({"recovered": mended} if mended else {}), **({"notes": notes} if notes else {})}


def left_facts(left: LeftOpen, session: str) -> dict[str, Json]:
    """Of a reply whose turn is still open: it is no exit."""
    return {"exit": LEFT_OPEN, "going_on": True, "turn": left.turn or None, "session": session or None}
