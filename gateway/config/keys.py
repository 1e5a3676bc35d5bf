"""The list of all configuration keys, read from the classes that hold them: for the reference, the template, and error messages.

Law: there is no second list. A key, its default, its range and its words are written once, where its section is.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from adapters.contract.settings import FromOutside, Unit, Usual
from agent_core.records import dataclass
from gateway.config.sections import schema
from gateway.config.types import PREFIX

Mark = TypeVar("Mark", FromOutside, Unit, Usual)

OTHER_VARIABLES: Mapping[str, str] = {
    "OUTSPOKEN_HOME": "One directory for everything: configuration, state, cache. Wins over all other places.",
    "OUTSPOKEN_CONFIG": "The configuration file, instead of the one in the usual place.",
    "OUTSPOKEN_KEY": "The key with which outspoken ask and outspoken chat call the gateway, instead of [server] api_key.",
}
"""Variables with our prefix that are no configuration keys."""

UNITS: Mapping[str, str] = {
    "seconds": "seconds",
    "minutes": "minutes",
    "days": "days",
    "bytes": "bytes",
    "chars": "characters",
    "tokens": "tokens",
    "money": "the currency",
    "share": "share, 0 to 1",
    "mib": "MiB",
    "kib": "KiB",
    "port": "port number",
}
"""What a number counts, by the end of its key. A key whose name does not say it is marked with its `Unit`."""


@dataclass(frozen=True)
class KeyDoc:
    """One key, in words. They are looked up when somebody asks for them: a start needs hardly any."""

    section: str
    key: str
    holder: type[BaseModel]
    """The class that holds it: of the section, or of a table in it."""

    @property
    def name(self) -> str:
        """``[section] key``."""
        return f"[{self.section}] {self.key}"

    @property
    def _field(self) -> FieldInfo:
        return self.holder.model_fields[self.key]

    def _mark(self, kind: type[Mark]) -> Mark | None:
        return next((item for item in self._field.metadata if isinstance(item, kind)), None)

    @cached_property
    def _outside(self) -> FromOutside:
        return self._mark(FromOutside) or FromOutside("", secret=False)

    @cached_property
    def _kind(self) -> str:
        return _kind(self._field.annotation)

    @property
    def type(self) -> str:
        """What kind of value it takes, with its range."""
        return self._kind + _range(self._field)

    @property
    def default(self) -> str:
        """As TOML; empty if it is not set."""
        return "" if self.required else to_toml(self._field.get_default(call_default_factory=True, validated_data={}))

    @cached_property
    def env(self) -> tuple[str, ...]:
        """The environment variables that set it; the first one that is set wins."""
        usual = self._mark(Usual)
        return (f"{PREFIX}{self.section}__{self.key}".upper(), *(usual.names if usual else ()))

    @property
    def description(self) -> str:
        """What it means, in a sentence."""
        return self._field.description or _words_below(self.holder, self.key)

    @property
    def example(self) -> str:
        """As TOML; empty if the default says enough."""
        return to_toml(self._field.examples[0]) if self._field.examples else ""

    @property
    def unit(self) -> str:
        """What a number counts; empty if it is none."""
        if not self._kind.startswith(("number", "whole number")):
            return ""
        marked = self._mark(Unit)
        return marked.words if marked else next((words for end, words in UNITS.items() if self.key.endswith(end)), "")

    @property
    def secret(self) -> bool:
        """Comes from the environment or from a file, never from the configuration file."""
        return self._outside.secret

    @property
    def file_key(self) -> str:
        """The key that names a file with the value; empty if there is none."""
        return self._outside.also

    @property
    def variable_key(self) -> str:
        """The key that names the variable with the value; empty if there is none."""
        return self._outside.variable

    @property
    def is_path(self) -> bool:
        """Names one file or directory, or several."""
        return self._kind in {"path", "list of paths"}

    @property
    def required(self) -> bool:
        """It has no default (only keys of tables in tables)."""
        return self._field.is_required()

    @cached_property
    def table(self) -> tuple[KeyDoc, ...]:
        """The keys of the tables that stand in it; they have no variables."""
        model = _model_in(self._field.annotation)
        return tuple(KeyDoc(self.section, key, model) for key in model.model_fields) if model else ()


def describe() -> list[KeyDoc]:
    """Every key in the order of the sections."""
    models = [(section, _model_in(field.annotation)) for section, field in schema().model_fields.items()]
    return list(_described(tuple((section, model) for section, model in models if model)))


@lru_cache(4)
def _described(sections: tuple[tuple[str, type[BaseModel]], ...]) -> tuple[KeyDoc, ...]:
    return tuple(KeyDoc(section, key, model) for section, model in sections for key in model.model_fields)


def first_sentence(holder: object) -> str:
    """The first sentence about a section, or about a table in it."""
    return (getattr(holder, "__doc__", None) or "").strip().splitlines()[0]


def section_words(section: str) -> str:
    """The first sentence about a section."""
    return first_sentence(schema().model_fields[section].annotation)


# --- the words below a key ---


@cache
def _classes(module: str) -> Mapping[str, ast.ClassDef]:
    """The classes of a module, as they are written. None where there are no sources, but bytecode alone."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError, KeyError):
        return {}
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _words_below(holder: type[BaseModel], key: str) -> str:
    """The text below a key of a class. Python forgets it, and pydantic's own way to keep it reads every source at each start."""
    for kind in holder.__mro__[: holder.__mro__.index(BaseModel)]:
        written = _classes(kind.__module__).get(kind.__name__)
        for here, below in pairwise(written.body if written else ()):
            match here, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))) if (
                    name == key
                ):
                    return " ".join(words.split())
                case _:
                    pass
    return ""


# --- kinds of values ---

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


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The class of a section, or of the tables in a key."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)


def _range(field: FieldInfo) -> str:
    """The limits of a number, in words."""
    bounds = {name: getattr(item, name) for item in field.metadata for name in ("ge", "le") if hasattr(item, name)}
    low, high = bounds.get("ge"), bounds.get("le")
    if low is None:
        return ""
    return f", at least {low:.12g}" if high is None else f", {low:.12g} to {high:.12g}"


def to_toml(value: object) -> str:
    """A value as it is written in TOML. None is empty, because TOML has no such value."""
    match value:
        case bool():
            return "true" if value else "false"
        case Enum():
            return to_toml(value.value)
        case int():
            return str(value)
        case float():
            return f"{value:g}"
        case str() | Path():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            items = cast("Mapping[str, object]", value).items()
            return "{" + ", ".join(f"{_toml_key(key)} = {to_toml(item)}" for key, item in items) + "}"
        case list() | tuple():
            return "[" + ", ".join(to_toml(item) for item in cast("Iterable[object]", value)) + "]"
        case _:
            assert value is None, type(value)
            return ""


def _toml_key(key: str) -> str:
    plain = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if plain else to_toml(key)


# --- the template ---


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
    section = ""
    for doc in describe():
        if doc.section != section:
            section = doc.section
            lines += [f"# {section_words(section)}", f"[{section}]", ""]
        lines += _commented(doc)
    return "\n".join(lines).rstrip("\n") + "\n"
