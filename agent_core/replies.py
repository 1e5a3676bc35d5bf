"""What a model's reply amounts to, from its content and the finish reason that the provider gave.

Theory. A finish reason is believed only if the content agrees (behaviour, section 2). `judge` is the one place that
compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum

import jiter
import orjson


class ArgumentsState(StrEnum):
    """How far a tool call's arguments have come."""

    COMPLETE = "complete"
    CUT = "cut"
    """The beginning of valid JSON: more was to come."""
    BROKEN = "broken"
    """No JSON, and no longer piece of text could make it JSON."""


class ReplyKind(StrEnum):
    """What a finished stream turned out to be."""

    TEXT = "text"
    TOOLS = "tools"
    EMPTY = "empty"
    THINKING_ONLY = "thinking_only"
    LENGTH = "length"
    LENGTH_IN_TOOL_CALL = "length_in_tool_call"
    FILTERED = "filtered"
    CONTRADICTED = "contradicted"
    """The finish reason says that all is well, but a tool call is missing or half there."""
    ERROR = "error"
    """The finish reason itself says that the stream broke."""


_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTER = frozenset({"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "recitation"})
_ERROR = frozenset(
    {"error", "network_error", "abort", "aborted", "cancelled", "timeout", "insufficient_system_resource"}
)
_TOOLS = frozenset({"tool_calls", "tool_use", "function_call"})


def arguments_state(text: str) -> ArgumentsState:
    """Whether tool-call arguments are whole, the beginning of something, or beyond repair. Blank counts as ``{}``."""
    if not text.strip():
        return ArgumentsState.COMPLETE
    raw = text.encode("utf-8", "replace")
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    else:
        return ArgumentsState.COMPLETE
    try:
        json.loads(text, strict=False)  # raw line breaks inside strings: some models send them, and they are readable
    except (ValueError, RecursionError):
        pass
    else:
        return ArgumentsState.COMPLETE
    try:
        jiter.from_json(raw, partial_mode=True)
    except ValueError:
        return ArgumentsState.BROKEN
    return ArgumentsState.CUT


def judge(reason: str, text: str, reasoning: str, arguments: Sequence[str], *, cut_calls: bool) -> ReplyKind:
    """What a stream that ended with `reason` is.

    `arguments` are those of the calls that were named; `cut_calls` says that a call in the text form was not completed.
    """
    word = reason.strip().lower()
    incomplete = cut_calls or any(arguments_state(each) is ArgumentsState.CUT for each in arguments)
    if word in _FILTER:
        return ReplyKind.FILTERED
    if word in _LENGTH:
        if incomplete:
            return ReplyKind.LENGTH_IN_TOOL_CALL
        return ReplyKind.TOOLS if arguments else ReplyKind.LENGTH
    if word in _ERROR:
        return ReplyKind.ERROR
    if incomplete:
        return ReplyKind.CONTRADICTED
    if arguments:
        return ReplyKind.TOOLS
    if text.strip():
        return ReplyKind.CONTRADICTED if word in _TOOLS else ReplyKind.TEXT
    return ReplyKind.THINKING_ONLY if reasoning.strip() else ReplyKind.EMPTY
