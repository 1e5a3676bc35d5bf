"""The list of all configuration keys, made from the classes that hold them: for the reference, the template, and error messages.

Law: there is no second list. A key, its default, its range and its words are written once, in gateway/config/sections.py.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gateway.config.budgets import ModelPrice
from gateway.config.schedule import Entry
from gateway.config.sections import Config, Fallback, KnownBadRow
from gateway.config.types import FromOutside, Usual

PREFIX = "OUTSPOKEN_"

OTHER_VARIABLES: Mapping[str, str] = {
    "OUTSPOKEN_HOME": "Directory that holds everything: configuration, state, cache. Wins over all other places.",
    "OUTSPOKEN_CONFIG": "The configuration file, instead of the one in the usual place.",
}
"""Variables with our prefix that are no configuration keys."""


@dataclass(frozen=True, slots=True)
class KeyDoc:
    """One key, in words."""

    section: str
    key: str
    type: str
    """What kind of value it takes, with its range."""
    default: str
    """As TOML; empty if it is not set."""
    env: tuple[str, ...]
    """The environment variables that set it; the first one that is set wins."""
    description: str
    example: str
    """As TOML; empty if the default says enough."""
    secret: bool
    """Comes from the environment or from a file, never from the configuration file."""
    file_key: str
    """The key that names a file with the value; empty if there is none."""
    is_path: bool
    """Names one file or directory, or several."""
    required: bool = False
    """It has no default (only keys of tables in tables)."""

    @property
    def name(self) -> str:
        """``[section] key``."""
        return f"[{self.section}] {self.key}"


def variable(section: str, key: str) -> str:
    """The environment variable of a key."""
    return f"{PREFIX}{section}__{key}".upper()


def to_toml(value: object) -> str:
    """A value as it is written in TOML. None is empty, because TOML has no such value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Enum):
        return to_toml(value.value)
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return "{" + ", ".join(f"{_toml_key(key)} = {to_toml(item)}" for key, item in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(to_toml(item) for item in cast("Iterable[object]", value)) + "]"
    assert value is None, type(value)
    return ""


def _toml_key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if plain else to_toml(key)


_KINDS: tuple[tuple[type, str, str], ...] = (
    (bool, "true or false", ""),
    (int, "whole number", "whole numbers"),
    (float, "number", "numbers"),
    (str, "text", "texts"),
    (date, "date", "dates"),
    (Path, "path", "paths"),
    (SecretStr, "secret", "secrets"),
    (BaseModel, "table", "names or tables"),
)


def _kind(annotation: object, *, several: bool = False) -> str:
    """What kind of value a key takes, in words."""
    origin = get_origin(annotation)
    arguments = [argument for argument in get_args(annotation) if argument not in {type(None), Ellipsis}]
    if origin in {Union, UnionType, Annotated}:
        return _kind(arguments[0], several=several)
    if origin is tuple:
        return f"list of {_kind(arguments[0], several=True)}"
    if origin is not None:
        return "table"
    assert isinstance(annotation, type), annotation
    if issubclass(annotation, Enum):
        return "one of " + ", ".join(str(member.value) for member in annotation)
    return next((many if several else one) for kind, one, many in _KINDS if issubclass(annotation, kind))


def _range(field: FieldInfo) -> str:
    """The limits of a number, in words."""
    bounds = {name: getattr(item, name) for item in field.metadata for name in ("ge", "le") if hasattr(item, name)}
    low, high = bounds.get("ge"), bounds.get("le")
    if low is None:
        return ""
    return f", at least {low:.12g}" if high is None else f", {low:.12g} to {high:.12g}"


def _doc(section: str, key: str, field: FieldInfo) -> KeyDoc:
    usual = next((item.names for item in field.metadata if isinstance(item, Usual)), ())
    outside = next((item for item in field.metadata if isinstance(item, FromOutside)), None)
    kind = _kind(field.annotation)
    required = field.is_required()
    default: object = None if required else field.get_default(call_default_factory=True, validated_data={})
    examples: list[object] = field.examples or []
    return KeyDoc(
        section=section,
        key=key,
        type=kind + _range(field),
        default=to_toml(default),
        env=(variable(section, key), *usual),
        description=field.description or "",
        example=to_toml(examples[0]) if examples else "",
        secret=outside is not None and outside.secret,
        file_key=outside.also if outside else "",
        is_path=kind in {"path", "list of paths"},
        required=required,
    )


@cache
def _described() -> tuple[KeyDoc, ...]:
    docs: list[KeyDoc] = []
    for section, holder in Config.model_fields.items():
        model = holder.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        docs += [_doc(section, key, field) for key, field in model.model_fields.items()]
    return tuple(docs)


def describe() -> list[KeyDoc]:
    """Every key in the order of the sections."""
    return list(_described())


def forget() -> None:
    """Look at the classes anew: a section was added."""
    _described.cache_clear()


_TABLES: Mapping[tuple[str, str], type[BaseModel]] = {
    ("model", "fallbacks"): Fallback,
    ("model", "known_bad"): KnownBadRow,
    ("budgets", "prices"): ModelPrice,
    ("schedule", "entries"): Entry,
}


def table_keys(section: str, key: str) -> tuple[str, ...]:
    """The keys that one table of a list of tables may have."""
    found = _TABLES.get((section, key))
    return tuple(found.model_fields) if found is not None else ()


@cache
def describe_tables() -> Mapping[tuple[str, str], tuple[str, tuple[KeyDoc, ...]]]:
    """The tables that stand in a key of their own, by section and key: what one is, and its keys. They have no variables."""
    return {
        (section, key): (
            (model.__doc__ or "").strip().splitlines()[0],
            tuple(_doc(section, name, field) for name, field in model.model_fields.items()),
        )
        for (section, key), model in _TABLES.items()
    }


def section_words(section: str) -> str:
    """The first sentence about a section."""
    model = Config.model_fields[section].annotation
    return (getattr(model, "__doc__", None) or "").strip().splitlines()[0]


def _commented(doc: KeyDoc) -> list[str]:
    variables = " or ".join(doc.env)
    lines = textwrap.wrap(doc.description, 110, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    if doc.secret:
        return [*lines, f"# Not in this file: set {variables}, or name a file by {doc.file_key}.", ""]
    lines.append(f"# {doc.type[0].upper()}{doc.type[1:]}. Environment: {variables}")
    if doc.example:
        return [*lines, "# Not set by default; for example:", f"#{doc.key} = {doc.example}", ""]
    return [*lines, f"#{doc.key} = {doc.default}", ""]


def template() -> str:
    """A commented ``outspoken.toml`` that changes nothing: every key with its default behind a ``#``."""
    lines = [
        "# outspoken.toml – every key that there is, with its default. Take the # before a key away to change it.",
        "# Environment variables win over this file, and so does a file .env beside it.",
        "# Secrets do not belong in here; each says where it is looked for.",
        "",
    ]
    for section in Config.model_fields:
        lines += [f"# {section_words(section)}", f"[{section}]", ""]
        for doc in _described():
            if doc.section == section:
                lines += _commented(doc)
    return "\n".join(lines).rstrip("\n") + "\n"
