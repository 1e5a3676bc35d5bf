"""The tools that other agents and editors are offered: their names, words, schemas and what can be relied on. Pure.

What is said of safety is what holds: a question runs a turn, which may use the agent's tools on the world; what only reads says so; beginning
a conversation anew takes something away.

Law (tests/mcpserver/test_catalogue.py): whatever a tool gives back that is no error fits its schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

MOST_TEXT = 200_000
"""Characters of a question or a message."""
MOST_KEY = 200
MOST_ITEMS = 100
USUAL_ITEMS = 20


class ServedName(StrEnum):
    """What can be called."""

    ASK = "ask"
    LIST_SESSIONS = "list_sessions"
    READ_SESSION = "read_session"
    RESET_SESSION = "reset_session"
    EXPLAIN = "explain"
    SEND = "send"
    TRIAGE = "triage"


class WhoMay(StrEnum):
    """Whom a tool is for."""

    TALKERS = "talkers"
    """Whoever has a key for talking."""
    BOTH = "both"
    OPERATORS = "operators"
    """Whoever has the operators' key."""


@dataclass(frozen=True, slots=True)
class ServedTool:
    """One tool as it is listed."""

    name: ServedName
    title: str
    words: str
    who: WhoMay
    takes: Mapping[str, Json]
    needs: tuple[str, ...]
    gives: Mapping[str, Json]
    read_only: bool
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    """It may reach beyond the gateway."""

    def input_schema(self) -> dict[str, Json]:
        """Of its arguments."""
        return {
            "type": "object", "properties": dict(self.takes), "required": list(self.needs), "additionalProperties": False,
        }  # fmt: skip

    def output_schema(self) -> dict[str, Json]:
        """Of its structured results, errors too: what an error has not is left out."""
        return {"type": "object", "properties": dict(self.gives)}


def offered_to(*, talks: bool, operates: bool) -> tuple[ServedTool, ...]:
    """The tools of somebody who may talk, operate, or both."""
    return tuple(
        one
        for one in SERVED
        if (one.who is WhoMay.BOTH and (talks or operates))
        or (one.who is WhoMay.TALKERS and talks)
        or (one.who is WhoMay.OPERATORS and operates)
    )


def _text(words: str, most: int = 0) -> Json:
    found: dict[str, Json] = {"type": "string", "description": words}
    return found | ({"maxLength": most} if most else {})


def _or_null(kind: str, words: str) -> Json:
    return {"type": [kind, "null"], "description": words}


_SESSION = _text(
    "Name of the conversation. It goes on where it was left; without one, the question stands alone.", MOST_KEY
)
_LIMIT: Json = {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": USUAL_ITEMS}
_ERROR = _text("Of an error: what happened and what to do.")
_TEXTS: Json = {"type": "array", "items": {"type": "string"}}

SERVED: tuple[ServedTool, ...] = (
    ServedTool(
        ServedName.ASK,
        "Ask the agent",
        "Ask the agent and wait for its answer. It may use its own tools meanwhile; how it goes comes as progress. A result that is not clean "
        "is marked as an error and says what was not done: do not take it for an answer. Cancel the call to stop the work. The same question under the "
        "same key is worked on once, so ask again with the key that a lost answer names.",
        WhoMay.TALKERS,
        {
            "question": _text("What to ask, in words.", MOST_TEXT),
            "session": _SESSION,
            "agent": _text("An agent or a model by its name; not given: the usual one.", MOST_KEY),
            "key": _text("Any text of your own; asked again with it, you get the answer of the first time.", MOST_KEY),
        },
        ("question",),
        {
            "answer": _text("What the agent said, also where it is not whole."),
            "clean": {"type": "boolean", "description": "Whether it is a whole answer."},
            "exit": _text("How the turn ended; `answered` is the only clean end, `unknown` if nobody knows."),
            "exit_code": {"type": "integer", "description": "As outspoken ask has it: 0 is clean, 10 to 15 are not."},
            "notice": _or_null("string", "What the gateway itself says: what is missing, and what to do."),
            "turn": _or_null("string", "Its id, for explain."),
            "session": _or_null("string", "The conversation's name."),
            "key": _text("Under which it was asked."),
            "model": _text("Which model answered."),
            "seconds": {"type": "number"},
            "steps": {"type": "integer"},
            "tool_calls": {"type": "integer"},
            "recovered": _TEXTS,
        },
        read_only=False,
        destructive=True,
        open_world=True,
    ),
    ServedTool(
        ServedName.LIST_SESSIONS,
        "List conversations",
        "The conversations of this key, the newest first.",
        WhoMay.TALKERS,
        {"limit": _LIMIT, "after": _text("Go on behind the conversation with this name.", MOST_KEY)},
        (),
        {
            "sessions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "session": {"type": "string"}, "title": {"type": "string"}, "state": {"type": "string"},
                        "turns": {"type": "integer"}, "last_at": {"type": "integer", "description": "Seconds since 1970."},
                    },
                },
            },
            "more": {"type": "boolean", "description": "There are further ones."},
            "error": _ERROR,
        },
        read_only=True,
        idempotent=True,
    ),
    ServedTool(
        ServedName.READ_SESSION,
        "Read a conversation",
        "What was said in a conversation, the oldest of the latest items first.",
        WhoMay.TALKERS,
        {"session": _text("Name of the conversation.", MOST_KEY), "limit": _LIMIT},
        ("session",),
        {
            "session": {"type": "string"},
            "state": _text("idle, queued, running or waiting_for_approval."),
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "by": _text("user, assistant, or tool."), "text": {"type": "string"}, "tool": {"type": "string"},
                    },
                },
            },
            "more": {"type": "boolean", "description": "There are older ones."},
            "error": _ERROR,
        },
        read_only=True,
        idempotent=True,
    ),
    ServedTool(
        ServedName.RESET_SESSION,
        "Begin a conversation anew",
        "Stop what runs in a conversation and begin it anew: what was said before is not told to the agent any more.",
        WhoMay.TALKERS,
        {"session": _text("Name of the conversation.", MOST_KEY)},
        ("session",),
        {"session": {"type": "string"}, "state": {"type": "string"}, "error": _ERROR},
        read_only=False,
        destructive=True,
        idempotent=True,
    ),
    ServedTool(
        ServedName.EXPLAIN,
        "Explain what became of something",
        "Why a turn went as it did, in sentences, by the id that ask gives. With the operators' key also messages, deliveries and errors by their ids.",
        WhoMay.BOTH,
        {"id": _text("The id, such as t_01m83vgpfv0hej1e4cys.", MOST_KEY)},
        ("id",),
        {"id": {"type": "string"}, "lines": _TEXTS, "error": _ERROR},
        read_only=True,
        idempotent=True,
    ),
    ServedTool(
        ServedName.SEND,
        "Say something in a chat",
        "Send a message to a chat as the bot. What comes back says how far it got: stored, sent, or failed and why. The same message under the same key is sent once.",
        WhoMay.OPERATORS,
        {
            "to": _text("A chat that the gateway's [send] allow names, by that name. Others are refused.", MOST_KEY),
            "text": _text("Markdown.", MOST_TEXT),
            "key": _text("Any text of your own for this message.", MOST_KEY),
        },
        ("to", "text"),
        {
            "id": _text("Of the delivery."),
            "state": _text("accepted, pending, sent or failed; unknown if nobody knows."),
            "cause": _text("Why the last try failed."),
            "key": _text("Under which it was sent."),
            "error": _ERROR,
        },
        read_only=False,
        open_world=True,
    ),
    ServedTool(
        ServedName.TRIAGE,
        "What went wrong lately",
        "Failures of all conversations in groups, the most harmful first, each with what was tried and what to do. No words of people.",
        WhoMay.OPERATORS,
        {
            "since": _text("A span such as 30m, 2h or 7d, or a time such as 2026-11-20T14:00.", 40),
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": 10},
        },
        (),
        {
            "source": {"type": "string"},
            "turns": {"type": ["integer", "null"]},
            "failures": {"type": "integer"},
            "groups_found": {"type": "integer"},
            "groups": {"type": "array", "items": {"type": "object"}},
            "notes": _TEXTS,
            "error": _ERROR,
        },
        read_only=True,
        idempotent=True,
    ),
)  # fmt: skip
