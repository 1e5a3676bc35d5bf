"""Parses the body of a chat completion request, once, at the edge: bytes in, `ChatRequest` or `Problem` out. Pure.

What becomes of each field is in `fields`; here is what the gateway itself uses.

Laws (tests/adapters/test_openai_request.py): it never raises, whatever the bytes; whatever is wrong is named by its path; every message that came
is told to the model, also a result whose call is not there and one by the assistant or the system at the end.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias

import orjson

from adapters.http.common import Problem
from adapters.http.consent import AllowedTools, Wish, allowed_tools, named_choice, wish_of
from adapters.http.entrance import NotJson, json_of
from adapters.http.fields import CHAT, MESSAGES, PARTS, TOOLS, FieldFate, kind_refusal, sort
from agent_core.jsonvalue import Json
from agent_core.messages import ANY_MODEL, GATEWAY_PREFIX, THOUGHTS, InputMessage, Message, is_void
from agent_core.records import dataclass
from agent_core.tools.web.addresses import picture_refusal

MAX_MESSAGES = 10_000
USER_CHARS = 200
GO_ON = (
    f"{GATEWAY_PREFIX} Your last message is to be continued. Go on exactly where it stopped, beginning with the very next character, without "
    "repeating anything. If it was complete, say what comes next."
)
ANSWER = f"{GATEWAY_PREFIX} Answer now, as the instructions say."


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
    wish: Wish
    """Whose tools it agrees to, and whether it is a front end's own errand."""
    left_out: tuple[str, ...]
    """Fields of messages that say nothing to a model."""
    digest: str
    """Of the whole body, for idempotent retries."""

    def split(self) -> tuple[tuple[Message, ...], tuple[InputMessage, ...]]:
        """(what came before, the messages to answer): the trailing messages of the person and of the client's tools. Behind words of the
        assistant's or the system's a word of the gateway's stands for them."""
        messages = self.messages
        while messages[1:] and is_void(messages[-1]):  # the place that a front end keeps for the answer
            messages = messages[:-1]
        cut = len(messages)
        while cut and messages[cut - 1]["role"] in ("user", "tool"):
            cut -= 1
        if cut == len(messages):
            words = GO_ON if messages[-1]["role"] == "assistant" else ANSWER
            return messages, (InputMessage(words),)
        return messages[:cut], tuple(_input(message) for message in messages[cut:])


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
    found = sort(value, CHAT)
    if found.complaint is not None:
        bad = found.complaint
        raise _Bad(f"{bad.name} {bad.words}", bad.name, bad.code or None)
    tools, choice = _tools(value), _choice(value)
    parameters = {
        **found.passed,
        **({"user": user} if user else {}),
        **({} if choice is None else {"tool_choice": choice}),
    }
    messages, left_out = _messages(value.get("messages"))
    wish = wish_of(
        own or {}, tools, choice, emptied=value.get("tools", value.get("functions")) == [], messages=messages
    )
    if isinstance(wish, str):
        raise _Bad(wish, "outspoken")
    allowed = allowed_tools(choice)
    if isinstance(allowed, str):
        raise _Bad(allowed, "tool_choice")
    if allowed is not None:
        tools = _only(tools, allowed, others=wish.tools.gateways)
        parameters["tool_choice"] = allowed.mode
    if (named := named_choice(choice)) and tools and not wish.tools.gateways and named not in map(_name_of, tools):
        raise _Bad(f"tool_choice names {named!r}, which is none of the tools.", "tool_choice")
    return ChatRequest(
        model=_text(value, "model", "model"),
        messages=messages,
        stream=_flag(value, "stream"),
        include_usage=_flag(options or {}, "include_usage", "stream_options.include_usage"),
        tools=tools,
        parameters=parameters,
        client_output_limit="max_tokens" in parameters or "max_completion_tokens" in parameters,
        session=session,
        user=user,
        wish=wish,
        left_out=left_out,
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


def _messages(value: Json) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages, and which of their fields say nothing to a model."""
    if not isinstance(value, list) or not value:
        raise _Bad("messages must be a list with at least one message", "messages")
    if len(value) > MAX_MESSAGES:
        raise _Bad(f"messages has more than {MAX_MESSAGES} entries", "messages")
    left_out: dict[str, None] = {}
    older = _OlderCalls()
    messages: list[Message] = []
    for index, entry in enumerate(value):
        message = _message(entry, f"messages[{index}]", left_out)
        messages.append(older.told(message, index))
    return tuple(messages), tuple(left_out)


class _OlderCalls:
    """Calls and results in the older spelling, which have no ids: a result belongs to the latest call of its name."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def told(self, message: Message, index: int) -> Message:
        """The message in today's spelling."""
        call = message.pop("function_call", None)
        if isinstance(call, dict) and not message.get("tool_calls"):
            name = str(call["name"])
            self._open[name] = f"call_of_{index}"
            message["tool_calls"] = [{"id": self._open[name], "type": "function", "function": call}]
        if message["role"] == "function":
            message["role"] = "tool"
            message["tool_call_id"] = self._open.pop(str(message.get("name", "")), f"result_of_{index}")
        return message


def _message(value: Json, path: str, left_out: dict[str, None]) -> Message:
    if not isinstance(value, dict):
        raise _Bad(f"{path} must be an object", path)
    role = value.get("role")
    if not isinstance(role, str) or role not in MESSAGES:
        raise _Bad(f"{path}.role must be one of: {', '.join(sorted(MESSAGES))}", f"{path}.role")
    message: Message = {"role": role}
    for name, given in value.items():
        row = MESSAGES[role].get(name)
        if row is None and given is not None:
            left_out[f"messages[].{name}"[:80]] = None
        elif row is not None and row.fate is FieldFate.PASSED and given is not None:
            message[name] = given
    if isinstance(message.get("name", ""), str) is False:
        raise _Bad(f"{path}.name must be text", f"{path}.name")
    content = value.get("content")
    if content is None and role == "assistant" and isinstance(value.get("refusal"), str):
        content = value["refusal"]
    if content is None and role != "assistant":
        raise _Bad(f"{path}.content is missing", f"{path}.content")
    message["content"] = _content(content, f"{path}.content")
    if role == "assistant":
        _said(message, value, path)
    if role == "tool":
        call = value.get("tool_call_id")
        if not isinstance(call, str) or not call:
            raise _Bad(f"{path}.tool_call_id is missing", f"{path}.tool_call_id")
        message["tool_call_id"] = call
    return message


def _said(message: Message, value: Mapping[str, Json], path: str) -> None:
    """What is peculiar to the assistant's messages: calls, and thoughts."""
    calls, older = value.get("tool_calls"), value.get("function_call")
    if calls:
        message["tool_calls"] = _calls(calls, f"{path}.tool_calls")
    elif older:
        if not isinstance(older, dict) or not _is_function(older):
            raise _Bad(f"{path}.function_call must have a name and arguments, both text", f"{path}.function_call")
        message["function_call"] = older
    elif message["content"] is None:
        message["content"] = ""
    if thoughts := _thoughts(value):
        message[THOUGHTS] = thoughts


def _thoughts(value: Mapping[str, Json]) -> dict[str, Json]:
    """What a client hands back of a reply's thoughts, as the history carries it. Which model thought so nobody says."""
    found: dict[str, Json] = {}
    for name in ("reasoning_content", "reasoning"):
        if isinstance(value.get(name), str) and value[name]:
            found = {"field": name, "text": value[name]}
            break
    for name in ("reasoning_details", "thinking_blocks"):
        pieces = value.get(name)
        if isinstance(pieces, list) and pieces and all(isinstance(piece, dict) for piece in pieces):
            found[name] = pieces
    beside = value.get("extra_content")
    if isinstance(beside, dict) and beside:
        found["beside"] = {"extra_content": beside}
    return {"endpoint": ANY_MODEL, "model": ANY_MODEL, **found} if found else {}


def _content(value: Json, path: str) -> Json:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise _Bad(f"{path} must be text or a list of parts", path)
    return [_part(part, f"{path}[{index}]") for index, part in enumerate(value)]


def _part(part: Json, path: str) -> Json:
    kind = part.get("type") if isinstance(part, dict) else None
    why = kind_refusal(kind, PARTS)
    if not isinstance(part, dict) or why is not None:
        raise _Bad(f"{path}{why or ' must be an object'}", path)
    if kind == "text" and not isinstance(part.get("text"), str):
        raise _Bad(f"{path}.text must be text", f"{path}.text")
    if kind == "refusal":
        if not isinstance(part.get("refusal"), str):
            raise _Bad(f"{path}.refusal must be text", f"{path}.refusal")
        return {"type": "text", "text": part["refusal"]}
    if kind in ("image_url", "video_url"):
        picture = part.get(kind)
        url = picture.get("url") if isinstance(picture, dict) else None
        if not isinstance(url, str):
            raise _Bad(f"{path}.{kind}.url must be text", f"{path}.{kind}")
        why = picture_refusal(url)
        if why is not None:
            raise _Bad(f"{path}.{kind}.url is not taken: {why}", f"{path}.{kind}")
    return part


def _is_function(value: Mapping[str, Json]) -> bool:
    return isinstance(value.get("name"), str) and isinstance(value.get("arguments"), str)


def _calls(value: Json, path: str) -> Json:
    if not isinstance(value, list):
        raise _Bad(f"{path} must be a list", path)
    read: list[Json] = []
    for index, call in enumerate(value):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(call, dict) or not isinstance(call.get("id"), str) or not isinstance(function, dict):
            raise _Bad(f"{path}[{index}] must have an id and a function", f"{path}[{index}]")
        if not _is_function(function):
            raise _Bad(f"{path}[{index}].function must have a name and arguments, both text", f"{path}[{index}]")
        # as a stream was put together by programs that keep its numbers, and leave out what goes without saying; strict servers refuse both
        read.append({"type": "function", **{key: given for key, given in call.items() if key != "index"}})
    return read


# ---------------------------------------------------------------------- tools


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
        if isinstance(tool, dict) and tool.get("type") is not None and (why := kind_refusal(tool["type"], TOOLS)):
            raise _Bad(f"tools[{index}]{why}", f"tools[{index}]")
        if not isinstance(tool, dict) or not _name_of(tool):
            raise _Bad(f"tools[{index}] must be a function with a name", f"tools[{index}]")
        found.append(tool)
    names = Counter(map(_name_of, found))
    if twice := next((name for name, times in names.items() if times > 1), ""):
        raise _Bad(f"tools has two functions called {twice[:80]!r}.", "tools")
    return tuple(found)


def _only(
    tools: tuple[Mapping[str, Json], ...], allowed: AllowedTools, *, others: bool
) -> tuple[Mapping[str, Json], ...]:
    """The tools that are allowed. A slip in a name would otherwise be an answer without that tool; `others` are offered beside these, and may be meant."""
    missing = [name for name in allowed.names if name not in map(_name_of, tools)]
    if missing and not (tools and others):
        shown = ", ".join(repr(name[:80]) for name in missing[:5])
        raise _Bad(
            f"tool_choice allows {shown}, which {'is' if len(missing) == 1 else 'are'} none of the tools.",
            "tool_choice",
        )
    return tuple(tool for tool in tools if _name_of(tool) in allowed.names)


def _name_of(tool: Mapping[str, Json]) -> str:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else None
    return name if isinstance(name, str) else ""


def _choice(value: Mapping[str, Json]) -> Json:
    """tool_choice, also in its older spelling."""
    older = value.get("function_call")
    if value.get("tool_choice") is not None or older is None:
        return value.get("tool_choice")
    if isinstance(older, str):
        return older
    return {"type": "function", "function": {"name": older.get("name") if isinstance(older, dict) else None}}
