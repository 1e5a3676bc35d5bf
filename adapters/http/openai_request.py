"""Parses the body of a chat completion request, once, at the edge: bytes in, `ChatRequest` or `Problem` out. Pure.

Laws (tests/adapters/test_openai_request.py): it never raises, whatever the bytes; whatever is wrong is named by its path.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import orjson

from adapters.http.common import Problem
from adapters.http.entrance import NotJson, json_of
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage, Message
from agent_core.records import dataclass
from agent_core.tools.web.addresses import picture_refusal

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
MAX_MESSAGES = 10_000
USER_CHARS = 200


class _Bad(Exception):
    """Something in the body is not as it must be."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(400, message, param=param, code=code)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request that makes sense."""

    model: str
    messages: tuple[Message, ...]
    stream: bool
    include_usage: bool
    tools: tuple[Mapping[str, Json], ...]
    parameters: Mapping[str, Json]
    """What is passed on to the model."""
    client_output_limit: bool
    session: str
    user: str
    digest: str
    """Of the whole body, for idempotent retries."""

    def split(self) -> tuple[tuple[Message, ...], tuple[InputMessage, ...]]:
        """(what came before, the messages to answer): the trailing messages of the person and of the client's tools."""
        cut = len(self.messages)
        while cut and self.messages[cut - 1]["role"] in ("user", "tool"):
            cut -= 1
        return self.messages[:cut], tuple(_input(message) for message in self.messages[cut:])


def _input(message: Message) -> InputMessage:
    call, name = message.get("tool_call_id"), message.get("name")
    return InputMessage(
        content=message.get("content"),
        role=str(message["role"]),
        tool_call_id=call if isinstance(call, str) else "",
        name=name if isinstance(name, str) else "",
    )


Parsed: TypeAlias = ChatRequest | Problem


def parse(body: bytes, session_header: str = "") -> Parsed:
    """The request in `body`, or what is wrong with it."""
    try:
        value = json_of(body)
    except NotJson as error:
        return Problem(400, str(error), code="invalid_json")
    if not isinstance(value, dict):
        return Problem(400, "The body must be a JSON object.")
    try:
        return _request(value, session_header)
    except _Bad as bad:
        return bad.problem


def _request(value: dict[str, Json], session_header: str) -> ChatRequest:
    own = value.get("outspoken")
    if own is not None and not isinstance(own, dict):
        raise _Bad("outspoken must be an object", "outspoken")
    session = session_header or _text(own or {}, "session", "outspoken.session")
    if len(session) > 200 or not session.isprintable():
        raise _Bad("A session's name has at most 200 printable characters.", "outspoken.session")
    user = _text(value, "user", "user")
    if len(user) > USER_CHARS:
        raise _Bad(f"user has at most {USER_CHARS} characters: what was cut off would tell two people apart.", "user")
    options = value.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise _Bad("stream_options must be an object", "stream_options")
    count = value.get("n")
    if count not in (None, 1) or isinstance(count, bool):
        raise _Bad("n must be 1: this gateway gives one answer.", "n")
    if value.get("logprobs") is True:
        raise _Bad("logprobs are not offered here.", "logprobs")
    tools = _tools(value)
    parameters = _parameters(value)
    if not tools:
        parameters.pop("tool_choice", None)
        parameters.pop("parallel_tool_calls", None)
    return ChatRequest(
        model=_text(value, "model", "model"),
        messages=_messages(value.get("messages")),
        stream=_flag(value, "stream"),
        include_usage=_flag(options or {}, "include_usage", "stream_options.include_usage"),
        tools=tools,
        parameters=parameters,
        client_output_limit="max_tokens" in parameters or "max_completion_tokens" in parameters,
        session=session,
        user=user,
        digest=hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest(),
    )


def _text(value: Mapping[str, Json], key: str, path: str) -> str:
    found = value.get(key)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise _Bad(f"{path} must be text", path)
    return found


def _flag(value: Mapping[str, Json], key: str, path: str = "") -> bool:
    found = value.get(key)
    if found is None:
        return False
    if not isinstance(found, bool):
        raise _Bad(f"{path or key} must be true or false", path or key)
    return found


# ---------------------------------------------------------------------- messages


def _messages(value: Json) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise _Bad("messages must be a list with at least one message", "messages")
    if len(value) > MAX_MESSAGES:
        raise _Bad(f"messages has more than {MAX_MESSAGES} entries", "messages")
    messages = tuple(_message(entry, f"messages[{index}]") for index, entry in enumerate(value))
    if messages[-1]["role"] not in ("user", "tool"):
        raise _Bad("The last message must be the person's (role user) or a tool's result (role tool).", "messages")
    return messages


def _message(value: Json, path: str) -> Message:
    if not isinstance(value, dict):
        raise _Bad(f"{path} must be an object", path)
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise _Bad(f"{path}.role must be one of: {', '.join(sorted(_ROLES))}", f"{path}.role")
    message: Message = {"role": "tool" if role == "function" else role}
    calls = value.get("tool_calls")
    content = value.get("content")
    if content is None and role != "assistant":
        raise _Bad(f"{path}.content is missing", f"{path}.content")
    message["content"] = _content(content, f"{path}.content")
    if isinstance(value.get("name"), str):
        message["name"] = value["name"]
    if role == "assistant" and calls:
        message["tool_calls"] = _calls(calls, f"{path}.tool_calls")
    elif role == "assistant" and content is None:
        message["content"] = ""
    if role == "tool":
        call = value.get("tool_call_id")
        if not isinstance(call, str) or not call:
            raise _Bad(f"{path}.tool_call_id is missing", f"{path}.tool_call_id")
        message["tool_call_id"] = call
    return message


def _content(value: Json, path: str) -> Json:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _Bad(f"{path} must be text or a list of parts", path)
    for index, part in enumerate(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str) or kind not in _PARTS:
            raise _Bad(f"{path}[{index}].type must be one of: {', '.join(sorted(_PARTS))}", f"{path}[{index}]")
        if kind == "text" and not isinstance(part.get("text"), str):
            raise _Bad(f"{path}[{index}].text must be text", f"{path}[{index}].text")
        if kind == "image_url":
            image = part.get("image_url")
            url = image.get("url") if isinstance(image, dict) else None
            if not isinstance(url, str):
                raise _Bad(f"{path}[{index}].image_url.url must be text", f"{path}[{index}].image_url")
            why = picture_refusal(url)
            if why is not None:
                raise _Bad(f"{path}[{index}].image_url.url is not taken: {why}", f"{path}[{index}].image_url")
    return value


def _calls(value: Json, path: str) -> Json:
    if not isinstance(value, list):
        raise _Bad(f"{path} must be a list", path)
    for index, call in enumerate(value):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not isinstance(function, dict):
            raise _Bad(f"{path}[{index}] must have an id and a function", f"{path}[{index}]")
        if not isinstance(function.get("name"), str) or not isinstance(function.get("arguments"), str):
            raise _Bad(f"{path}[{index}].function must have a name and arguments, both text", f"{path}[{index}]")
    return value


def _tools(value: Mapping[str, Json]) -> tuple[Mapping[str, Json], ...]:
    tools = value.get("tools")
    legacy = value.get("functions")
    if tools is None and legacy is not None:
        if not isinstance(legacy, list):
            raise _Bad("functions must be a list", "functions")
        tools = [{"type": "function", "function": each} for each in legacy]
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise _Bad("tools must be a list", "tools")
    found: list[Mapping[str, Json]] = []
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(tool, dict) or not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise _Bad(f"tools[{index}] must be a function with a name", f"tools[{index}]")
        found.append(tool)
    return tuple(found)


# ---------------------------------------------------------------------- parameters


def _number(low: float, high: float) -> Callable[[Json], str | None]:
    def check(value: Json) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return "must be a number"
        return None if low <= value <= high else f"must be between {low:g} and {high:g}"

    return check


def _whole(low: int) -> Callable[[Json], str | None]:
    def check(value: Json) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        return None if value >= low else f"must be at least {low}"

    return check


def _kind(words: str, *kinds: type) -> Callable[[Json], str | None]:
    return lambda value: None if isinstance(value, kinds) else f"must be {words}"


def _stop(value: Json) -> str | None:
    texts = [value] if isinstance(value, str) else value
    fine = isinstance(texts, list) and len(texts) <= 16 and all(isinstance(text, str) for text in texts)
    return None if fine else "must be text or a list of texts"


_PARAMETERS: Mapping[str, Callable[[Json], str | None]] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "frequency_penalty": _number(-2, 2),
    "presence_penalty": _number(-2, 2),
    "repetition_penalty": _number(0, 10),
    "min_p": _number(0, 1),
    "top_k": _whole(-1),
    "seed": _whole(-(2**63)),
    "max_tokens": _whole(1),
    "max_completion_tokens": _whole(1),
    "stop": _stop,
    "logit_bias": _kind("an object", dict),
    "response_format": _kind("an object", dict),
    "tool_choice": _kind("text or an object", str, dict),
    "parallel_tool_calls": _kind("true or false", bool),
    "reasoning_effort": _kind("text", str),
    "verbosity": _kind("text", str),
    "user": _kind("text", str),
}
"""What is handed to the model as it came, and what each must be."""


def _parameters(value: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, check in _PARAMETERS.items():
        given = value.get(name)
        if given is None:
            continue
        complaint = check(given)
        if complaint:
            raise _Bad(f"{name} {complaint}", name)
        found[name] = given
    return found
