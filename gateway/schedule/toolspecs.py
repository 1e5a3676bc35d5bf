"""The tools by which the model sets something for later, as it is told of them. Words only; pure."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.jsonvalue import Json
from agent_core.tools.base import EffectClass, ToolSpec

_WHEN: Mapping[str, Json] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": (
        "in 20 minutes | at 14:05 | tomorrow 9:00 | monday 9:00 | 2026-12-24 18:00 (with +01:00 or Z behind it if another zone is meant) | "
        "every weekday 9:00 | every 2 hours | cron 0 9 * * 1-5"
    ),
}
_WHEN_TOO: Mapping[str, Json] = {**_WHEN, "description": "As with remind."}


def _object(required: list[Json], **properties: Mapping[str, Json]) -> dict[str, Json]:
    listed: dict[str, Json] = {name: dict(schema) for name, schema in properties.items()}
    return {"type": "object", "properties": listed, "required": required, "additionalProperties": False}


REMIND = ToolSpec(
    "remind",
    "Set a reminder: its words come to this chat at that time. It is set only if this says so; tell the person the time that it gives.",
    _object(["when", "what"], when=_WHEN, what={"type": "string", "minLength": 1, "maxLength": 1_000}),
    EffectClass.KEYED,
    deadline_seconds=15,
)
SCHEDULE = ToolSpec(
    "schedule",
    "Have something done here at a time, once or again and again: you get the prompt then, with your tools, and answer in this chat.",
    _object(["when", "prompt"], when=_WHEN_TOO, prompt={"type": "string", "minLength": 1, "maxLength": 8_000}),
    EffectClass.KEYED,
    deadline_seconds=15,
)
LIST_SCHEDULED = ToolSpec(
    "list_scheduled",
    "What is set for later in this chat, with its numbers; what time it is here, and in which time zone.",
    _object([]),
    EffectClass.PURE,
    deadline_seconds=15,
)
CANCEL_SCHEDULED = ToolSpec(
    "cancel_scheduled",
    "Take back something that list_scheduled shows, or pause it, or let it go on.",
    _object(
        ["number"],
        number={"type": "integer", "minimum": 1, "maximum": 999_999},
        action={"type": "string", "enum": ["cancel", "pause", "resume"]},
    ),
    EffectClass.KEYED,
    deadline_seconds=15,
)
SET_TIMEZONE = ToolSpec(
    "set_timezone",
    "Keep the person's time zone, when they say where they are: times of day are meant in it from then on.",
    _object(["zone"], zone={"type": "string", "minLength": 1, "maxLength": 60, "description": "such as Europe/Berlin"}),
    EffectClass.KEYED,
    deadline_seconds=15,
)
START_TASK = ToolSpec(
    "start_task",
    "Begin something long in the background, so that the person need not wait; this conversation is told when it ends. It works with your tools in "
    "the same folder, and knows nothing of this conversation but the instructions.",
    _object(
        ["title", "instructions"],
        title={"type": "string", "minLength": 1, "maxLength": 60},
        instructions={"type": "string", "minLength": 1, "maxLength": 20_000},
    ),
    EffectClass.KEYED,
    deadline_seconds=15,
)
SEND_MESSAGE = "send_message"
OF_TIME = (REMIND, SCHEDULE, LIST_SCHEDULED, CANCEL_SCHEDULED, SET_TIMEZONE)
NEEDS_PLACE = frozenset({spec.name for spec in (*OF_TIME, START_TASK)})
"""What is of no use to a request that belongs to no conversation."""


def later_names() -> tuple[str, ...]:
    """What they are called, those with them that only some configurations offer."""
    return (*(spec.name for spec in OF_TIME), START_TASK.name, SEND_MESSAGE, "speak")
