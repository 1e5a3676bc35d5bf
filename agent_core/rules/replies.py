"""What a model's reply amounts to, from its content and the finish reason that the provider gave.

Theory. A finish reason is believed only if the content agrees. `judge` is the one place that
compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import assert_never

import jiter
import orjson

from agent_core.text.shown import something_to_see


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
    """The finish reason says that all is well, but a tool call is half there, or could not be read."""
    CALL_MISSING = "call_missing"
    """A text, and a finish reason that speaks of a call: there is none."""
    ERROR = "error"
    """The finish reason itself says that the stream broke."""
    UNCERTAIN = "uncertain"
    """It ended with a word that nobody knows."""


class Finish(StrEnum):
    """What a finish reason says."""

    STOP = "stop"
    TOOLS = "tools"
    LENGTH = "length"
    FILTER = "filter"
    BROKEN = "broken"
    """The generation itself went wrong."""
    BAD_CALL = "bad_call"
    """The model wrote a call that its server could not read."""
    LOOP = "loop"
    """The server saw that the model repeated itself."""
    UNKNOWN = "unknown"
    """A word that is in no table, or says nothing (Gemini's "other"): it may mean anything, so it is no proof of an end."""


_FINISHES: Mapping[Finish, str] = {
    # OpenAI; Anthropic behind gateways; Cohere; TGI, llama.cpp and Ollama; `[DONE]`: see `model.client.Endings`
    Finish.STOP: "stop end_turn stop_sequence complete completed eos eos_token end stop_token finished done finish_reason_stop [done]",
    # OpenAI; its older functions; Anthropic; AI SDKs write hyphens
    Finish.TOOLS: "tool_calls tool_call tool_use function_call function_calls tool",
    # OpenAI; Anthropic, Gemini and Cohere; the Responses API; Mistral; Anthropic's context window; Ollama's older name
    Finish.LENGTH: "length max_tokens max_output_tokens model_length model_context_window_exceeded max_length token_limit "
    "max_tokens_reached finish_reason_max_tokens context_length_exceeded",
    # OpenAI, Azure; Anthropic; Gemini (SAFETY … MODEL_ARMOR); Z.ai, Zhipu; Cohere; Bedrock; Perplexity; DashScope
    Finish.FILTER: "content_filter content_filtered refusal safety recitation blocklist prohibited_content spii image_safety language "
    "model_armor image_prohibited_content image_recitation sensitive error_toxic guardrail_intervened guardrails blocked "
    "data_inspection_failed finish_reason_safety finish_reason_recitation risk_control",
    # OpenRouter, Mistral, Together; Z.ai; vLLM and SGLang; DeepSeek; Cohere; Gemini's other words; proxies
    Finish.BROKEN: "error network_error abort aborted cancelled canceled timeout timed_out insufficient_system_resource error_limit "
    "user_cancel server_error internal_error failed upstream_error engine_overloaded overloaded too_many_tool_calls no_image",
    Finish.LOOP: "repetition",  # vLLM
    # Gemini
    Finish.BAD_CALL: "malformed_function_call unexpected_tool_call malformed_tool_call invalid_tool_call malformed_response "
    "missing_thought_signature",
}
"""Finish reasons of providers and servers that speak this API, and of those that stand behind gateways. Small letters."""
_SAYS_MORE = frozenset({Finish.FILTER, Finish.LENGTH, Finish.BAD_CALL, Finish.LOOP})
_BY_WORD: Mapping[str, Finish] = {word: finish for finish, words in _FINISHES.items() for word in words.split()}


DONE_ONLY = "[DONE]"
"""What stands in place of a finish reason in the journal where there never is one."""
USUAL = "[usual] "
"""Stands in the journal before a word that nobody knows, and with which texts end at that endpoint."""


@lru_cache(256)
def finish_of(reason: str) -> Finish:
    """What a finish reason says, however it is spelt (``MAX_TOKENS``, ``tool-calls``, ``FinishReason.STOP``).

    Google's compatible API writes ``function_call_filter: MALFORMED_FUNCTION_CALL``: what stands behind the colon tells more.
    """
    if reason.startswith(USUAL):
        return Finish.STOP
    for part in reversed(reason.lower().split(":")):
        word = part.strip().replace("-", "_").replace(" ", "_").removeprefix("finishreason.")
        if word in _BY_WORD:
            return _BY_WORD[word]
    return Finish.UNKNOWN


def telling(reason: str, native: str) -> str:
    """Of a gateway's word for the end and the one of the provider behind it, the one that says more.

    Gateways say ``stop`` for what has no word in their language: a filter, a limit, a call that could not be read.
    """
    if not reason:
        return native
    more = finish_of(reason) in (Finish.STOP, Finish.TOOLS) and finish_of(native) in _SAYS_MORE
    return native if more else reason


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


def judge(
    reason: str,
    text: str,
    reasoning: str,
    arguments: Sequence[str],
    *,
    cut_calls: bool,
    doubting: bool = True,
    content_counts: bool = True,
) -> ReplyKind:
    """What a stream that ended with `reason` is.

    `arguments` are those of the calls that were named; `cut_calls` says that a call in the text form was not completed.
    Not `doubting`: as turns were judged before rules 5; not `content_counts`: before rules 14.
    """
    finish = finish_of(reason)
    if not doubting and (finish is Finish.UNKNOWN or (finish is Finish.TOOLS and not text.strip())):
        finish = Finish.STOP
    incomplete = cut_calls or any(arguments_state(each) is ArgumentsState.CUT for each in arguments)
    whole = bool(arguments) and not incomplete
    match finish:
        case Finish.FILTER:
            return ReplyKind.FILTERED
        case Finish.LENGTH if incomplete:
            return ReplyKind.LENGTH_IN_TOOL_CALL
        case Finish.LENGTH:
            return ReplyKind.TOOLS if whole else ReplyKind.LENGTH
        case Finish.BROKEN | Finish.LOOP:
            return ReplyKind.ERROR
        case Finish.BAD_CALL:
            return ReplyKind.CONTRADICTED
        case Finish.TOOLS if not whole and not incomplete and not content_counts:
            return ReplyKind.CONTRADICTED
        case Finish.TOOLS if something_to_see(text) and not whole and not incomplete:
            return ReplyKind.CALL_MISSING
        case Finish.UNKNOWN if not whole:
            return ReplyKind.UNCERTAIN  # a whole call needs no proof of an end; a text does
        case Finish.STOP | Finish.TOOLS | Finish.UNKNOWN:
            if incomplete:
                return ReplyKind.CONTRADICTED
            if whole:
                return ReplyKind.TOOLS
            if something_to_see(text) if doubting else text.strip():
                return ReplyKind.TEXT
            return ReplyKind.THINKING_ONLY if reasoning.strip() else ReplyKind.EMPTY
        case _:
            assert_never(finish)
