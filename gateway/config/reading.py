"""The configuration: read from all its places, checked, and told in words.

Four places say what a key is, and the first one that says anything about it wins:

1. environment variables: ``OUTSPOKEN_<SECTION>__<KEY>``, then the name that other programs use (``OPENAI_API_KEY``);
2. a file ``.env`` beside the configuration file, for variables that are not set;
3. systemd's credentials (``CREDENTIALS_DIRECTORY``), for secrets, under the name of the variable;
4. the TOML file.

Each secret may also stand in a file of its own that a key ``…_file`` names (variable ``…_FILE``). An empty variable counts as
not set, because container tools set variables that way which nobody filled in.

Laws: unknown keys and variables are refused, with the nearest known name; all problems are told at once, each with its file
and line or its variable; a secret in the TOML file is refused; no message holds a value; nothing is taken from the process's
own environment but what the caller hands over.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import InitSettingsSource

from agent_core.text.redaction import MASK, Redactor, is_secret_name
from gateway.config.keys import OTHER_VARIABLES, PREFIX, KeyDoc, describe, table_keys, template
from gateway.config.sections import (
    ASSUMED_CONTEXT_TOKENS,
    OPENAI_URL,
    Config,
    Fallback,
    Guardrails,
    Log,
    Model,
    ModelChoice,
    Recovery,
    Server,
    Sessions,
    Storage,
    Tools,
)
from gateway.config.sources import (
    Problem,
    TomlFile,
    Unreadable,
    Variables,
    read_dotenv,
    read_toml,
    read_value_file,
    readable_by_all,
)
from gateway.config.types import Disconnect, LogFormat, LogLevel, SessionPolicy, is_loopback, named_tables

__all__ = [
    "ASSUMED_CONTEXT_TOKENS",
    "OPENAI_URL",
    "OTHER_VARIABLES",
    "Config",
    "ConfigError",
    "Disconnect",
    "Fallback",
    "Guardrails",
    "KeyDoc",
    "Loaded",
    "Log",
    "LogFormat",
    "LogLevel",
    "Model",
    "ModelChoice",
    "Problem",
    "Recovery",
    "Server",
    "SessionPolicy",
    "Sessions",
    "Storage",
    "Survey",
    "Tools",
    "describe",
    "is_loopback",
    "load",
    "redacted",
    "secret_values",
    "survey",
    "template",
]

Key = tuple[str, str]
"""Section and key."""


class ConfigError(Exception):
    """The configuration cannot be used. `str` is a list of problems in words for a person, and holds no value."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        head = (
            "The configuration has a problem:"
            if len(problems) == 1
            else f"The configuration has {len(problems)} problems:"
        )
        super().__init__("\n".join([head, *(f"  - {problem}" for problem in self.problems)]))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and where it came from."""

    config: Config
    file: Path | None
    """The TOML file that was read; None if there was none."""
    origins: Mapping[Key, str]
    """Where each key that is not at its default was set: ``file:line`` or a variable."""
    warnings: tuple[str, ...]
    """Sentences for a person; nothing of it stops the start."""
    environment: Mapping[str, str] = field(repr=False)
    """What was handed over, and below it what ``.env`` adds (also proxies and certificates)."""


def load(config_file: Path | None, env: Mapping[str, str], *, required: bool = False) -> Loaded:
    """Read, merge and check the configuration.

    `config_file` may be missing unless `required`. `env` is the whole environment, usually ``os.environ``. Raises
    `ConfigError` with every problem that was found.
    """
    return _Loader(config_file, env, required=required).load()


@dataclass(frozen=True, slots=True)
class Survey:
    """What can be said of a configuration that may be wrong."""

    config: Config
    """What is sound of it; a section that is not is at its defaults."""
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    unsound: frozenset[str]
    """The sections that are at their defaults for that."""


def survey(config_file: Path | None, env: Mapping[str, str], *, required: bool = False) -> Survey:
    """`load` for looking: it never raises, so that one wrong key does not hide what else is wrong."""
    return _Loader(config_file, env, required=required).survey()


@dataclass(slots=True)
class _Layer:
    """What one of the four places says."""

    base: Path
    """Relative paths begin here."""
    values: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    places: dict[Key, str] = field(default_factory=dict[Key, str])

    def has(self, doc: KeyDoc, key: str = "") -> bool:
        return (doc.section, key or doc.key) in self.places

    def get(self, doc: KeyDoc, key: str = "") -> object:
        return self.values[doc.section][key or doc.key]

    def put(self, doc: KeyDoc, value: object, where: str) -> None:
        self.values.setdefault(doc.section, {})[doc.key] = value
        self.places[doc.section, doc.key] = where

    def absolute(self, value: object, home: str) -> object:
        """Paths of this place, made absolute; what is no path is left for the validation to complain about."""
        if isinstance(value, list):
            return [self.absolute(item, home) for item in cast("list[object]", value)]
        if not isinstance(value, str):
            return value
        if home and (value == "~" or value.startswith("~/")):
            return Path(home) / value[2:]
        return self.base / value


# Kubernetes and Docker links set these in every container beside a service that is called "outspoken".
_SERVICE_LINK = re.compile(
    r"OUTSPOKEN_(?:[A-Z0-9]+_)*?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9]+)*|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)


class _Loader:
    """One reading of the configuration; collects what is wrong instead of stopping at the first."""

    def __init__(self, config_file: Path | None, env: Mapping[str, str], *, required: bool) -> None:
        self._file = config_file
        self._required = required
        self._docs = describe()
        self._known = {(doc.section, doc.key): doc for doc in self._docs}
        self._set = Variables(dict(env))
        self._beside = Variables({})
        self._toml: TomlFile | None = None
        self._problems: list[Problem] = []
        self._warnings: list[str] = []
        self._wrong: set[str] = set()
        """The sections that the last validation refused."""
        self._missing: list[tuple[int, Key, Problem]] = []
        """Files that could not be read, with the layer and the key they were for: no matter if a higher layer sets it."""

    def load(self) -> Loaded:
        self._read_files()
        if self._problems:
            self._unknown_variables(self._set)
            raise ConfigError(self._problems)
        layers = self._layers()
        config = self._validated(layers)
        if config is None or self._problems:
            raise ConfigError(self._problems)
        self._warn_of_headers(config, layers[3])
        origins = {key: where for layer in reversed(layers) for key, where in layer.places.items()}
        environment = {**self._beside.values, **self._set.values}
        read = self._toml.path if self._toml else None
        return Loaded(config, read, origins, tuple(dict.fromkeys(self._warnings)), environment)

    def survey(self) -> Survey:
        """What is sound, with everything that is not."""
        self._read_files()
        layers = self._layers()
        unsound: set[str] = set()
        while (config := self._validated(layers)) is None:
            wrong = {section for section in self._wrong if any(section in layer.values for layer in layers)}
            assert wrong, self._problems
            unsound |= wrong
            for layer in layers:
                for section in wrong:
                    layer.values.pop(section, None)
        problems = tuple(dict.fromkeys(self._problems))
        return Survey(config, problems, tuple(dict.fromkeys(self._warnings)), frozenset(unsound))

    def _layers(self) -> list[_Layer]:
        """What each place says, the strongest first."""
        layers = [
            self._from_variables(self._set),
            self._from_variables(self._beside),
            self._from_credentials(),
            self._from_toml(),
        ]
        for rank, layer in enumerate(layers):
            self._resolve_files(rank, layer)
            self._resolve_fallbacks(layer)
        self._forgive_overridden(layers)
        return layers

    # --- the places ---

    def _read_files(self) -> None:
        if self._file is None:
            return
        if self._required or self._file.exists():
            try:
                self._toml = read_toml(self._file)
            except Unreadable as error:
                self._problems.append(error.problem)
        dotenv = self._file.parent / ".env"
        if dotenv.is_file():
            try:
                beside, problems = read_dotenv(dotenv)
            except Unreadable as error:
                self._problems.append(error.problem)
            else:
                self._problems += problems
                values = {name: value for name, value in beside.values.items() if name not in self._set.values}
                self._beside = Variables(values, beside.places)

    def _variable(self, name: str) -> str:
        return (self._set.values.get(name) or self._beside.values.get(name) or "").strip()

    def _from_variables(self, variables: Variables) -> _Layer:
        self._unknown_variables(variables)
        beside = variables is self._beside
        layer = _Layer(self._file.parent if beside and self._file else Path.cwd())
        for doc in self._docs:
            name = next((name for name in doc.env if variables.values.get(name, "").strip()), None)
            if name is None:
                continue
            layer.put(doc, variables.values[name].strip(), variables.where(name))
            if beside and doc.secret and self._file:
                self._warn_if_open(self._file.parent / ".env")
        return layer

    def _unknown_variables(self, variables: Variables) -> None:
        known = {name for doc in self._docs for name in doc.env} | set(OTHER_VARIABLES)
        for name in sorted(variables.values):
            if not name.upper().startswith(PREFIX) or name in known:
                continue
            if "__" not in name and _SERVICE_LINK.fullmatch(name):
                continue
            near = difflib.get_close_matches(name.upper(), known, 1, 0.6)
            fix = f"Did you mean {near[0]}?" if near else f"Unset it; the variables are {PREFIX}<SECTION>__<KEY>."
            self._problems.append(Problem(variables.where(name), "there is no such setting.", fix))

    def _from_credentials(self) -> _Layer:
        directory = self._variable("CREDENTIALS_DIRECTORY")
        layer = _Layer(Path(directory or "."))
        if not directory:
            return layer
        for doc in self._docs:
            if not doc.file_key:
                continue
            for name in (*doc.env, *(name.lower() for name in doc.env)):
                path = layer.base / name
                if not path.is_file():
                    continue
                try:
                    layer.put(doc, read_value_file(path), str(path))
                except Unreadable as error:
                    self._problems.append(error.problem)
                break
        return layer

    def _from_toml(self) -> _Layer:
        layer = _Layer(self._file.parent if self._file else Path.cwd())
        if self._toml is None:
            return layer
        sections = {doc.section for doc in self._docs}
        for section, content in self._toml.values.items():
            if section not in sections:
                self._problems.append(Problem(self._toml.where(section), *self._unknown_section(section, content)))
            elif not isinstance(content, dict):
                what, fix = (
                    f"{section} must be a table.",
                    f"Write [{section}] on a line of its own, and its keys below it.",
                )
                self._problems.append(Problem(self._toml.where(section), what, fix))
            else:
                for key, value in cast("dict[str, object]", content).items():
                    self._take(layer, section, key, value)
        return layer

    def _take(self, layer: _Layer, section: str, key: str, value: object) -> None:
        """One key of the TOML file."""
        assert self._toml is not None
        where = self._toml.where(section, key)
        doc = self._known.get((section, key))
        if doc is None:
            self._problems.append(Problem(where, f"there is no key {key} in [{section}].", self._nearest(section, key)))
        elif doc.secret:
            self._problems.append(Problem(where, *_not_in_the_file(doc)))
        elif (section, key) == ("storage", "url") and isinstance(value, str) and _database_password(value):
            self._problems.append(Problem(where, *_not_in_the_file(doc, "An address with a password")))
        else:
            layer.put(doc, value, where)

    def _unknown_section(self, section: str, content: object) -> tuple[str, str]:
        if not isinstance(content, dict):
            return f"{section} stands outside of a section.", self._nearest("", section)
        near = difflib.get_close_matches(section, {doc.section for doc in self._docs}, 1, 0.5)
        names = ", ".join(dict.fromkeys(f"[{doc.section}]" for doc in self._docs))
        return f"there is no section [{section}].", f"Did you mean [{near[0]}]?" if near else f"There are {names}."

    def _nearest(self, section: str, key: str) -> str:
        here = [doc.key for doc in self._docs if doc.section == section]
        elsewhere = [doc for doc in self._docs if doc.key == key and doc.section != section]
        if elsewhere:
            return f"It belongs to {' or '.join(f'[{doc.section}]' for doc in elsewhere)}."
        if near := difflib.get_close_matches(key, here, 1, 0.6):
            return f"Did you mean {near[0]}?"
        far = difflib.get_close_matches(key, [doc.key for doc in self._docs], 1, 0.75)
        if far:
            return f"Did you mean {next(doc.name for doc in self._docs if doc.key == far[0])}?"
        return f"Its keys are {', '.join(here)}." if here else "Put it below a section, such as [model]."

    # --- values in files of their own ---

    def _resolve_files(self, rank: int, layer: _Layer) -> None:
        """Make paths absolute, and read the files that hold one value each."""
        home = self._variable("HOME")
        for doc in self._docs:
            if doc.is_path and layer.has(doc):
                value = layer.get(doc)
                if doc.type.startswith("list") and isinstance(value, str):
                    value = [item.strip() for item in value.split(",") if item.strip()]
                layer.put(doc, layer.absolute(value, home), layer.places[doc.section, doc.key])
        for doc in self._docs:
            if not doc.file_key or not layer.has(doc, doc.file_key):
                continue
            if layer.has(doc):
                here, there = layer.places[doc.section, doc.key], layer.places[doc.section, doc.file_key]
                self._warnings.append(f"{doc.name} is set twice, by {here} and by {there}; the first one counts.")
                continue
            self._read_into(rank, layer, doc)

    def _read_into(self, rank: int, layer: _Layer, doc: KeyDoc) -> None:
        where = layer.places[doc.section, doc.file_key]
        paths = layer.get(doc, doc.file_key)
        several = isinstance(paths, list)
        values: list[str] = []
        for path in cast("list[object]", paths) if several else [paths]:
            if not isinstance(path, Path):
                return  # the validation complains about it
            try:
                values.append(read_value_file(path))
            except Unreadable as error:
                words = Problem(
                    where,
                    f"[{doc.section}] {doc.file_key}: {error.problem.where} {error.problem.what}",
                    error.problem.fix,
                )
                self._missing.append((rank, (doc.section, doc.key), words))
                return
            if doc.secret:
                self._warn_if_open(path)
        layer.put(doc, values if several else values[0], where)

    def _warn_if_open(self, path: Path) -> None:
        if readable_by_all(path):
            self._warnings.append(
                f"{path} holds a secret, and every user of this machine can read it. Close it: chmod 600 {path}"
            )

    def _forgive_overridden(self, layers: Sequence[_Layer]) -> None:
        for rank, key, problem in self._missing:
            if not any(key in layer.places for layer in layers[:rank]):
                self._problems.append(problem)

    # --- fallbacks ---

    def _resolve_fallbacks(self, layer: _Layer) -> None:
        """Fill in the keys of fallbacks that name a variable or a file."""
        doc = self._known["model", "fallbacks"]
        if not layer.has(doc):
            return
        where = layer.places["model", "fallbacks"]
        in_file = self._toml is not None and where.startswith(str(self._toml.path))
        try:
            items = named_tables(layer.get(doc))
        except ValueError:
            return  # not JSON: the validation complains about it
        if not isinstance(items, list):
            return
        out: list[object] = []
        for index, item in enumerate(cast("list[object]", items)):
            if not isinstance(item, dict):
                out.append(item)
                continue
            place = self._toml.where("model", "fallbacks", index) if in_file and self._toml else where
            out.append(self._fallback(dict(cast("dict[str, object]", item)), index, place, layer, in_file=in_file))
        layer.put(doc, out, where)

    def _fallback(
        self, table: dict[str, object], index: int, where: str, layer: _Layer, *, in_file: bool
    ) -> dict[str, object]:
        name = f"[model] fallbacks, number {index + 1}"
        if in_file and "api_key" in table:
            del table["api_key"]
            fix = 'Put it into the environment and write api_key_env = "ITS_NAME", or into a file and write api_key_file = "its.key".'
            self._problems.append(
                Problem(where, f"{name}: api_key is a secret, and does not belong into this file.", fix)
            )
        variable, path = table.get("api_key_env"), table.get("api_key_file")
        if isinstance(variable, str) and variable:
            if value := self._variable(variable):
                table["api_key"] = value
            else:
                self._problems.append(
                    Problem(where, f"{name}: the variable {variable} is not set.", "Set it, or correct its name.")
                )
        elif isinstance(path, str) and path:
            file = layer.absolute(path, self._variable("HOME"))
            assert isinstance(file, Path)
            table["api_key_file"] = file
            try:
                table["api_key"] = read_value_file(file)
                self._warn_if_open(file)
            except Unreadable as error:
                self._problems.append(
                    Problem(where, f"{name}: {error.problem.where} {error.problem.what}", error.problem.fix)
                )
        return table

    # --- checking ---

    def _validated(self, layers: Sequence[_Layer]) -> Config | None:
        sources = tuple(InitSettingsSource(Config, {**layer.values}) for layer in layers)
        try:
            # A documented parameter of BaseSettings, which its typing as a data class hides.
            return Config(_build_sources=(sources, {}))  # pyright: ignore[reportCallIssue]
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
        self._wrong = {str(detail["loc"][0]) for detail in details}
        self._problems += [self._problem(detail, layers) for detail in details]
        return None

    def _problem(self, detail: ErrorDetails, layers: Sequence[_Layer]) -> Problem:
        """A complaint of the validation in our words; the value is never among them."""
        section, *rest = detail["loc"]
        context = detail.get("ctx", {})
        key = str(rest[0]) if rest else str(context.get("key", ""))
        where = self._where(str(section), key, rest[1:], layers)
        doc = self._known.get((str(section), key))
        if detail["type"] == "outspoken":
            own = detail["msg"]
            what = f"[{section}] {key} {own}." if own.startswith("must ") else f"[{section}] {own}."
            return Problem(where, what, str(context.get("fix", "")))
        if doc is None or len(rest) > 1:
            inner = f"{key}, number {int(rest[1]) + 1}" if len(rest) > 1 and isinstance(rest[1], int) else key
            named = rest[1:] if len(rest) > 1 and isinstance(rest[1], str) else rest[2:]
            inner = " ".join([inner, *(str(part) for part in named)])
            if detail["type"] == "extra_forbidden":
                known = table_keys(str(section), key)
                near = difflib.get_close_matches(str(rest[-1]), known, 1, 0.6)
                fix = f"Did you mean {near[0]}?" if near else f"The keys are {', '.join(known)}."
                return Problem(where, f"[{section}] {inner}: there is no such key.", fix)
            if detail["type"] == "model_type":
                what = "the name of a model, or a table with its name" if key == "fallbacks" else "a table"
                return Problem(where, f"[{section}] {inner}: must be {what}.")
            return Problem(where, f"[{section}] {inner}: {detail['msg'].replace('Input should be', 'must be')}.")
        article = "" if doc.type.startswith(("one of", "true", "text")) else "a "
        default = f" The default is {doc.default}." if doc.default not in {"", '""', "[]", "{}"} else ""
        return Problem(where, f"{doc.name} must be {article}{doc.type}.", f"{doc.description}{default}")

    def _where(self, section: str, key: str, inner: Sequence[str | int], layers: Sequence[_Layer]) -> str:
        for layer in layers:
            place = layer.places.get((section, key))
            if place is None:
                continue
            if inner and self._toml is not None and layer is layers[3]:
                return self._toml.where(section, key, *inner)
            return place
        near = [place for layer in layers for (other, _), place in layer.places.items() if other == section]
        return near[0] if near else "configuration"

    def _warn_of_headers(self, config: Config, toml: _Layer) -> None:
        where = toml.places.get(("model", "extra_headers"))
        if where and self._toml and any(map(is_secret_name, config.model.extra_headers)):
            self._warn_if_open(self._toml.path)


def _not_in_the_file(doc: KeyDoc, what: str = "") -> tuple[str, str]:
    words = f"{what or doc.name} is a secret, and does not belong into this file."
    return (
        words,
        f'Put it into the environment as {" or ".join(doc.env)}, or into a file and write {doc.file_key} = "its.name".',
    )


def _database_password(url: str) -> str:
    """The password in a database's address; empty if there is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.password or next(iter(parse_qs(parts.query).get("password", [])), "")


def secret_values(config: Config) -> list[str]:
    """Every secret of the configuration, for the redactor."""
    model = config.model
    secrets = [secret.get_secret_value() for secret in (*model.credentials, *_secrets_in(config.model_dump()))]
    secrets.append(_database_password(config.storage.url))
    for headers in (model.extra_headers, *(entry.extra_headers for entry in model.fallbacks)):
        for name, value in headers.items():
            if is_secret_name(name):
                secrets += [value, value.rpartition(" ")[2]]
    return [secret for secret in dict.fromkeys(secrets) if secret]


def _secrets_in(value: object) -> Iterable[SecretStr]:
    """Every secret in what a model dumps, wherever it stands."""
    match value:
        case SecretStr():
            yield value
        case Mapping():
            for one in cast("Mapping[object, object]", value).values():
                yield from _secrets_in(one)
        case list() | tuple():
            for one in cast("Iterable[object]", value):
                yield from _secrets_in(one)
        case _:
            pass


def redacted(config: Config) -> dict[str, dict[str, object]]:
    """The configuration for showing: plain values by section and key, secrets as ``***`` (or None where none is set)."""
    redactor = Redactor.of(secret_values(config))
    dump = cast("dict[str, dict[str, object]]", config.model_dump())
    return {
        section: {key: _shown(value, key, redactor) for key, value in keys.items()} for section, keys in dump.items()
    }


def _shown(value: object, key: str, redactor: Redactor) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, SecretStr):
        return MASK
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return MASK if is_secret_name(key) else redactor.redact(str(value))
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {redactor.redact(name): _shown(item, name, redactor) for name, item in items}
    return [_shown(item, "", redactor) for item in cast("Iterable[object]", value)]
