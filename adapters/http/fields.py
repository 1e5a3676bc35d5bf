"""What becomes of each field of a request to the API: it is used, passed on, or refused with its name. Pure.

Law (tests/adapters/test_fields.py): each field of the published schemas, and each kind of message, part, item and tool in them, has a row here; what
is passed on reaches the model's server as it came; nothing is taken with 200 and dropped.

A field without a row is a provider's that this table does not know yet (they add some every month), or a misspelt one: the model's server knows
which, so it is passed on. What that server does not take is left out and named in the answer's ``outspoken.left_out``, as with any other field.
Front ends add fields of their own (chat ids, features) which some servers take; to refuse them here would break those front ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import TypeAlias

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

Check: TypeAlias = Callable[[Json], str | None]
"""What is wrong with a value, behind the field's name; None if nothing is."""
UNKNOWN_FIELDS = 64
"""More fields without a row are no request of anybody's."""


class FieldFate(StrEnum):
    """What becomes of a field."""

    USED = "used"
    """The gateway reads it, and checks it where it does."""
    PASSED = "passed on"
    REFUSED = "refused"
    LEFT_OUT = "left out"
    """It says nothing to a model, or nobody here can do it, and no request depends on it: it is named in the answer's ``outspoken.left_out``."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field, or one kind of something."""

    fate: FieldFate
    why: str = ""
    """Of one that is refused: what a client reads. Of one that is used: what for, where its name does not say so."""
    check: Check | None = None


def _number(low: float, high: float) -> Check:
    def check(value: Json) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return "must be a number"
        return None if low <= value <= high else f"must be between {low:g} and {high:g}"

    return check


def _whole(low: int, high: int | None = None) -> Check:
    def check(value: Json) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        if high is not None and not low <= value <= high:
            return f"must be between {low} and {high}"
        return None if value >= low else f"must be at least {low}"

    return check


def _kind(words: str, *kinds: type) -> Check:
    def check(value: Json) -> str | None:
        fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        return None if fits else f"must be {words}"

    return check


def _one_of(*known: str) -> Check:
    def check(value: Json) -> str | None:
        return None if value in known else f"must be one of: {', '.join(known)}"

    return check


def _texts(most: int) -> Check:
    def check(value: Json) -> str | None:
        texts = [value] if isinstance(value, str) else value
        fine = isinstance(texts, list) and len(texts) <= most and all(isinstance(text, str) for text in texts)
        return None if fine else "must be text or a list of texts"

    return check


def _metadata(value: Json) -> str | None:
    fine = isinstance(value, dict) and len(value) <= 64 and all(isinstance(one, str) for one in value.values())
    return None if fine else "must be an object whose values are text"


_OBJECT, _TEXT, _FLAG, _LIST = (
    _kind("an object", dict),
    _kind("text", str),
    _kind("true or false", bool),
    _kind("a list", list),
)
USED = FieldRow(FieldFate.USED)
ANYHOW = FieldRow(FieldFate.PASSED)
"""Passed on whatever it holds: its provider says what is wrong with it."""


def _passed(check: Check) -> FieldRow:
    return FieldRow(FieldFate.PASSED, check=check)


def _refused(why: str) -> FieldRow:
    return FieldRow(FieldFate.REFUSED, why)


_CHAIN = _refused("which models stand in for each other is the gateway's own setting; name one in model.")
_ADDRESS = _refused("where and with which key models are asked is the operator's setting.")
_LEGACY = _refused("it belongs to the old completions endpoint, which is not served here.")

COMMON: Mapping[str, FieldRow] = {
    "model": USED,
    "stream": USED,
    "stream_options": FieldRow(
        FieldFate.USED, "include_usage; nothing is ever padded, as include_obfuscation: false asks for"
    ),
    "tools": USED,
    "tool_choice": FieldRow(FieldFate.USED, "obeyed, and passed on", _kind("text or an object", str, dict)),
    "user": FieldRow(FieldFate.USED, "whose memory and budget it is; passed on", _TEXT),
    "outspoken": FieldRow(FieldFate.USED, "the gateway's own options: session, tools, task"),
    "temperature": _passed(_number(0, 2)),
    "top_p": _passed(_number(0, 1)),
    "top_logprobs": _passed(_whole(0, 20)),
    "parallel_tool_calls": _passed(_FLAG),
    "service_tier": _passed(_TEXT),
    "metadata": _passed(_metadata),
    "safety_identifier": _passed(_TEXT),
    "prompt_cache_key": _passed(_TEXT),
    "prompt_cache_retention": _passed(_TEXT),
    "prompt_cache_options": _passed(_OBJECT),
    "moderation": _passed(_OBJECT),
}
"""What both endpoints know."""

PROVIDERS: Mapping[str, FieldRow] = {
    # OpenRouter
    "provider": _passed(_OBJECT),
    "transforms": _passed(_LIST),
    "plugins": _passed(_LIST),
    "reasoning": _passed(_OBJECT),
    "include_reasoning": _passed(_FLAG),
    "usage": _passed(_OBJECT),
    "models": _CHAIN,
    "route": _CHAIN,
    "fallbacks": _CHAIN,
    # sampling, as many servers have it
    "top_k": _passed(_whole(-1)),
    "top_a": _passed(_number(0, 1)),
    "min_p": _passed(_number(0, 1)),
    "typical_p": _passed(_number(0, 1)),
    "repetition_penalty": _passed(_number(0, 10)),
    "length_penalty": _passed(_number(-100, 100)),
    "min_tokens": _passed(_whole(0)),
    "stop_token_ids": _passed(_LIST),
    "bad_words": _passed(_LIST),
    "ignore_eos": _passed(_FLAG),
    "skip_special_tokens": _passed(_FLAG),
    "spaces_between_special_tokens": _passed(_FLAG),
    "include_stop_str_in_output": _passed(_FLAG),
    "logit_bias": _passed(_OBJECT),
    "use_beam_search": _passed(_FLAG),
    # vLLM, SGLang, llama.cpp
    "chat_template_kwargs": _passed(_OBJECT),
    "mm_processor_kwargs": _passed(_OBJECT),
    "guided_json": ANYHOW,
    "guided_regex": _passed(_TEXT),
    "guided_choice": _passed(_LIST),
    "guided_grammar": _passed(_TEXT),
    "guided_decoding_backend": _passed(_TEXT),
    "guided_whitespace_pattern": _passed(_TEXT),
    "structured_outputs": _passed(_OBJECT),
    "structural_tag": ANYHOW,
    "grammar": _passed(_TEXT),
    "json_schema": _passed(_OBJECT),
    "regex": _passed(_TEXT),
    "ebnf": _passed(_TEXT),
    "priority": _passed(_whole(-(2**31))),
    "cache_prompt": _passed(_FLAG),
    "separate_reasoning": _passed(_FLAG),
    "chat_template": _refused("the template belongs to the operator's model server."),
    "echo": _LEGACY,
    "best_of": _LEGACY,
    "suffix": _LEGACY,
    # Anthropic's and Google's fields, as their compatible servers and LiteLLM take them; DashScope, Z.ai, Moonshot
    "thinking": _passed(_OBJECT),
    "extra_body": _passed(_OBJECT),
    "google": _passed(_OBJECT),
    "safety_settings": _passed(_LIST),
    "cached_content": _passed(_TEXT),
    "enable_thinking": _passed(_FLAG),
    "thinking_budget": _passed(_whole(-1)),
    "enable_search": _passed(_FLAG),
    "search_parameters": _passed(_OBJECT),
    "reasoning_format": _passed(_TEXT),
    "reasoning_split": _passed(_FLAG),
    "safe_prompt": _passed(_FLAG),
    "random_seed": _passed(_whole(-(2**63))),
    # proxies read these from the body, and would ask elsewhere, or as somebody else
    "api_base": _ADDRESS,
    "base_url": _ADDRESS,
    "api_key": _ADDRESS,
    "api_version": _ADDRESS,
    "custom_llm_provider": _ADDRESS,
    "extra_headers": _ADDRESS,
    "mock_response": _refused("the answer is the model's."),
}
"""Providers' own, which either endpoint hands on."""

CHAT: Mapping[str, FieldRow] = {
    **PROVIDERS,
    **COMMON,
    "messages": USED,
    "n": FieldRow(FieldFate.USED, "must be 1"),
    "functions": FieldRow(FieldFate.USED, "the older way to bring tools"),
    "function_call": FieldRow(FieldFate.USED, "the older tool_choice", _kind("text or an object", str, dict)),
    "frequency_penalty": _passed(_number(-2, 2)),
    "presence_penalty": _passed(_number(-2, 2)),
    "seed": _passed(_whole(-(2**63))),
    "max_tokens": _passed(_whole(1)),
    "max_completion_tokens": _passed(_whole(1)),
    "stop": _passed(_texts(16)),
    "logit_bias": _passed(_OBJECT),
    "logprobs": _passed(_FLAG),
    "response_format": _passed(_OBJECT),
    "reasoning_effort": _passed(_TEXT),
    "verbosity": _passed(_TEXT),
    "modalities": _passed(_texts(4)),
    "audio": _passed(_OBJECT),
    "prediction": _passed(_OBJECT),
    "store": _passed(_FLAG),
    "web_search_options": _passed(_OBJECT),
    "prompt": _refused("chat completions are asked with messages."),
    "input": _refused("it belongs to /v1/responses; chat completions are asked with messages."),
}
"""The fields of ``/v1/chat/completions``."""

_STORED_PROMPT = _refused("stored prompts lie with OpenAI; send the words in instructions.")

RESPONSES: Mapping[str, FieldRow] = {
    **PROVIDERS,
    **COMMON,
    "input": USED,
    "instructions": FieldRow(FieldFate.USED, "stands behind the operator's own"),
    "background": USED,
    "conversation": USED,
    "previous_response_id": USED,
    "store": USED,
    "metadata": FieldRow(FieldFate.USED, "given back with the response", _metadata),
    "include": FieldRow(
        FieldFate.USED,
        "reasoning.encrypted_content and message.output_text.logprobs; what else it names is not made here",
        _LIST,
    ),
    "text": FieldRow(FieldFate.USED, "its format is passed on as response_format, its verbosity as verbosity", _OBJECT),
    "reasoning": FieldRow(FieldFate.USED, "its effort is passed on as reasoning_effort", _OBJECT),
    "max_output_tokens": FieldRow(FieldFate.USED, "passed on as max_completion_tokens", _whole(1)),
    "max_tool_calls": FieldRow(FieldFate.USED, "of the gateway's tools", _whole(1)),
    "truncation": FieldRow(
        FieldFate.USED, "a conversation that is too long is summed up either way", _one_of("auto", "disabled")
    ),
    "prompt": _STORED_PROMPT,
    "context_management": _refused("the gateway shortens conversations itself."),
    "access_programs": _refused("OpenAI's programmes of access are the operator's to set."),
    "image": _refused("pictures are asked for by modalities."),
    "messages": _refused("it belongs to /v1/chat/completions; responses are asked with input."),
    "max_tokens": _refused("its name here is max_output_tokens."),
    "response_format": _refused("its name here is text.format."),
    "n": FieldRow(FieldFate.USED, "must be 1"),
}
"""The fields of ``/v1/responses``."""

_ANSWERED = FieldRow(FieldFate.USED, "of an answer that a client hands back; it says nothing to a model")
_THOUGHT = FieldRow(FieldFate.USED, "goes back to the model in the turns where its provider wants it")

_SAID: Mapping[str, FieldRow] = {"role": USED, "content": USED, "name": ANYHOW}
MESSAGES: Mapping[str, Mapping[str, FieldRow]] = {
    "system": _SAID,
    "developer": _SAID,
    "user": _SAID,
    "tool": {**_SAID, "tool_call_id": USED},
    "function": _SAID,
    "assistant": {
        **_SAID,
        "tool_calls": USED,
        "function_call": FieldRow(FieldFate.USED, "told as a call of tool_calls"),
        "refusal": FieldRow(FieldFate.USED, "told as what it said"),
        "audio": ANYHOW,
        "prefix": ANYHOW,
        "partial": ANYHOW,
        "reasoning_content": _THOUGHT,
        "reasoning": _THOUGHT,
        "reasoning_details": _THOUGHT,
        "thinking_blocks": _THOUGHT,
        "extra_content": _THOUGHT,
        "annotations": _ANSWERED,
        "images": _ANSWERED,
    },
}
"""The fields of a message, by its role. Others stand for nothing that a model is told: they are left out, and named in ``outspoken.left_out``."""

PARTS: Mapping[str, FieldRow] = {
    "text": USED,
    "image_url": FieldRow(FieldFate.USED, "its address must not lead into the server's own network"),
    "input_audio": ANYHOW,
    "video_url": FieldRow(FieldFate.USED, "as a picture"),
    "file": ANYHOW,
    "refusal": FieldRow(FieldFate.USED, "told as what it said"),
    "thinking": ANYHOW,
    "redacted_thinking": ANYHOW,
}
"""Kinds of parts in the content of a chat message."""

_NOT_A_FUNCTION = "only functions are called here; bring it as one."
TOOLS: Mapping[str, FieldRow] = {
    "function": USED,
    "custom": _refused(_NOT_A_FUNCTION),
}
"""Kinds of tools of chat completions."""

_THEIRS = _refused("OpenAI's servers carry it out, and this gateway has tools of its own instead (outspoken.tools).")
_UNASKED = FieldRow(FieldFate.LEFT_OUT, "programs offer it unasked")
RESPONSE_TOOLS: Mapping[str, FieldRow] = {
    "function": USED,
    "custom": FieldRow(FieldFate.USED, "offered to the model as a function with one text, input"),
    "namespace": FieldRow(FieldFate.USED, "its functions are offered under flat names"),
    "tool_search": _refused(_NOT_A_FUNCTION),
    "apply_patch": _refused(_NOT_A_FUNCTION),
    "shell": _refused(_NOT_A_FUNCTION),
    "local_shell": _refused(_NOT_A_FUNCTION),
    "programmatic_tool_calling": _THEIRS,
    "file_search": _THEIRS,
    "computer": _THEIRS,
    "computer_use_preview": _THEIRS,
    "web_search": _UNASKED,
    "web_search_2025_08_26": _UNASKED,
    "web_search_preview": _UNASKED,
    "web_search_preview_2025_03_11": _UNASKED,
    "mcp": _THEIRS,
    "code_interpreter": _THEIRS,
    "image_generation": _THEIRS,
}
"""Kinds of tools of responses."""

RESPONSE_PARTS: Mapping[str, FieldRow] = {
    "input_text": USED,
    "input_image": FieldRow(FieldFate.USED, "its address must not lead into the server's own network"),
    "input_file": USED,
    "input_audio": USED,
    "output_text": USED,
    "refusal": FieldRow(FieldFate.USED, "told as what it said"),
    "summary_text": USED,
    "reasoning_text": USED,
}
"""Kinds of parts in the content of an item."""

_HOSTED = _refused("it belongs to a tool that is not served here.")
_FOR_PEOPLE = FieldRow(FieldFate.USED, "of an answer that a client hands back: it was for people to see")
RESPONSE_ITEMS: Mapping[str, FieldRow] = {
    "message": USED,
    "function_call": USED,
    "function_call_output": USED,
    "custom_tool_call": USED,
    "custom_tool_call_output": USED,
    "reasoning": _THOUGHT,
    "item_reference": FieldRow(FieldFate.USED, "the item of a response that is kept"),
    "file_search_call": _HOSTED,
    "computer_call": _HOSTED,
    "computer_call_output": _HOSTED,
    "web_search_call": _HOSTED,
    "image_generation_call": _FOR_PEOPLE,
    "code_interpreter_call": _HOSTED,
    "local_shell_call": _HOSTED,
    "local_shell_call_output": _HOSTED,
    "shell_call": _HOSTED,
    "shell_call_output": _HOSTED,
    "apply_patch_call": _HOSTED,
    "apply_patch_call_output": _HOSTED,
    "mcp_list_tools": _FOR_PEOPLE,
    "mcp_approval_request": _HOSTED,
    "mcp_approval_response": _HOSTED,
    "mcp_call": _FOR_PEOPLE,
    "tool_search_call": _HOSTED,
    "tool_search_output": _HOSTED,
    "additional_tools": _HOSTED,
    "program": _HOSTED,
    "program_output": _HOSTED,
    "configuration_update": _refused("options are fields of the request."),
    "compaction": _refused("the gateway shortens conversations itself."),
    "compaction_trigger": _refused("the gateway shortens conversations itself."),
}
"""Kinds of items that an input can have."""

_SILENT = FieldRow(FieldFate.LEFT_OUT)
_KEPT_FILES = _refused("files are not kept here; send the content itself.")
_ITEM: Mapping[str, FieldRow] = {"type": USED, "id": _ANSWERED, "status": _ANSWERED}
_CALL: Mapping[str, FieldRow] = {
    **_ITEM, "call_id": USED, "name": USED, "namespace": USED, "caller": _SILENT, "async": _SILENT,
}  # fmt: skip
ITEM_FIELDS: Mapping[str, Mapping[str, FieldRow]] = {
    "message": {**_ITEM, "role": USED, "content": USED, "phase": _ANSWERED, "audio": _ANSWERED, "outspoken": _ANSWERED},
    "function_call": {**_CALL, "arguments": USED},
    "function_call_output": {**_CALL, "output": USED},
    "custom_tool_call": {**_CALL, "input": USED},
    "custom_tool_call_output": {**_CALL, "output": USED},
    "reasoning": {**_ITEM, "summary": USED, "content": USED, "encrypted_content": _THOUGHT},
    "item_reference": {"type": USED, "id": USED},
}
"""The fields of those items that say something to a model."""

PART_FIELDS: Mapping[str, Mapping[str, FieldRow]] = {
    "input_text": {"type": USED, "text": USED, "prompt_cache_breakpoint": _SILENT},
    "input_image": {
        "type": USED, "image_url": USED, "detail": USED, "file_id": _KEPT_FILES, "prompt_cache_breakpoint": _SILENT,
    },
    "input_file": {
        "type": USED, "file_data": USED, "filename": USED, "file_id": _KEPT_FILES, "file_url": _KEPT_FILES,
        "detail": _SILENT, "prompt_cache_breakpoint": _SILENT,
    },
    "input_audio": {"type": USED, "input_audio": USED},
    "output_text": {"type": USED, "text": USED, "annotations": _ANSWERED, "logprobs": _ANSWERED},
    "refusal": {"type": USED, "refusal": USED},
    "summary_text": {"type": USED, "text": USED},
    "reasoning_text": {"type": USED, "text": USED},
}  # fmt: skip
"""The fields of the parts in items."""

_OF_TOOLS: Mapping[str, FieldRow] = {
    "type": USED, "name": USED, "description": USED, "allowed_callers": _SILENT, "async": _SILENT, "defer_loading": _SILENT,
}  # fmt: skip
TOOL_FIELDS: Mapping[str, Mapping[str, FieldRow]] = {
    "function": {**_OF_TOOLS, "parameters": USED, "strict": USED, "output_schema": _SILENT},
    "custom": {**_OF_TOOLS, "format": FieldRow(FieldFate.USED, "a grammar is told to the model")},
    "namespace": {"type": USED, "name": USED, "description": _SILENT, "tools": USED},
}
"""The fields of the tools of responses that are a client's own."""

TOOL_CHOICES: Mapping[str, FieldRow] = {
    "function": USED,
    "custom": USED,
    "allowed_tools": FieldRow(FieldFate.USED, "only these are offered"),
    "computer_use": _THEIRS,
    **{kind: _THEIRS for kind, row in RESPONSE_TOOLS.items() if row.fate is FieldFate.REFUSED or row is _UNASKED},
}
"""Kinds of ``tool_choice`` of responses, where it is an object."""

TEXT_FIELDS: Mapping[str, FieldRow] = {"format": USED, "verbosity": USED}
REASONING_FIELDS: Mapping[str, FieldRow] = {
    "effort": USED,
    "summary": FieldRow(FieldFate.USED, "what the model tells of its thoughts is shown whichever summary is wished"),
    "generate_summary": FieldRow(FieldFate.USED, "the older summary"),
    "context": _SILENT,
    "mode": _SILENT,
}
"""The fields of ``text`` and ``reasoning`` of responses."""

INCLUDED: Mapping[str, FieldRow] = {
    "reasoning.encrypted_content": USED,
    "message.output_text.logprobs": USED,
    "file_search_call.results": _SILENT,
    "web_search_call.results": _SILENT,
    "web_search_call.action.sources": _SILENT,
    "message.input_image.image_url": FieldRow(FieldFate.USED, "it is told anyhow"),
    "computer_call_output.output.image_url": _SILENT,
    "code_interpreter_call.outputs": _SILENT,
}
"""What ``include`` of responses can name."""


@dataclass(frozen=True, slots=True)
class FieldComplaint:
    """What is wrong with a field, in words behind its name."""

    name: str
    words: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class SortedFields:
    """A request's fields by their fate."""

    passed: Mapping[str, Json]
    """What is handed to the model as it came."""
    unknown: tuple[str, ...]
    """Those of them without a row."""
    complaint: FieldComplaint | None = None
    """The first that is wrong."""


def sort(value: Mapping[str, Json], table: Mapping[str, FieldRow]) -> SortedFields:
    """Each field of a request by its row. Clients fill in defaults: one that says nothing (null; of a refused one also false or empty) is as
    good as not there."""
    passed: dict[str, Json] = {}
    strange: list[str] = []
    for name, given in value.items():
        if given is None:
            continue
        row = table.get(name)
        if row is None:
            strange.append(name)
            passed[name] = given
            continue
        if row.fate is FieldFate.REFUSED:
            if given in (False, "", [], {}):
                continue
            return _wrong(name, f"is not taken here: {row.why}", "unsupported_parameter")
        complaint = row.check(given) if row.check is not None else None
        if complaint is not None:
            return _wrong(name, complaint)
        if row.fate is FieldFate.PASSED:
            passed[name] = given
    if len(strange) > UNKNOWN_FIELDS:
        return _wrong(strange[0][:80], "and many others are no fields that are known here.", "unknown_field")
    return SortedFields(passed, tuple(strange))


def _wrong(name: str, words: str, code: str = "") -> SortedFields:
    return SortedFields({}, (), FieldComplaint(name, words, code))


def left_out_of(
    given: Mapping[str, Json], table: Mapping[str, FieldRow], path: str, name: str
) -> tuple[list[str], FieldComplaint | None]:
    """(what of an object within a request says nothing to a model, and is named as ``name.field``; what is refused of it)."""
    silent: list[str] = []
    for key, value in given.items():
        row = table.get(key)
        if value in (None, False, "", [], {}) or (row is not None and row.fate in (FieldFate.USED, FieldFate.PASSED)):
            continue
        if row is not None and row.fate is FieldFate.REFUSED:
            return [], FieldComplaint(f"{path}.{key}", f"is not taken here: {row.why}", "unsupported_value")
        silent.append(f"{name}.{key}"[:80])
    return silent, None


def kind_refusal(kind: Json, table: Mapping[str, FieldRow]) -> str | None:
    """Why something of this kind (a tool, a part, an item) is not taken, behind its path; None if it is."""
    row = table.get(kind) if isinstance(kind, str) else None
    if row is None:
        return f".type must be one of: {', '.join(taken(table))}"
    return f" of type {kind} is not taken here: {row.why}" if row.fate is FieldFate.REFUSED else None


def taken(table: Mapping[str, FieldRow]) -> Iterable[str]:
    """The names in a table that are not refused."""
    return sorted(name for name, row in table.items() if row.fate is not FieldFate.REFUSED)
