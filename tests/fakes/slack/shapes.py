"""Looking into JSON of which nothing is known: each of these gives the empty value if the shape is another one."""

from __future__ import annotations

import re

from tests.fakes.common import Json, JsonObject

_CONTROL = re.compile(r"<(?:[@#!]|[a-z]+:)[^<>\s|]+(?:\|[^<>]*)?>")


def as_object(value: Json) -> JsonObject:
    """An object."""
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    """An array."""
    return value if isinstance(value, list) else []


def as_text(value: Json) -> str:
    """A string."""
    return value if isinstance(value, str) else ""


def as_objects(value: Json) -> list[JsonObject]:
    """The objects of an array."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def dig(value: Json, *path: str | int) -> Json:
    """What lies at the end of a path of names and positions; None if it is not there."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def escaped(typed: str) -> str:
    """A text as Slack sends it: `&`, `<` and `>` are escaped, but for mentions (`<@U…>`, `<#C…>`, `<!here>`) and links (`<https://…>`), with a label or without.

    https://docs.slack.dev/messaging/formatting-message-text#escaping
    """
    parts: list[str] = []
    end = 0
    for found in _CONTROL.finditer(typed):
        parts += [_escape(typed[end : found.start()]), found.group()]
        end = found.end()
    return "".join([*parts, _escape(typed[end:])])


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescaped(text: str) -> str:
    """A text as a person reads it."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
