"""What a model's chat template refuses, and the conversation in the form that it takes. Pure.

Local servers render a conversation with the template that its model brought along. Templates raise at what their model never saw in training,
and each server passes that on under another status (400 by vLLM, 404 by mlx-lm, 500 by llama.cpp and SGLang). So only the words are read here. Each
was seen:

| what is said | who | source |
|---|---|---|
| System role not supported | Gemma, Gemma 2 | vllm-project/vllm#2964, OoriData/Toolio#1, abetlen/llama-cpp-python#1580 |
| Developer instruction is not enabled for models/… | Gemma at AI Studio | 0xPlaygrounds/rig#788 |
| 'messages[0].role' does not support 'system' with this model | OpenAI's o1 | BerriAI/litellm#5671 |
| Conversation roles must alternate user/assistant/user/assistant/... | Gemma, Mistral, Mixtral | idiap/sdialog#122, kubeai-project/kubeai#499 |
| After the optional system message, conversation roles must alternate … except for tool calls and results | Devstral, Ministral | ggml-org/llama.cpp#19851 |
| Only user and assistant roles are supported, with the exception of an initial optional system message! | Mistral | vllm-project/vllm#6862 |
| This model only supports single tool-calls at once! | Llama 3 | unslothai/unsloth#7426 |
| Multiple tool calls are not supported. | gpt-oss at Databricks | natefleming/dao-ai#94 |
| Tool call IDs should be alphanumeric strings with length 9! / … must be a-z, A-Z, 0-9, with a length of 9 | Mistral | vllm-project/vllm#9019, jundot/omlx#1997, ml-explore/mlx-lm#1375 |
| Cannot pass both content and thinking in an assistant message with tool calls! | gpt-oss | ggml-org/llama.cpp#17040 |
| Failed to initialize samplers: failed to parse grammar | llama.cpp, LM Studio | ggml-org/llama.cpp#25746, NousResearch/hermes-agent#67349 |
| JSON schema conversion failed: Pattern must start with '^' and end with '$' | llama.cpp | ggml-org/llama.cpp#26930 |
| messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$' | Anthropic | maximhq/bifrost#5097 |
| Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40 | OpenAI | LibreChat-AI/agents#153 |
| messages[1]: invalid type: sequence, expected a string | DeepSeek | chatboxai/chatbox#1740 |
| json: cannot unmarshal array into Go struct field Message.messages.content of type string | servers in Go | cline/cline#363, gonka-ai/gonka#985 |
| can only concatenate str (not "list") to str | vLLM, llama-cpp-python | vllm-project/vllm#16245 |
| messages.2.tool.content Input should be a valid string | Mistral's in vLLM | vllm-project/vllm#18729 |
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import orjson

from agent_core.jsonvalue import Json
from agent_core.messages import Message, as_text, text_of
from agent_core.records import dataclass
from agent_core.text.patterns import late

_NO_SYSTEM = late(
    r"system role (?:is )?not supported|developer instruction is not enabled|role['\"`]? does not support ['\"`]?(?:system|developer)\b",
    re.IGNORECASE,
)
_TURNS = late(r"roles must alternate|only user(?:,| and) assistant\b.{0,40}roles are supported", re.IGNORECASE)
_ONE_CALL = late(r"only supports single tool-calls at once|multiple tool calls are not supported", re.IGNORECASE)
_IDS = late(
    r"tool call ids? .{0,100}length (?:of )?9\b|tool_?use_?id\b.{0,90}(?:should match pattern|regular expression pattern)|tool_use\.id: string should"
    r"|tool_call(?:s\W{1,3}\d+\W{1,3}|_)id\W{1,3}\s?(?:string too long|string does not match)",
    re.IGNORECASE,
)
THOUGHTS_BESIDE = late(r"cannot pass both content and thinking", re.IGNORECASE)
GRAMMAR = late(r"failed to parse grammar|json schema conversion failed|pattern must start with '\^'", re.IGNORECASE)
_NO_LISTS = late(
    r"invalid type: sequence, expected a string|cannot unmarshal array into go struct field \S*content\b|only concatenate str \(not .?list.?\) to str"
    r"|content['\" ]* ?:? ?(?:value )?(?:must|should) be a string|list\[textcontentpart\]|content\b.{0,40}input should be a valid string",
    re.IGNORECASE,
)
_FORM = frozenset({"pattern", "format", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"})
"""What narrows a value in a tool's schema beside its type. The tools check it themselves."""


@dataclass(frozen=True, slots=True)
class TemplateForm:
    """How a conversation has to be put for a template."""

    no_system: bool = False
    """The system's words stand before the person's first ones."""
    plain_turns: bool = False
    """A person and a model, turn by turn: calls and results are text."""
    single_calls: bool = False
    """One call in a message; its result comes before the next call."""
    short_ids: bool = False
    """Ids of calls have nine letters or digits."""
    one_text: bool = False
    """Where a message has nothing but texts, they are one."""


AS_IT_IS = TemplateForm()


def learnt(form: TemplateForm, messages: Sequence[Message], said: str) -> TemplateForm:
    """The form after a template has said so of `messages`; the same if it says nothing that another form could mend."""
    if _IDS.search(said):
        return replace(form, short_ids=True)
    if _ONE_CALL.search(said):
        return replace(form, single_calls=True)
    if _NO_LISTS.search(said) and fitted(messages, TemplateForm(one_text=True)) != list(messages):
        return replace(form, one_text=True)
    has_system = any(message.get("role") == "system" for message in messages)
    if _NO_SYSTEM.search(said) and has_system:
        return replace(form, no_system=True)
    if not _TURNS.search(said):
        return form
    if fitted(messages, TemplateForm(plain_turns=True)) != list(messages):
        return replace(form, plain_turns=True)
    return replace(form, no_system=has_system or form.no_system)


def fitted(messages: Sequence[Message], form: TemplateForm) -> list[Message]:
    """The conversation in that form."""
    out = [_of_one_text(message) for message in messages] if form.one_text else list(messages)
    if form.plain_turns:
        out = _plain(out)
    elif form.single_calls:
        out = _one_by_one(out)
    if form.no_system:
        out = _joined([{**m, "role": "user"} if m.get("role") == "system" else m for m in out])
    return [_renamed(message) for message in out] if form.short_ids else out


def _of_one_text(message: Message) -> Message:
    content = message.get("content")
    return {**message, "content": as_text(content)} if isinstance(content, list) else message


def _plain(messages: Sequence[Message]) -> list[Message]:
    """Without roles for tools. A call is written as the most common text form has it, so that one which a model imitates is read as a call."""
    out: list[Message] = []
    for message in messages:
        calls = message.get("tool_calls")
        if message.get("role") == "tool":
            out.append(
                {"role": "user", "content": f"<tool_response>\n{text_of(message.get('content'))}\n</tool_response>"}
            )
        elif isinstance(calls, list) and calls:
            said = [text_of(message.get("content")), *(_call_as_text(call) for call in calls)]
            out.append({"role": "assistant", "content": "\n".join(text for text in said if text)})
        else:
            out.append(message)
    return _joined(out)


def _call_as_text(call: Json) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return ""
    arguments = function.get("arguments") or "{}"
    name = orjson.dumps(function.get("name")).decode()
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'


def _joined(messages: Sequence[Message]) -> list[Message]:
    """Neighbours of one role as one message."""
    out: list[Message] = []
    for message in messages:
        spoken = message.get("role") in ("user", "assistant") and not message.get("tool_calls")
        if out and spoken and message.get("role") == out[-1].get("role") and not out[-1].get("tool_calls"):
            out[-1] = {**out[-1], "content": _followed(out[-1].get("content"), message.get("content"))}
        else:
            out.append(message)
    return out


def _followed(first: Json, second: Json) -> Json:
    if isinstance(first, list) or isinstance(second, list):
        return [*_parts(first), *_parts(second)]
    return "\n\n".join(text for text in (text_of(first), text_of(second)) if text)


def _parts(content: Json) -> list[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": text_of(content)}]


def _one_by_one(messages: Sequence[Message]) -> list[Message]:
    """Calls that were made side by side, each before its own result."""
    results = {message.get("tool_call_id"): message for message in messages if message.get("role") == "tool"}
    out: list[Message] = []
    for message in messages:
        calls = message.get("tool_calls")
        if message.get("role") == "tool":
            continue  # stands behind its call
        if not isinstance(calls, list) or not calls:
            out.append(message)
            continue
        for number, call in enumerate(calls):
            own = message if number == 0 else {"role": "assistant", "content": None}
            out.append({**own, "tool_calls": [call]})
            result = results.get(call.get("id")) if isinstance(call, dict) else None
            out += [] if result is None else [result]
    return out


def _renamed(message: Message) -> Message:
    calls, call = message.get("tool_calls"), message.get("tool_call_id")
    if isinstance(call, str):
        return {**message, "tool_call_id": _short(call)}
    if not isinstance(calls, list):
        return message
    return {
        **message,
        "tool_calls": [{**c, "id": _short(str(c.get("id")))} if isinstance(c, dict) else c for c in calls],
    }


def _short(call: str) -> str:
    """Nine letters and digits that stand for an id, always the same ones."""
    return (
        call
        if len(call) == 9 and call.isalnum() and call.isascii()
        else hashlib.sha256(call.encode("utf-8", "replace")).hexdigest()[:9]
    )


@lru_cache(maxsize=16)
def plainer(tools: bytes) -> bytes:
    """Schemas of tools without what narrows values: no grammar is too small for types alone."""
    return orjson.dumps(_without_form(orjson.loads(tools))) if tools else tools


def _without_form(value: Json, *, names: bool = False) -> Json:
    """`names`: the keys are the names of properties, and mean nothing."""
    if isinstance(value, list):
        return [_without_form(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_form(inner, names=key == "properties" and not names)
        for key, inner in value.items()
        if names or key not in _FORM
    }
