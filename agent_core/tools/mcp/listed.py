"""The tools that a server lists, as far as they can be offered to a model. Pure.

What a server says is not trusted: a list has an end, names and descriptions are put into characters that can be seen, and a schema is given to the
model within bounds. What is checked here of a call's arguments is the first level alone (`skeleton`): a server's schema may hold patterns
that take for ever to match, and references that lead in circles or to other machines. The server checks the rest itself.

Laws (tests/mcp/test_listed.py): whatever is read, what comes out is bounded and can be sent; a skeleton has no pattern,
no reference and one level, and takes every arguments that the whole schema takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import harmless
from agent_core.text.wellformed import storable

MOST_TOOLS = 128
"""No provider takes more in one request."""
NAME_CHARS = 200
WORDS_CHARS = 1_024
SCHEMA_BYTES = 20_000
OURS = "outspoken"
"""In a kept tool: it is not the server's."""
SCHEMA_DEPTH = 24
MOST_PROPERTIES = 200
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server lists it."""

    name: str
    description: str
    parameters: Mapping[str, Json]
    read_only: bool = False
    destructive: bool = False
    """Said in so many words."""
    idempotent: bool = False
    resources: str = ""
    """It is one of ours, about what the server has to read: list or read."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server can do."""

    tools: tuple[ServerTool, ...] = ()
    left_out: tuple[str, ...] = ()
    """What of it cannot be offered, and why, in words for operators."""


def read_listing(raw: Sequence[Json], before: Sequence[str] = ()) -> Listing:
    """The tools of a list as it came; `before`: why something of it was left out on its way here."""
    tools: dict[str, ServerTool] = {}
    left_out: list[str] = [*before[:MOST_TOOLS]]
    for one in raw[:MOST_TOOLS]:
        found = _read(one)
        if isinstance(found, str):
            left_out.append(found)
        elif found.name in tools:
            left_out.append(f"{found.name} is listed twice; the first one counts")
        else:
            tools[found.name] = found
    if len(raw) > MOST_TOOLS:
        left_out.append(f"{len(raw) - MOST_TOOLS} tools beyond the first {MOST_TOOLS}, more than any model is offered")
    return Listing(tuple(tools.values()), tuple(left_out))


def written(tool: ServerTool) -> dict[str, Json]:
    """The tool as it can be kept; `read_listing` reads it back."""
    hints: dict[str, Json] = {
        "readOnlyHint": tool.read_only,
        "destructiveHint": tool.destructive,
        "idempotentHint": tool.idempotent,
    }
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": dict(tool.parameters),
        "annotations": hints,
        **({OURS: tool.resources} if tool.resources else {}),
    }


def kept_listing(raw: Sequence[Json]) -> Listing:
    """The same of a list that we wrote."""
    found = read_listing(raw)
    ours = {str(one.get("name")): str(one[OURS]) for one in raw if isinstance(one, dict) and one.get(OURS)}
    return replace(found, tools=tuple(replace(one, resources=ours.get(one.name, "")) for one in found.tools))


def as_agreed(raw: Json) -> dict[str, Json] | str:
    """A tool as the protocol says it is listed, with what is used of it; in words why there is none."""
    if not isinstance(raw, dict):
        return "something that is no tool"
    name = raw.get("name")
    if not isinstance(name, str) or not name or len(name) > NAME_CHARS or storable(name) != name:
        return "a tool without a usable name"
    given = raw.get("inputSchema")
    schema: Json = {} if given is None else given
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return f"{harmless(name)}: its arguments are no object"
    words: dict[str, Json] = {key: raw[key] for key in ("title", "description") if isinstance(raw.get(key), str)}
    hints = raw.get("annotations")
    said: dict[str, Json] = (
        {key: hints[key] for key in HINTS if isinstance(hints.get(key), bool)} if isinstance(hints, dict) else {}
    )
    return {"name": name, **words, "inputSchema": {**schema, "type": "object"}, "annotations": said}


def _read(raw: Json) -> ServerTool | str:
    agreed = as_agreed(raw)
    if isinstance(agreed, str):
        return agreed
    name, schema, said = str(agreed["name"]), agreed["inputSchema"], agreed["annotations"]
    assert isinstance(schema, dict)
    assert isinstance(said, dict)
    shown = harmless(name)
    if not _within(schema, SCHEMA_DEPTH):
        return f"{shown}: the schema of its arguments is nested too deeply"
    try:
        size = len(orjson.dumps(schema))
    except (TypeError, ValueError):
        return f"{shown}: the schema of its arguments cannot be sent"
    if size > SCHEMA_BYTES:
        return f"{shown}: the schema of its arguments has {size} bytes, more than {SCHEMA_BYTES}"
    properties = schema.get("properties")
    whole = {**schema, "type": "object", "properties": properties if isinstance(properties, dict) else {}}
    return ServerTool(
        name,
        _words(agreed),
        whole,
        read_only=said.get("readOnlyHint") is True,
        destructive=said.get("destructiveHint") is True,
        idempotent=said.get("idempotentHint") is True,
    )


def _words(raw: Mapping[str, Json]) -> str:
    """What a tool is for; the model has to be told something."""
    for key in ("description", "title", "name"):
        said = raw.get(key)
        if isinstance(said, str) and said.strip():
            text = harmless(storable(said.strip()))
            return text if len(text) <= WORDS_CHARS else f"{text[: WORDS_CHARS - 2]} …"
    return "No description."


def _within(value: Json, depth: int) -> bool:
    if depth == 0:
        return not isinstance(value, dict | list)
    if isinstance(value, dict):
        return all(_within(one, depth - 1) for one in value.values())
    return all(_within(one, depth - 1) for one in value) if isinstance(value, list) else True


def skeleton(schema: Mapping[str, Json]) -> dict[str, Json]:
    """What of a schema is checked before a call: which arguments there are, which are needed, and the types that are said outright."""
    given = schema.get("properties")
    properties = given if isinstance(given, dict) else {}
    kept: dict[str, Json] = {name: _outline(one) for name, one in list(properties.items())[:MOST_PROPERTIES]}
    needed = schema.get("required")
    out: dict[str, Json] = {"type": "object", "properties": kept}
    if isinstance(needed, list):
        out["required"] = [one for one in needed[:MOST_PROPERTIES] if isinstance(one, str)]
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    if closed and len(kept) == len(properties):
        out["additionalProperties"] = False
    return out


def _outline(schema: Json) -> Json:
    """An argument's type, and its values if they are few and plain."""
    out: dict[str, Json] = {}
    if not isinstance(schema, dict) or "$ref" in schema:
        return out
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kinds and all(isinstance(one, str) and one in _TYPES for one in kinds):
        out["type"] = list(dict.fromkeys(str(one) for one in kinds))
    values = schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= MOST_PROPERTIES and all(isinstance(one, str) for one in values):
        out["enum"] = list(dict.fromkeys(str(one) for one in values))
    return out
