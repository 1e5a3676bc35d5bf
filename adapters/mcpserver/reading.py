"""The arguments of a call as they came: held against the tool's own schema, in words that help whoever sent them. Pure.

Law (tests/mcpserver/test_catalogue.py): whatever is sent, it is read or refused with words; nothing raises but `ArgumentsRefused`.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.mcpserver.catalogue import MOST_KEY, ServedTool
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import harmless
from agent_core.text.wellformed import storable


class ArgumentsRefused(Exception):
    """They do not fit; nothing was done."""


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """Arguments that fit."""

    texts: Mapping[str, str]
    numbers: Mapping[str, int]

    def text(self, name: str) -> str:
        """An empty text if it was not given."""
        return self.texts.get(name, "")


def read(tool: ServedTool, given: Mapping[str, Json]) -> ReadArguments:
    """The arguments of a call. Raises `ArgumentsRefused`."""
    texts: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for name, value in given.items():
        schema = tool.takes.get(name)
        if not isinstance(schema, dict):
            there = ", ".join(tool.takes)
            raise ArgumentsRefused(
                f"{tool.name} takes no argument {harmless(storable(name))[:60]!r}. It takes: {there}."
            )
        if value is None and name not in tool.needs:
            continue
        if schema["type"] == "integer":
            numbers[name] = _number(name, value, schema)
        else:
            texts[name] = _words(name, value, schema)
    for name in tool.needs:
        if not texts.get(name, "").strip():
            raise ArgumentsRefused(f"{tool.name} needs {name}, and it is empty or not there.")
    for name, schema in tool.takes.items():
        if isinstance(schema, dict) and isinstance(usual := schema.get("default"), int):
            numbers.setdefault(name, usual)
    return ReadArguments(texts, numbers)


def _words(name: str, value: Json, schema: Mapping[str, Json]) -> str:
    if not isinstance(value, str):
        raise ArgumentsRefused(f"{name} must be a text.")
    most = schema.get("maxLength")
    if isinstance(most, int) and len(value) > most:
        raise ArgumentsRefused(f"{name} has {len(value)} characters; {most} are possible.")
    a_name = isinstance(most, int) and most <= MOST_KEY
    if storable(value) != value or (a_name and any(ord(one) < 32 or ord(one) == 127 for one in value)):
        raise ArgumentsRefused(f"{name} holds characters that it cannot hold.")
    return value


def _number(name: str, value: Json, schema: Mapping[str, Json]) -> int:
    least, most = schema["minimum"], schema["maximum"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    number = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise ArgumentsRefused(f"{name} must be a whole number from {least} to {most}.")
    return number
