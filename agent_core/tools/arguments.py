"""The arguments of a call as the model wrote them, read: by whoever runs the call, and by whoever shows it. Pure."""

from __future__ import annotations

import contextlib
import json

import orjson

from agent_core.jsonvalue import Json
from agent_core.text.wellformed import well_formed

COMPLAINT_CHARS = 500
QUOTED_CHARS = 2_000


def parsed(text: str) -> dict[str, Json] | str:
    """The arguments as an object, or a complaint."""
    value: Json
    if not text.strip():
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(text, strict=False)
            # It lets halves of surrogate pairs and numbers that are none (NaN, Infinity) through, which nothing after it takes.
            value = json.loads(well_formed(json.dumps(value, ensure_ascii=False, allow_nan=False)))
        except (ValueError, RecursionError) as error:
            return f"they are no valid JSON: {error}"[:COMPLAINT_CHARS]
    if isinstance(value, str):
        return parsed(value) if value.strip().startswith("{") else "they must be a JSON object"
    if value is None:
        return {}
    return value if isinstance(value, dict) else "they must be a JSON object"


def for_programs(text: str) -> str:
    """The arguments as any program reads them: as they stand if they are an object; what we can read as one and a strict program cannot (line breaks
    inside of words, halves of characters, the object as text within text) is spelt anew; all else stays, it may be what a tool takes."""
    value: Json = None
    with contextlib.suppress(orjson.JSONDecodeError):
        value = orjson.loads(text)
    if isinstance(value, dict):
        return text
    value = parsed(text)
    return text if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def spelt_well(text: str) -> str:
    """The arguments as a JSON object, as they stand if they are one. What is none is quoted in one: its model sees what it wrote."""
    try:
        if isinstance(orjson.loads(text), dict):
            return text
    except orjson.JSONDecodeError:
        pass
    value = parsed(text)
    return json.dumps({"unreadable": text[:QUOTED_CHARS]} if isinstance(value, str) else value, ensure_ascii=False)
