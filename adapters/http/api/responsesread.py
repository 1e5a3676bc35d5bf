"""What is asked at ``/v1/responses``: the same as of chat completions, in other words. It is put into those, and read as they are. Pure.

What belongs to responses alone (how it is kept, what it goes on from, what is told again with it) is read here. What a request only refers to (items
of kept responses, thoughts that were sealed) is found elsewhere, and handed in as `KnownItems`.

Laws (tests/adapters/test_responses_read.py): whatever the bytes, there is a request or a problem that names the path in the body that was sent;
whatever field is in it, it is used, refused by its name, or named among what was left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import field, replace

import orjson

from adapters.contract.base import Ended
from adapters.http.api.asked import ApiRequest, KnownItems, Referring
from adapters.http.api.beside import of_call, opaque_thoughts
from adapters.http.api.completions import read as read_chat
from adapters.http.common import Problem
from adapters.http.entrance import NotJson, json_of
from adapters.http.fields import (
    INCLUDED,
    ITEM_FIELDS,
    PART_FIELDS,
    REASONING_FIELDS,
    RESPONSE_ITEMS,
    RESPONSE_TOOLS,
    RESPONSES,
    TEXT_FIELDS,
    TOOL_CHOICES,
    TOOL_FIELDS,
    FieldFate,
    FieldRow,
    kind_refusal,
    left_out_of,
    sort,
)
from agent_core.jsonvalue import Json
from agent_core.messages import THOUGHT_CHARS, Message
from agent_core.records import dataclass

_ID = re.compile(r"resp_(s_[0-9a-z]+)_([0-9]{1,18})")
_HERE = frozenset(
    {"input", "instructions", "previous_response_id", "conversation", "background", "store", "stream_options", "include", "text", "reasoning",
     "max_output_tokens", "max_tool_calls", "truncation", "metadata", "tools", "tool_choice", "prompt", "top_logprobs"}
)  # fmt: skip
"""Fields that are read here; all others are as in chat completions."""
_TOLD_AGAIN = (
    "instructions", "metadata", "previous_response_id", "background", "store", "text", "reasoning", "tool_choice", "truncation",
    "max_output_tokens", "include",
)  # fmt: skip
SEALED, PROBABILITIES = "reasoning.encrypted_content", "message.output_text.logprobs"
CUSTOM = "custom_tools"
"""Under which the names of tools are told again that take a text, not JSON."""
SPACES = "namespaces"
"""Under which it is told again of tools in which namespace they are, and what they are called there."""
_ONE_TEXT: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


class _Bad(Exception):
    def __init__(self, message: str, param: str, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.problem = Problem(status, message, param=param, code=code)


def response_ref(text: str) -> tuple[str, int] | None:
    """The session and the message that a response's id stands for; None if it is no such id."""
    found = _ID.fullmatch(text)
    return (found[1], int(found[2])) if found is not None else None


def thoughts_back(ended: Ended) -> Json:
    """What of its thoughts goes back to the model with the reply: the fields of its message, and those of its calls. Empty if there is nothing."""
    kept = ended.thoughts
    beside, name, text = kept.get("beside"), kept.get("field"), ended.thought.beyond(0)
    message: dict[str, Json] = {**opaque_thoughts(ended), **(beside if isinstance(beside, dict) else {})}
    if text:
        message["reasoning" if name == "reasoning" else "reasoning_content"] = text[-THOUGHT_CHARS:]
    calls: dict[str, Json] = {call.call: dict(of_call(ended, call.call)) for call in ended.handed}
    calls = {call: each for call, each in calls.items() if each}
    return {"message": message, "calls": calls} if message or calls else None


def read(body: bytes, session: str, known: KnownItems) -> ApiRequest | Problem | Referring:
    """The request in a body, or what it refers to."""
    try:
        value = json_of(body)
    except NotJson as error:
        return Problem(400, str(error), code="invalid_json")
    if not isinstance(value, dict):
        return Problem(400, "The body must be a JSON object.")
    try:
        referred = _referred(value) if known.items is None else ()
        return Referring(referred) if referred else _request(value, session, known)
    except _Bad as bad:
        return bad.problem


def _referred(value: Mapping[str, Json]) -> tuple[str, ...]:
    """The ids of the items that it only names."""
    given = value.get("input")
    named = (_name_of(item) for item in given) if isinstance(given, list) else ()
    return tuple(dict.fromkeys(name for name in named if name))


def _name_of(item: Json) -> str:
    """Which item is meant, if it is only named; the type may be missing."""
    if (
        not isinstance(item, dict)
        or item.get("type", "item_reference" if set(item) == {"id"} else "") != "item_reference"
    ):
        return ""
    name = item.get("id")
    return name if isinstance(name, str) else ""


def _request(value: Mapping[str, Json], session: str, known: KnownItems) -> ApiRequest | Problem:
    if (bad := sort(value, RESPONSES).complaint) is not None:
        raise _Bad(f"{bad.name} {bad.words}", bad.name, bad.code or None)
    name, previous = session or _conversation(value), _text(value, "previous_response_id")
    if name and previous:
        words = "previous_response_id and conversation are two ways to say what goes on: name one of them."
        raise _Bad(words, "previous_response_id")
    before = response_ref(previous) if previous else None
    if previous and before is None:
        raise _Bad(f"There is no response {previous[:80]!r}.", "previous_response_id", "previous_response_not_found")
    background, kept = _flag(value, "background"), value.get("store") is not False
    if background and not kept:
        raise _Bad("What runs in the background has to be stored: leave store out, or set it to true.", "background")
    if value.get("store") is not None:
        _flag(value, "store")
    brought = _brought(value.get("tools"))
    items = _Items(known)
    chat, again = _as_chat(value, brought, items)
    origins = items.origins
    asked = read_chat(orjson.dumps(chat), name)
    if isinstance(asked, Problem):
        return _renamed(asked, origins)
    return replace(
        asked,
        left_out=tuple(dict.fromkeys((*asked.left_out, *brought.left_out, *items.left_out))),
        include_usage=True,
        digest=hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        background=background,
        before=before,
        kept=kept,
        again=again,
        most_tool_calls=_most(value),
        sealed=SEALED in _included(value),
    )


def _most(value: Mapping[str, Json]) -> int:
    most = value.get("max_tool_calls")
    return most if isinstance(most, int) else 0


def included(found: Json) -> list[str] | Problem:
    """What ``include`` names; or that it names what there is not."""
    if not isinstance(found, list | None):
        return Problem(400, "include must be a list of names.", param="include", code="invalid_value")
    names = [each for each in found or () if isinstance(each, str) and each in INCLUDED]
    if len(names) == len(found or ()):
        return names
    strange = next(each for each in found or () if each not in names)
    words = f"include names {str(strange)[:80]!r}. It can name: {', '.join(sorted(INCLUDED))}."
    return Problem(400, words, param="include", code="invalid_value")


def _included(value: Mapping[str, Json]) -> list[str]:
    names = included(value.get("include"))
    if isinstance(names, Problem):
        raise _Bad(names.message, "include", names.code)
    return names


def _as_chat(value: Mapping[str, Json], brought: _Brought, items: _Items) -> tuple[dict[str, Json], dict[str, Json]]:
    """(the body of a chat completion, what is told again); its messages come by way of `items`."""
    instructions = _text(value, "instructions")
    if instructions:
        items.say({"role": "system", "content": instructions}, -1)
    given = value.get("input")
    if isinstance(given, str):
        items.say({"role": "user", "content": given}, -1)
    elif isinstance(given, list) and given:
        for index, item in enumerate(given):
            items.take(item, index)
    else:
        raise _Bad("input must be text, or a list of items with at least one.", "input")
    chat: dict[str, Json] = {name: each for name, each in value.items() if name not in _HERE}
    limit, likely = value.get("max_output_tokens"), value.get("top_logprobs")
    text, reasoning = _object(value, "text"), _object(value, "reasoning")
    items.see(text, TEXT_FIELDS, "text", "text")
    items.see(reasoning, REASONING_FIELDS, "reasoning", "reasoning")
    wishes: dict[str, Json] = dict.fromkeys(_included(value), True)
    items.see(wishes, INCLUDED, "include", "include")
    chosen = _choice(value.get("tool_choice"))
    chat |= {
        "messages": [*items.messages],
        **({"tools": [*brought.tools]} if brought.tools is not None else {}),
        **({"max_completion_tokens": limit} if limit is not None else {}),
        **({"top_logprobs": likely} if likely else {}),
        **({"logprobs": True} if likely or PROBABILITIES in wishes else {}),
        **chosen,
        **_form(text),
    }
    if (effort := reasoning.get("effort")) is not None:
        chat["reasoning_effort"] = effort
    metadata = _object(value, "metadata")
    if len(metadata) > 16 or not all(isinstance(each, str) and len(each) <= 512 for each in metadata.values()):
        raise _Bad("metadata has at most 16 texts of at most 512 characters.", "metadata")
    again: dict[str, Json] = {name: value[name] for name in _TOLD_AGAIN if value.get(name) is not None}
    of_tools: dict[str, Json] = {CUSTOM: [*brought.custom], SPACES: dict(brought.spaces)}
    return chat, again | {name: each for name, each in of_tools.items() if each}


def _renamed(problem: Problem, origins: list[int]) -> Problem:
    """A problem of the chat completion, with the names of what was sent."""

    def name(found: re.Match[str]) -> str:
        origin = origins[int(found[1])] if int(found[1]) < len(origins) else -1
        return f"input[{origin}]" if origin >= 0 else "input"

    def renamed(words: str) -> str:
        words = re.sub(r"messages\[(\d+)\]", name, words)
        words = words.replace("max_completion_tokens", "max_output_tokens").replace(
            "reasoning_effort", "reasoning.effort"
        )
        return words.replace("response_format", "text.format").replace("messages", "input")

    param = renamed(problem.param) if problem.param is not None else None
    return replace(problem, message=renamed(problem.message), param=param)


# ---------------------------------------------------------------------- input


@dataclass(slots=True)
class _Items:
    """The messages that items come to: calls belong to the assistant's message before them."""

    known: KnownItems
    messages: list[Message] = field(default_factory=list[Message])
    origins: list[int] = field(default_factory=list[int])
    left_out: list[str] = field(default_factory=list[str])
    thought: dict[str, Json] = field(default_factory=dict[str, Json])
    """What the reply thought that comes next."""
    signed: dict[str, Mapping[str, Json]] = field(default_factory=dict[str, Mapping[str, Json]])
    """What of the thoughts belongs to calls, by their ids."""

    def see(self, given: Mapping[str, Json], table: Mapping[str, FieldRow], path: str, name: str) -> None:
        """Nothing of it is dropped without a word."""
        silent, bad = left_out_of(given, table, path, name)
        if bad is not None:
            raise _Bad(f"{bad.name} {bad.words}", bad.name, bad.code)
        self.left_out += silent

    def say(self, message: Message, origin: int) -> None:
        if message["role"] == "assistant" and self.thought:
            message |= self.thought
            self.thought = {}
        self.messages.append(message)
        self.origins.append(origin)

    def take(self, item: Json, index: int) -> None:
        path = f"input[{index}]"
        if (name := _name_of(item)) and self.known.items is not None:
            if name not in self.known.items:
                words = f"There is no item {name[:80]!r}, or it is not kept any longer."
                raise _Bad(words, f"{path}.id", "item_not_found", 404)
            if isinstance(item, dict):
                self.see(item, ITEM_FIELDS["item_reference"], path, "input[]")
            item = self.known.items[name]
            if item is None:  # of a response that is kept, but nothing of it is told to a model
                return
        if not isinstance(item, dict):
            raise _Bad(f"{path} must be an object", path)
        kind = item.get("type", "message")
        if (why := kind_refusal(kind, RESPONSE_ITEMS)) is not None:
            raise _Bad(f"{path}{why}", f"{path}.type", "unsupported_value")
        assert isinstance(kind, str)
        if kind in ITEM_FIELDS:
            self.see(item, ITEM_FIELDS[kind], path, "input[]")
        match kind:
            case "message":
                self.say(
                    {"role": item.get("role"), "content": self._content(item.get("content"), f"{path}.content")}, index
                )
            case "function_call":
                self._call(item, _text(item, "arguments", path), index)
            case "custom_tool_call":
                self._call(item, orjson.dumps({"input": item.get("input")}).decode(), index)
            case "function_call_output" | "custom_tool_call_output":
                call, output = _text(item, "call_id", path), item.get("output")
                if not call:
                    raise _Bad(f"{path}.call_id is missing", f"{path}.call_id")
                content = self._content(output, f"{path}.output")
                self.say({"role": "tool", "tool_call_id": call, "content": content}, index)
            case "reasoning":
                self._reasoning(item)
            case _:  # of an answer that is handed back: it was for people to see
                pass

    def _reasoning(self, item: Mapping[str, Json]) -> None:
        """What was thought: as it was sealed, else as it can be read."""
        sealed = item.get("encrypted_content")
        opened = self.known.opened(sealed) if isinstance(sealed, str) and sealed else None
        if not isinstance(opened, dict):
            if sealed:
                self.left_out.append("input[].encrypted_content")
            thought = _thought(item)
            self.thought |= {"reasoning_content": thought} if thought else {}
            return
        message, calls = opened.get("message"), opened.get("calls")
        found = message if isinstance(message, dict) else {}
        if self.messages and self.messages[-1]["role"] == "assistant":  # it came behind the words of its reply
            self.messages[-1] |= found
        else:
            self.thought |= found
        for call, fields in calls.items() if isinstance(calls, dict) else ():
            self.signed[call] = fields if isinstance(fields, dict) else {}

    def _content(self, value: Json, path: str) -> Json:
        if not isinstance(value, list):
            return value
        for index, part in enumerate(value):
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, dict) and isinstance(kind, str) and kind in PART_FIELDS:
                self.see(part, PART_FIELDS[kind], f"{path}[{index}]", "input[].content[]")
        return [_part(part, f"{path}[{index}]") for index, part in enumerate(value)]

    def _call(self, item: Mapping[str, Json], arguments: str, index: int) -> None:
        path = f"input[{index}]"
        call, name = _text(item, "call_id", path), _text(item, "name", path)
        if not call or not name:
            raise _Bad(f"{path} must have a call_id and a name", path)
        name = flat(_text(item, "namespace", path), name)
        function: Json = {"name": name, "arguments": arguments or "{}"}
        made: Json = {"id": call, "type": "function", "function": function, **self.signed.get(call, {})}
        last = self.messages[-1] if self.messages else None
        if last is None or last["role"] != "assistant":
            self.say({"role": "assistant", "content": None, "tool_calls": [made]}, index)
            return
        calls = last.setdefault("tool_calls", [])
        assert isinstance(calls, list)
        calls.append(made)
        if self.thought:  # between the calls of one reply
            thoughts = [text for text in (last.get("reasoning_content"), self.thought.get("reasoning_content")) if text]
            last |= self.thought
            last |= {"reasoning_content": "\n\n".join(map(str, thoughts))} if thoughts else {}
            self.thought = {}


def _thought(item: Mapping[str, Json]) -> str:
    """What an item of reasoning says, as far as it can be read."""
    for name in ("content", "summary"):
        parts = item.get(name)
        texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        said = "\n\n".join(text for text in texts if isinstance(text, str))
        if said:
            return said
    return ""


def _part(part: Json, path: str) -> Json:
    if not isinstance(part, dict):
        raise _Bad(f"{path} must be an object", path)
    match part.get("type"):
        case "input_text" | "output_text" | "text" | "summary_text" | "reasoning_text":
            return {"type": "text", "text": part.get("text")}
        case "refusal":
            return {"type": "text", "text": part.get("refusal")}
        case "input_image":
            if part.get("image_url") is None:
                raise _Bad(f"{path}: a picture is taken by its image_url.", path)
            detail = part.get("detail")
            return {
                "type": "image_url",
                "image_url": {"url": part["image_url"], **({"detail": detail} if detail else {})},
            }
        case "input_file":
            if part.get("file_data") is None:
                raise _Bad(f"{path}: a file is taken with its file_data.", path)
            return {"type": "file", "file": {name: part[name] for name in ("filename", "file_data") if part.get(name)}}
        case "input_audio":
            return {"type": "input_audio", "input_audio": part.get("input_audio")}
        case other:
            raise _Bad(f"{path}.type {str(other)[:80]!r} is not taken here.", f"{path}.type", "unsupported_value")


# ---------------------------------------------------------------------- tools, form


@dataclass(slots=True)
class _Brought:
    """The tools of a request."""

    tools: list[Json] | None
    """As chat completions have them; None if the request says nothing of tools."""
    custom: list[Json] = field(default_factory=list[Json])
    """The names of those that take a text."""
    spaces: dict[str, Json] = field(default_factory=dict[str, Json])
    """Of those in a namespace: their name here → namespace and name there."""
    left_out: list[str] = field(default_factory=list[str])


def flat(space: str, name: str) -> str:
    """What a tool is called where there are no namespaces."""
    return f"{space}__{name}" if space else name


def _brought(value: Json) -> _Brought:
    if value is None:
        return _Brought(None)
    if not isinstance(value, list):
        raise _Bad("tools must be a list", "tools")
    brought = _Brought([])
    for index, tool in enumerate(value):
        _bring(brought, tool, f"tools[{index}]", "")
    if not brought.tools and brought.left_out:  # it did not say that there are to be none
        brought.tools = None
    return brought


def _bring(brought: _Brought, tool: Json, path: str, space: str) -> None:
    if not isinstance(tool, dict) or not isinstance(tool.get("name") or tool.get("type"), str):
        raise _Bad(f"{path} must be a function with a name", path)
    kind = tool.get("type")
    if isinstance(kind, str) and kind in TOOL_FIELDS:
        brought.left_out += left_out_of(tool, TOOL_FIELDS[kind], path, "tools[]")[0]
    if kind == "namespace":
        if space:
            raise _Bad(f"{path}: a namespace has no others in it.", f"{path}.type", "unsupported_value")
        inner = tool.get("tools")
        if not isinstance(inner, list) or not isinstance(tool.get("name"), str):
            raise _Bad(f"{path} must have a name and tools", path)
        for index, each in enumerate(inner):
            _bring(brought, each, f"{path}.tools[{index}]", str(tool["name"]))
        return
    if (why := kind_refusal(kind, RESPONSE_TOOLS)) is not None:
        raise _Bad(f"{path}{why}", f"{path}.type", "unsupported_value")
    if not isinstance(kind, str) or RESPONSE_TOOLS[kind].fate is FieldFate.LEFT_OUT:
        brought.left_out.append(f"tools[].{kind}")
        return
    function: dict[str, Json]
    if kind == "custom":
        function = {"name": tool.get("name"), "description": _described(tool), "parameters": _ONE_TEXT}
    else:
        names = ("name", "description", "parameters", "strict")
        function = {name: tool[name] for name in names if tool.get(name) is not None}
    name = function.get("name")
    if space and isinstance(name, str):
        function["name"] = flat(space, name)
        brought.spaces[flat(space, name)] = [space, name]
    if kind == "custom":
        brought.custom.append(function["name"])
    assert brought.tools is not None
    brought.tools.append({"type": "function", "function": function})


def _described(tool: Mapping[str, Json]) -> str:
    """What the model is told of a tool that takes a text, of a certain form if it says one."""
    form = tool.get("format")
    grammar = form.get("definition") if isinstance(form, dict) else None
    words = str(tool.get("description") or "")
    return f"{words}\n\nThe input follows this grammar:\n{grammar}" if isinstance(grammar, str) else words


def _choice(value: Json) -> dict[str, Json]:
    """As chat completions spell it, where it is obeyed."""
    if value is None or isinstance(value, str):
        return {} if value is None else {"tool_choice": value}
    kind = value.get("type") if isinstance(value, dict) else None
    why = kind_refusal(kind, TOOL_CHOICES)
    if not isinstance(value, dict) or why is not None:
        refused = isinstance(kind, str) and kind in TOOL_CHOICES
        words = f"tool_choice{why}" if refused else "tool_choice must be none, auto, required, or name tools of yours."
        raise _Bad(words, "tool_choice")
    if kind != "allowed_tools":
        return {"tool_choice": {"type": "function", "function": {"name": _called(value)}}}
    listed = value.get("tools")
    if isinstance(listed, list):
        value = {**value, "tools": [{"name": _called(tool)} for tool in listed if isinstance(tool, dict)]}
    return {"tool_choice": value}


def _called(tool: Mapping[str, Json]) -> Json:
    """What a tool is called here."""
    name, space = tool.get("name"), tool.get("namespace")
    return flat(space, name) if isinstance(space, str) and isinstance(name, str) else name


def _form(text: Mapping[str, Json]) -> dict[str, Json]:
    """How the answer is to look."""
    found: dict[str, Json] = {} if text.get("verbosity") is None else {"verbosity": text["verbosity"]}
    form = text.get("format")
    kind = form.get("type") if isinstance(form, dict) else None
    if form is None or kind == "text":
        return found
    if isinstance(form, dict) and kind == "json_schema":
        schema: Json = {name: each for name, each in form.items() if name != "type"}
        return {**found, "response_format": {"type": "json_schema", "json_schema": schema}}
    if kind != "json_object":
        raise _Bad("text.format.type must be text, json_object or json_schema.", "text.format.type")
    return {**found, "response_format": {"type": "json_object"}}


# ---------------------------------------------------------------------- values


def _text(value: Mapping[str, Json], key: str, path: str = "") -> str:
    found, name = value.get(key), f"{path}.{key}" if path else key
    if found is None:
        return ""
    if not isinstance(found, str):
        raise _Bad(f"{name} must be text", name)
    return found


def _flag(value: Mapping[str, Json], key: str) -> bool:
    found = value.get(key)
    if found is not None and not isinstance(found, bool):
        raise _Bad(f"{key} must be true or false", key)
    return found is True


def _object(value: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    found = value.get(key)
    if found is not None and not isinstance(found, dict):
        raise _Bad(f"{key} must be an object", key)
    return found or {}


def _conversation(value: Mapping[str, Json]) -> str:
    """The conversation's name."""
    found = value.get("conversation")
    name = found.get("id") if isinstance(found, dict) else found
    if name is None:
        return ""
    if not isinstance(name, str) or not name:
        raise _Bad("conversation must be a name, or an object with an id.", "conversation")
    return name
