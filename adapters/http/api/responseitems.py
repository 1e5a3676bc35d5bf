"""The items of a response, and the parts in them: how each looks at ``/v1/responses``. Pure.

Source: OpenAI's API reference for responses, and the types of its Python SDK.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import orjson

from adapters.contract.base import Ended
from adapters.http.api.beside import logprobs_of
from adapters.http.api.facts import BY_US
from agent_core.jsonvalue import Json
from agent_core.model.made import DATA, FILES
from agent_core.turn.state import ActivityState
from agent_core.turn.view import Bubble

Item = dict[str, Json]

SERVER = "outspoken"
"""Whose tools an ``mcp_call`` is of."""
OVER = frozenset({ActivityState.DONE, ActivityState.FAILED, ActivityState.NOT_RUN, ActivityState.UNSURE})
"""States of calls that change no more."""
RESULT_CHARS = 20_000
"""So much of what a tool of the gateway's gave is shown."""


# ---------------------------------------------------------------------- what is said


def message_item(made: str, status: str, phase: str | None, content: list[Json], *, ours: bool) -> Item:
    item: Item = {"id": made, "type": "message", "role": "assistant", "status": status, "content": content}
    if phase is not None:
        item["phase"] = phase
    return {**item, "outspoken": BY_US} if ours else item


def text_part(text: str, annotations: Sequence[Json] = (), logprobs: Sequence[Json] = ()) -> Item:
    return {"type": "output_text", "text": text, "annotations": [*annotations], "logprobs": [*logprobs]}


def refusal_part(words: str) -> Item:
    return {"type": "refusal", "refusal": words}


def said_in(item: Mapping[str, Json]) -> str:
    """The text of a message."""
    parts = item["content"]
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))


def annotations_of(ended: Ended) -> list[Json]:
    """The sources of its words: what chat completions have in an object of their kind stands beside the kind here."""
    found = ended.made.get("annotations")
    told: list[Json] = []
    for entry in found if isinstance(found, list) else ():
        kind = entry.get("type") if isinstance(entry, dict) else None
        inner = entry.get(kind) if isinstance(entry, dict) and isinstance(kind, str) else None
        if kind == "url_citation":
            source = inner if isinstance(inner, dict) else entry if isinstance(entry, dict) else {}
            told.append(
                {
                    "type": "url_citation",
                    "url": str(source.get("url") or ""),
                    "title": str(source.get("title") or ""),
                    "start_index": _index(source.get("start_index")),
                    "end_index": _index(source.get("end_index")),
                }
            )
        elif isinstance(entry, dict):
            told.append({**entry, **(inner if isinstance(inner, dict) else {})})
    return told


def _index(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def logprobs_in(ended: Ended) -> list[Json]:
    """The probabilities of its words."""
    found = (logprobs_of(ended) or {}).get("content")
    return [_logprob(entry, top=True) for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _logprob(entry: Mapping[str, Json], *, top: bool) -> Json:
    token, octets, others = str(entry.get("token") or ""), entry.get("bytes"), entry.get("top_logprobs")
    told: Item = {
        "token": token,
        "bytes": octets if isinstance(octets, list) else [*token.encode()],
        "logprob": entry.get("logprob"),
    }
    if top:
        likely = [each for each in others if isinstance(each, dict)] if isinstance(others, list) else []
        told["top_logprobs"] = [_logprob(each, top=False) for each in likely]
    return told


# ---------------------------------------------------------------------- what is thought and made


def thought_item(made: str, status: str, text: str | None, sealed: str = "") -> Item:
    summary: list[Json] = [] if text is None else [{"type": "summary_text", "text": text}]
    item: Item = {"id": made, "type": "reasoning", "summary": summary, "status": status}
    return {**item, "encrypted_content": sealed} if sealed else item


def sound_of(ended: Ended) -> Item:
    """The sound that it made, as chat completions have it; empty if there is none."""
    for entry in _files(ended):
        if entry.get("kind") == "audio" and isinstance(entry.get(DATA), str):
            return {name: entry[name] for name in ("id", "expires_at", "transcript", DATA) if name in entry}
    return {}


def pictures_of(ended: Ended, mark: str) -> list[Item]:
    """The pictures that it made. Of one that only has an address, that stands beside the empty result."""
    items: list[Item] = []
    for entry in _files(ended):
        data, url = entry.get(DATA), entry.get("url")
        if entry.get("kind") != "image" or not (isinstance(data, str) or isinstance(url, str)):
            continue
        item: Item = {
            "id": f"ig_{mark}_{len(items)}",
            "type": "image_generation_call",
            "status": "completed",
            "result": data if isinstance(data, str) else None,
        }
        mime = str(entry.get("mime") or "").removeprefix("image/")
        if isinstance(data, str) and mime in ("png", "jpeg", "webp"):
            item["output_format"] = mime
        elif not isinstance(data, str):
            item["url"] = url
        items.append(item)
    return items


def _files(ended: Ended) -> list[dict[str, Json]]:
    files = ended.made.get(FILES)
    return [entry for entry in files if isinstance(entry, dict)] if isinstance(files, list) else []


# ---------------------------------------------------------------------- calls of tools


def own_call_item(made: str, call: Bubble) -> Item:
    """A call of the gateway's own tools, with what it gave."""
    over = call.state in OVER
    return {
        "id": made, "type": "mcp_call", "server_label": SERVER, "name": call.tool, "arguments": call.arguments or "{}",
        "output": _shortened(call.result) if over and call.state == ActivityState.DONE else None,
        "error": _tool_error(call), "approval_request_id": None, "status": _tool_status(call),
    }  # fmt: skip


def _shortened(result: str) -> str:
    if len(result) <= RESULT_CHARS:
        return result
    return f"{result[:RESULT_CHARS]}… ({len(result)} characters)"


def _tool_status(call: Bubble) -> str:
    match call.state:
        case ActivityState.DONE:
            return "completed"
        case ActivityState.FAILED:
            return "failed"
        case ActivityState.NOT_RUN | ActivityState.UNSURE:
            return "incomplete"
        case _:
            return "in_progress"


def _tool_error(call: Bubble) -> Json:
    match call.state:
        case ActivityState.FAILED:
            words = _shortened(call.result) or f"{call.tool} failed."
        case ActivityState.NOT_RUN:
            words = _shortened(call.result) or f"{call.tool} was not run."
        case ActivityState.UNSURE:
            words = f"{call.tool} may or may not have been done."
        case _:
            return None
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": words}]}


def input_of(arguments: str) -> str:
    """The text in a call of a tool that takes one."""
    try:
        value: Json = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments
    given = value.get("input") if isinstance(value, dict) else None
    return given if isinstance(given, str) else arguments


def tools_told(tools: Sequence[Mapping[str, Json]], custom: Collection[str], spaces: Mapping[str, Json]) -> list[Json]:
    """The client's tools, as it brought them."""
    told: list[Json] = []
    inner: dict[str, list[Json]] = {}
    for tool in tools:
        function = tool.get("function")
        found: Item = dict(function) if isinstance(function, dict) else {}
        flat, where = str(found.get("name")), spaces.get(str(found.get("name")))
        among = told
        if isinstance(where, list):
            space, found["name"] = str(where[0]), where[1]
            if space not in inner:
                inner[space] = []
                told.append({"type": "namespace", "name": space, "description": "", "tools": inner[space]})
            among = inner[space]
        if flat in custom:
            among.append({"type": "custom", "name": found["name"], "description": found.get("description")})
        else:
            among.append({"type": "function", "description": None, "parameters": None, "strict": None, **found})
    return told
