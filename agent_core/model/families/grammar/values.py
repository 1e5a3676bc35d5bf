"""Arguments that come as plain text, made what the tool's schema says they are; and JSON that is nearly JSON, read.

Families in the manner of XML write every argument as text. What it means follows from the schema: text stays text to the
letter; numbers, truth values, lists and objects are read as JSON, else as Python writes them, and stay text if they are neither,
so that the tool's own check complains of them. vLLM's parsers do the same (qwen3_coder, minimax_m2, glm4_moe).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from typing import cast

import orjson

from agent_core.jsonvalue import Json
from agent_core.model.families.grammar.notation import NotReadable, read_value
from agent_core.model.toolnames import meant

MAX_UNWRAPPED = 3
"""How often arguments may be encoded as a string inside a string."""
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_INTEGER = re.compile(r"[+-]?\d{1,4000}")


class Offered:
    """The tools that the model was offered, decoded when somebody asks."""

    def __init__(self, encoded: bytes = b"") -> None:
        self._encoded = encoded

    @cached_property
    def schemas(self) -> Mapping[str, Mapping[str, Json]]:
        """The properties of each tool's arguments, by its name."""
        if not self._encoded:
            return {}
        found: dict[str, Mapping[str, Json]] = {}
        decoded = cast("Json", orjson.loads(self._encoded))
        for tool in decoded if isinstance(decoded, list) else []:
            function = tool.get("function") if isinstance(tool, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if not isinstance(function, dict) or not isinstance(name, str):
                continue
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, dict) else None
            found[name] = properties if isinstance(properties, dict) else {}
        return found

    def value(self, tool: str, key: str, text: str) -> Json:
        """What `text` means as the argument `key` of `tool`."""
        properties = self.schemas.get(meant(tool, self.schemas))
        if properties is None:
            return text
        schema = properties.get(key)
        return converted(text, _types(schema if isinstance(schema, dict) else {}))


def _types(schema: Mapping[str, Json]) -> frozenset[str]:
    """The types that a schema allows; none if it says nothing of them."""
    kind = schema.get("type")
    found = {str(each).lower() for each in kind} if isinstance(kind, list) else set[str]()
    if isinstance(kind, str):
        found.add(kind.lower())
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        for option in options if isinstance(options, list) else []:
            if isinstance(option, dict):
                found |= _types(option)
    choices = schema.get("enum")
    if not found and isinstance(choices, list) and all(isinstance(choice, str) for choice in choices):
        found.add("string")
    return frozenset(found)


def converted(text: str, types: frozenset[str]) -> Json:
    """`text` as one of `types`; as it stands if it is none of them."""
    plain = text.strip()
    if "null" in types and plain.lower() in ("null", "none"):
        return None
    others = types - {"string", "null"}
    if "boolean" in others and plain.lower() in ("true", "false"):
        return plain.lower() == "true"
    if others & {"integer", "number"} and _INTEGER.fullmatch(plain):
        return int(plain)
    if types and not others & {"object", "array", "number", "integer"}:
        return text
    try:
        value = _parsed_loosely(plain)
    except ValueError:
        return text
    return value if not types or _is_a(value, types) else text


def _parsed_loosely(text: str) -> Json:
    try:
        value = parsed(text)
    except ValueError:
        try:
            return read_value(text)
        except NotReadable as error:
            raise ValueError(str(error)) from error
    if isinstance(value, str) and value[:1] in ("{", "["):  # a list that was written twice over
        try:
            return parsed(value)
        except ValueError:
            return value
    return value


def _is_a(value: Json, types: frozenset[str]) -> bool:
    match value:
        case bool():
            return "boolean" in types
        case int():
            return bool(types & {"integer", "number"})
        case float():
            return "number" in types
        case str():
            return "string" in types
        case list():
            return "array" in types
        case dict():
            return "object" in types
        case _:
            return True


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def parsed(text: str) -> Json:
    """The value of a JSON text. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:  # lone surrogates in escapes and deep nesting are beyond orjson, not beyond JSON
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _escaped(text: str) -> str:
    """`text` with the raw control characters inside its strings escaped."""
    return _STRING.sub(lambda found: _CONTROL.sub(lambda char: f"\\u{ord(char[0]):04x}", found[0]), text)


def decoded_string(text: str) -> str:
    """The value of a JSON string; empty if it is none."""
    try:
        value = parsed(_escaped(text))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def read_json(text: str) -> tuple[str, Json]:
    """The text of a JSON value, repaired if it must be, and the value. Raises ValueError."""
    try:
        return text, parsed(text)
    except ValueError:
        repaired = _escaped(text)
        if repaired == text:
            raise
        return repaired, parsed(repaired)


def object_text(text: str) -> str:
    """The text of the JSON object that arguments written as `text` mean. Raises ValueError if they mean none."""
    for _ in range(MAX_UNWRAPPED):
        text = text.strip()
        if not text:
            return "{}"
        repaired, value = read_json(text)
        if value is None:
            return "{}"
        if isinstance(value, dict):
            return repaired
        if not isinstance(value, str):
            break
        text = value
    raise ValueError("arguments are not an object")


def object_of(values: Mapping[str, Json]) -> str:
    """The JSON text of arguments that were read one by one."""
    return json.dumps(values, ensure_ascii=False)


def surely_unreadable(text: str) -> str:
    """`text` such that nobody takes it for arguments: it stands for a call that could not be read."""
    try:
        object_text(text)
    except ValueError:
        return text
    return f"{text}…"
