"""Values that fit a JSON schema: what the rehearsal model gives tools as arguments, and who asks for data as an answer. Pure.

Law (tests/agent_core/model/test_rehearsal.py): the value fits its schema, as far as that says types, properties, choices, bounds and references.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.jsonvalue import Json

DEPTH = 12
_FORMATS = {
    "date": "2026-11-23", "date-time": "2026-11-23T12:00:00Z", "time": "12:00:00Z", "email": "rehearsal@example.org",
    "uri": "https://example.org/", "uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1",
}  # fmt: skip


def sample(schema: Json, name: str = "", root: Json = None, depth: int = 0) -> Json:
    """A value for the schema; `name` is of the property that it is for."""
    if not isinstance(schema, dict) or depth > DEPTH:
        return name or "rehearsed"
    root = schema if root is None else root
    if isinstance(ref := schema.get("$ref"), str):
        return sample(_found(root, ref), name, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[0]
    if isinstance(parts := schema.get("allOf"), list):
        merged: dict[str, Json] = {
            key: value for part in parts if isinstance(part, dict) for key, value in part.items()
        }
        return sample(
            {**merged, **{key: value for key, value in schema.items() if key != "allOf"}}, name, root, depth + 1
        )
    for several in ("anyOf", "oneOf"):
        if isinstance(ways := schema.get(several), list) and ways:
            return sample(ways[0], name, root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    return _of_kind(kind or ("object" if "properties" in schema else "string"), schema, name, root, depth)


def _of_kind(kind: Json, schema: Mapping[str, Json], name: str, root: Json, depth: int) -> Json:
    match kind:
        case "object":
            known, wanted = schema.get("properties"), schema.get("required")
            known = known if isinstance(known, dict) else {}
            names = [str(each) for each in wanted] if isinstance(wanted, list) else list(known)
            return {each: sample(known.get(each), each, root, depth + 1) for each in names}
        case "array":
            least = schema.get("minItems")
            number = least if isinstance(least, int) else 1
            return [sample(schema.get("items"), name, root, depth + 1) for _ in range(min(number, 100))]
        case "integer" | "number":
            low, high = schema.get("minimum"), schema.get("maximum")
            value = max(1, low) if isinstance(low, int | float) else 1
            return min(value, high) if isinstance(high, int | float) else value
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return _text(schema, name)


def _text(schema: Mapping[str, Json], name: str) -> str:
    words = _FORMATS.get(str(schema.get("format")), f"rehearsed {name}".strip())
    least, most = schema.get("minLength"), schema.get("maxLength")
    words = words.ljust(least, ".") if isinstance(least, int) else words
    return words[:most] if isinstance(most, int) else words


def _found(root: Json, ref: str) -> Json:
    """What a reference within the schema leads to."""
    found = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        if part:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found
