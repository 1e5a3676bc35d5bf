"""The configuration: read from all its places, checked, and told in words.

Four places say what a key is, and the first one that says anything about it wins:

1. environment variables: ``OUTSPOKEN_<SECTION>__<KEY>``, then the name that other programs use (``OPENAI_API_KEY``);
2. a file ``.env`` beside the configuration file, for variables that are not set;
3. systemd's credentials (``CREDENTIALS_DIRECTORY``), for secrets, under the name of the variable;
4. the TOML file.

Each secret may also stand in a file of its own that a key ``…_file`` names (variable ``…_FILE``). The checking is pydantic's; what stands
here is what it does not do: which place wins, files that keys name, and sentences about mistakes.

Laws: unknown keys and variables are refused, with the nearest known name; all problems are told at once, each with its file
and line or its variable; a secret in the TOML file is refused; no message holds a value; nothing is taken from the process's
own environment but what the caller hands over.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TypeAlias, cast
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from adapters.contract.settings import listed, parsed_json
from agent_core.records import dataclass
from agent_core.text.nearest import nearest
from agent_core.text.patterns import late
from agent_core.text.redaction import MASK, Redactor, is_secret_name
from gateway.config.keys import OTHER_VARIABLES, KeyDoc, describe
from gateway.config.misfits import idle, misfits
from gateway.config.paths import working_directory
from gateway.config.sections import Config, schema
from gateway.config.sources import (
    ConfigProblem,
    TomlFile,
    TomlPath,
    UnreadableSource,
    Variables,
    is_there,
    read_dotenv,
    read_value_file,
    readable_by_all,
)
from gateway.config.types import PREFIX, named_tables

Table: TypeAlias = dict[str, object]


class ConfigError(Exception):
    """The configuration cannot be used. `str` is a list of problems in words for a person, and holds no value."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        self.problems = tuple(problems)
        how_many = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__("\n".join([f"The configuration has {how_many}:", *(f"  - {one}" for one in problems)]))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, where it came from, and what is wrong with it."""

    config: Config
    """What is sound; a section that is not is at its defaults."""
    file: Path | None
    """The TOML file that was read; None if there was none."""
    origins: Mapping[TomlPath, str]
    """Where each key that is not at its default was set: ``file:line`` or a variable."""
    problems: tuple[ConfigProblem, ...]
    """None if the gateway may start."""
    warnings: tuple[str, ...]
    """Sentences for a person; nothing of it stops the start."""
    unsound: frozenset[str]
    """The sections that are at their defaults because something in them is wrong."""
    unread: bool
    """There is a file, or should be one, that cannot be read: whatever was set nowhere else may be other than it seems here."""
    environment: Mapping[str, str] = field(repr=False)
    """What was handed over, and below it what ``.env`` adds (also proxies and certificates)."""


def load(config_file: Path | None, env: Mapping[str, str], *, required: bool = False) -> Loaded:
    """Read, merge and check the configuration.

    `config_file` may be missing unless `required`. `env` is the whole environment, usually ``os.environ``. Raises
    `ConfigError` with every problem that was found.
    """
    seen = survey(config_file, env, required=required)
    if seen.problems:
        raise ConfigError(seen.problems)
    return seen


def survey(config_file: Path | None, env: Mapping[str, str], *, required: bool = False) -> Loaded:
    """`load` for looking: it never raises, so that one wrong key does not hide what else is wrong."""
    return _Reading(config_file, env, required=required).read()


@dataclass(frozen=True, slots=True)
class _Place:
    """A table somewhere in a source: a whole section, or a table in a list of them."""

    source: Variables | TomlFile
    path: TomlPath
    base: Path
    """Relative paths begin here."""
    file: Path | None
    """The file that it stands in."""
    name: str
    """In words: ``[section]``, or which table of it."""

    def at(self, *key: str) -> str:
        """Where one of its keys was set; without a key, where it begins."""
        return self.source.at(*self.path, *key)


# Kubernetes and Docker links set these in every container beside a service that is called "outspoken".
_SERVICE_LINK = late(
    r"OUTSPOKEN_(?:[A-Z0-9]+_)*?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9]+)*|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)"
)


SHAPES = Redactor()
"""Knows no secret, and so each by its form."""


class _Reading:
    """One reading of the configuration; collects what is wrong instead of stopping at the first."""

    def __init__(self, config_file: Path | None, env: Mapping[str, str], *, required: bool) -> None:
        self._file = config_file
        self._required = required
        self._docs = describe()
        self._set = Variables(dict(env))
        self._beside = Variables({})
        self._toml: TomlFile | None = None
        self._unread = False
        self._problems: list[ConfigProblem] = []
        self._warnings: list[str] = []
        self._origins: dict[TomlPath, str] = {}

    def read(self) -> Loaded:
        self._read_files()
        layers = self._layers()
        unsound: set[str] = set()
        while not isinstance(found := self._validated(layers), Config):
            wrong = found & {section for layer in layers for section in layer}
            assert wrong, self._problems
            unsound |= wrong
            layers = [{name: table for name, table in layer.items() if name not in wrong} for layer in layers]
        for one in misfits(found, _installed):
            self._problems.append(ConfigProblem(self._where(one.section, one.key, one.inner), one.what, one.fix))
        for one in idle(found, which):
            where = self._where(one.section, one.key, one.inner)
            self._warnings.append(f"{where}: {one.what} {one.fix}")
        for platform, section in found.chats():
            if (amiss := section.amiss) is not None:
                where = self._where(platform.name, amiss.key, ())
                what = f"[{platform.name}] {amiss.what}: this bot does not run, and everything else does"
                self._warnings.append(f"{where}: {what}. {amiss.fix}")
        return Loaded(
            config=found,
            file=self._toml.path if self._toml else None,
            origins=self._origins,
            problems=tuple(dict.fromkeys(map(_hidden, self._problems))),
            warnings=tuple(dict.fromkeys(map(SHAPES.redact, self._warnings))),
            unsound=frozenset(unsound),
            unread=self._unread,
            environment={**self._beside.values, **self._set.values},
        )

    # --- the places ---

    def _read_files(self) -> None:
        if self._file is None:
            return
        dotenv = self._file.parent / ".env"
        with self._told(whole=True):
            if self._required or is_there(self._file):
                self._toml = TomlFile(self._file)
        with self._told(whole=True):
            if is_there(dotenv) and not dotenv.is_dir():
                self._beside, problems = read_dotenv(dotenv, hidden=self._set.values)
                self._problems += problems

    @contextmanager
    def _told(self, where: str = "", name: str = "", *, whole: bool = False) -> Generator[None]:
        """What cannot be read in this block is a problem, and reading goes on behind it. `whole`: anything may stand in it."""
        try:
            yield
        except UnreadableSource as error:
            found = error.problem
            self._unread |= whole
            self._problems.append(
                ConfigProblem(where, f"{name}: {found.where} {found.what}", found.fix) if name else found
            )

    def _variable(self, name: str) -> str:
        return (self._set.values.get(name) or self._beside.values.get(name) or "").strip()

    def _credentials(self) -> Variables:
        """What systemd hands over: a file for each secret, with the name of its variable."""
        found: dict[str, str] = {}
        places: dict[str, str] = {}
        if directory := self._variable("CREDENTIALS_DIRECTORY"):
            for name in (name for doc in self._docs if doc.file_key for name in doc.env):
                path = next((path for one in (name, name.lower()) if (path := Path(directory, one)).is_file()), None)
                with self._told():
                    if path is not None:
                        found[name], places[name] = read_value_file(path), str(path)
        return Variables(found, places)

    def _layers(self) -> list[Table]:
        """What each place says, the strongest first."""
        self._refuse_unknown(self._set)
        self._refuse_unknown(self._beside)
        here = working_directory() or Path("/")
        folder = self._file.parent if self._file else here
        return [
            self._layer(self._set, here, None),
            self._layer(self._beside, folder, folder / ".env"),
            self._layer(self._credentials(), folder, None),
            *([self._layer(self._toml, folder, self._toml.path)] if self._toml else []),
        ]

    def _layer(self, source: Variables | TomlFile, base: Path, file: Path | None) -> Table:
        """What one place says, without what it may not say."""
        layer: Table = {}
        for section, table in source().items():
            docs = {doc.key: doc for doc in self._docs if doc.section == section}
            if not docs:
                self._problems.append(ConfigProblem(source.at(section), *self._unknown_section(section, table)))
                continue
            if not isinstance(table, dict):
                fix = f"Write [{section}] on a line of its own, and its keys below it."
                self._problems.append(ConfigProblem(source.at(section), f"{section} must be a table.", fix))
                continue
            keys = cast("Table", table)
            for key in (key for key in keys if key not in docs):
                what = f"there is no key {key} in [{section}]."
                self._problems.append(ConfigProblem(source.at(section, key), what, self._nearest(section, key)))
            known = {key: value for key, value in keys.items() if key in docs}
            layer[section] = self._settled(
                [*docs.values()], known, _Place(source, (section,), base, file, f"[{section}]")
            )
        return layer

    def _settled(self, docs: Sequence[KeyDoc], given: Table, place: _Place) -> Table:
        """A table without secrets that may not stand in it, with whole paths, and with what its keys name elsewhere."""
        table = dict(given)
        for doc in docs:
            value = given.get(doc.key)
            if value is None:
                continue
            if isinstance(place.source, TomlFile) and (what := _secret_in(doc, value, place)):
                del table[doc.key]
                self._problems.append(ConfigProblem(place.at(doc.key), *_not_in_the_file(what, doc)))
            elif doc.is_path:
                table[doc.key] = self._absolute(value, place.base, several=doc.type.startswith("list"))
            elif any(inner.file_key for inner in doc.table):
                table[doc.key] = self._settled_each(doc, value, place)
            if place.file and doc.key in table and _holds_secret(doc, value):
                self._warn_if_open(place.file)
        where = {key: place.at(key) for key in table}
        for doc in docs:
            if doc.file_key:
                self._fill_in(doc, table, place, where)
        for key, at in where.items():
            self._origins.setdefault((*place.path, key), at)
        return table

    def _settled_each(self, doc: KeyDoc, value: object, place: _Place) -> object:
        """The same for each table of a list."""
        try:
            items = named_tables(value)
        except ValueError:
            return value  # not JSON: the validation complains about it
        if not isinstance(items, list):
            return value
        settled: list[object] = []
        for index, item in enumerate(cast("list[object]", items)):
            if isinstance(item, dict):
                table, path = cast("Table", item), (*place.path, doc.key, index)
                inner = replace(place, path=path, name=self._name_of(doc.section, doc.key, index, place.source))
                settled.append(self._settled(doc.table, table, inner))
            else:
                settled.append(item)
        return settled

    def _name_of(self, section: str, key: str, index: int, source: Variables | TomlFile | None) -> str:
        """Which table of a list, in words. A name that was given as a value is not repeated."""
        header = source.headers.get((section, key, index)) if isinstance(source, TomlFile) else None
        return header or f"[{section}] {key}, number {index + 1}"

    def _absolute(self, value: object, base: Path, *, several: bool = False) -> object:
        """Paths of a place, made absolute; what is no path is left for the validation to complain about."""
        if several:
            with suppress(ValueError):
                value = listed(value)
        if isinstance(value, list):
            return [self._absolute(item, base) for item in cast("list[object]", value)]
        if not isinstance(value, str):
            return value
        home = self._variable("HOME")
        return Path(home) / value[2:] if home and (value == "~" or value.startswith("~/")) else base / value

    def _fill_in(self, doc: KeyDoc, table: Table, place: _Place, where: dict[str, str]) -> None:
        """The value of a key that stands in a variable or in files that other keys name."""
        variable = table.get(doc.variable_key)
        if isinstance(variable, str) and variable:
            if value := self._variable(variable):
                table[doc.key] = value
            else:
                what = f"{place.name}: the variable {variable} is not set."
                self._problems.append(ConfigProblem(place.at(), what, "Set it, or correct its name."))
        elif doc.file_key in table and doc.key in table:
            here, there = where[doc.key], where[doc.file_key]
            self._warnings.append(
                f"{place.name} {doc.key} is set twice, by {here} and by {there}; the first one counts."
            )
        elif doc.file_key in table:
            named = table[doc.file_key]
            paths = cast("list[object]", named if isinstance(named, list) else [named])
            files = [path for path in paths if isinstance(path, Path)]
            for path in files if doc.secret else ():
                self._warn_if_open(path)
            if len(files) < len(paths) or (*place.path, doc.key) in self._origins:
                return  # the validation complains about what is no path; or a stronger place says the value
            with self._told(where[doc.file_key], f"{place.name} {doc.file_key}"):
                values = [read_value_file(path) for path in files]
                for path in (path for path, one in zip(files, values, strict=True) if _holds_secret(doc, one)):
                    self._warn_if_open(path)
                table[doc.key] = values if isinstance(named, list) else values[0]
                where[doc.key] = where[doc.file_key]

    def _warn_if_open(self, path: Path) -> None:
        if readable_by_all(path):
            self._warnings.append(
                f"{path} holds a secret, and every user of this machine can read it. Close it: chmod 600 {path}"
            )

    # --- the nearest name ---

    def _refuse_unknown(self, variables: Variables) -> None:
        known = {name for doc in self._docs for name in doc.env} | set(OTHER_VARIABLES)
        for name in sorted(variables.values.keys() - known):
            if name.upper().startswith(PREFIX) and ("__" in name or not _SERVICE_LINK.fullmatch(name)):
                fix = _meant(name.upper(), known) or f"Unset it; the variables are {PREFIX}<SECTION>__<KEY>."
                self._problems.append(ConfigProblem(variables.where(name), "there is no such setting.", fix))

    def _unknown_section(self, section: str, content: object) -> tuple[str, str]:
        if not isinstance(content, dict):
            return f"{section} stands outside of a section.", self._nearest("", section)
        names = dict.fromkeys(f"[{doc.section}]" for doc in self._docs)
        what = f"there is no section [{section}]."
        if of := [f"[{doc.section}]" for doc in self._docs if doc.key == section]:
            return what, f"It is a key of {' or '.join(of)}."
        return what, _meant(f"[{section}]", names) or f"There are {', '.join(names)}."

    def _nearest(self, section: str, key: str) -> str:
        here = [doc.key for doc in self._docs if doc.section == section]
        if elsewhere := [f"[{doc.section}]" for doc in self._docs if doc.key == key and doc.section != section]:
            return f"It belongs to {' or '.join(elsewhere)}."
        far = {doc.key: doc.name for doc in reversed(self._docs)}
        keys = f"Its keys are {', '.join(here)}." if here else "Put it below a section, such as [model]."
        return _meant(key, here) or _meant(key, far, 0.75, far) or keys

    # --- checking ---

    def _validated(self, layers: Sequence[Table]) -> Config | set[str]:
        """The configuration; or the sections that are wrong, which are complained of."""
        # A section that nobody names is empty: it is checked with the whole, and its class needs no validator of its own.
        merged: dict[str, Table] = {section: {} for section in schema().model_fields}
        for layer in reversed(layers):
            for section, table in layer.items():
                merged[section] |= cast("Table", table)
        try:
            return schema().model_validate(merged)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False)
        self._problems += [self._problem(detail) for detail in details]
        return {str(detail["loc"][0]) for detail in details}

    def _problem(self, detail: ErrorDetails) -> ConfigProblem:
        """A complaint of the validation in our words; the value is never among them."""
        section, *rest = detail["loc"]
        context = detail.get("ctx", {})
        key = str(rest[0]) if rest else str(context.get("key", ""))
        where = self._where(str(section), key, rest[1:])
        doc = next((doc for doc in self._docs if (doc.section, doc.key) == (section, key)), None)
        table, inner = f"[{section}]", rest
        if len(rest) > 1 and isinstance(rest[1], int):
            source = self._toml if self._in_file(str(section), key) else None
            table, inner = self._name_of(str(section), key, rest[1], source), rest[2:]
        name = " ".join([table, *map(str, inner)])
        if detail["type"] == "outspoken":
            own = detail["msg"]
            what = f"{name} {own}." if own.startswith("must ") else f"{table} {own}."
            return ConfigProblem(where, what, str(context.get("fix", "")))
        if doc is None or len(rest) > 1:
            return ConfigProblem(where, *_inner_words(name, inner, doc, detail))
        if detail["type"] == "string_too_short" and context.get("min_length") == 1:
            return ConfigProblem(where, f"{doc.name} must not be empty.", f"{doc.description}")
        article = "" if doc.type.startswith(("one of", "true", "text")) else "a "
        default = f" The default is {doc.default}." if doc.default not in {"", '""', "[]", "{}"} else ""
        return ConfigProblem(where, f"{doc.name} must be {article}{doc.type}.", f"{doc.description}{default}")

    def _where(self, section: str, key: str, inner: Sequence[str | int]) -> str:
        at = self._origins.get((section, key))
        if at is None:
            return next((near for path, near in self._origins.items() if path[0] == section), "configuration")
        return self._toml.at(section, key, *inner) if self._toml and self._in_file(section, key) else at

    def _in_file(self, section: str, key: str) -> bool:
        """The file is the strongest place that says this key."""
        return self._toml is not None and self._origins.get((section, key)) == self._toml.at(section, key)


def _hidden(one: ConfigProblem) -> ConfigProblem:
    """A problem as it may be told: what stands in the place of a name may be a secret."""
    return ConfigProblem(SHAPES.redact(one.where), SHAPES.redact(one.what), SHAPES.redact(one.fix))


def _installed(module: str) -> bool:
    """Whether it can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it lies in is not there
        return False


def _meant(name: str, known: Iterable[str], least: float = 0.6, called: Mapping[str, str] | None = None) -> str:
    """A question whether another name was meant, if there is one that looks alike."""
    near = nearest(name, known, least=least)
    return f"Did you mean {(called or {}).get(near[0], near[0])}?" if near else ""


def _inner_words(name: str, rest: Sequence[str | int], doc: KeyDoc | None, detail: ErrorDetails) -> tuple[str, str]:
    """What is wrong inside a table or a list, and what to do."""
    if detail["type"] == "extra_forbidden":
        known = [inner.key for inner in doc.table] if doc else []
        fix = _meant(str(rest[-1]), known) or f"The keys are {', '.join(known)}."
        return f"{name}: there is no such key.", fix
    if detail["type"] == "model_type":
        a_model = doc is not None and doc.section == "model"
        return f"{name}: must be {'the name of a model, or a table with its name' if a_model else 'a table'}.", ""
    words = detail["msg"].replace("Input should be", "must be").replace("a valid tuple", "a list")
    return f"{name}: {'must be a path' if detail['type'] == 'path_type' else words}.", ""


def _secret_in(doc: KeyDoc, value: object, place: _Place) -> str:
    """What is secret of a value that stands in the TOML file; empty if nothing is."""
    if (doc.section, doc.key) == ("storage", "url") and isinstance(value, str) and _database_password(value):
        return "An address with a password"
    return f"{place.name} {doc.key}" if doc.secret else ""


def _not_in_the_file(what: str, doc: KeyDoc) -> tuple[str, str]:
    how = f'and write {doc.variable_key} = "ITS_NAME"' if doc.variable_key else f"as {' or '.join(doc.env)}"
    fix = f'Put it into the environment {how}, or into a file and write {doc.file_key} = "its.name".'
    return f"{what} is a secret, and does not belong into this file.", fix


def _holds_secret(doc: KeyDoc, value: object) -> bool:
    """Whether the file in which a key's value stands is nobody else's business."""
    if doc.key == "extra_headers":
        with suppress(PydanticCustomError):
            return _secret_headers(parsed_json(value))
    return doc.secret or (isinstance(value, str) and "://" in value and bool(_database_password(value)))


def _secret_headers(value: object) -> bool:
    return isinstance(value, dict) and any(map(is_secret_name, map(str, cast("Table", value))))


def _database_password(url: str) -> str:
    """The password in a database's address; empty if there is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return parts.password or next(iter(parse_qs(parts.query).get("password", [])), "")


# --- showing ---


def secret_values(config: Config) -> list[str]:
    """Every secret of the configuration, for the redactor."""
    secrets = [*_secrets_in(config.model_dump()), _database_password(config.storage.url)]
    for headers in (config.model.extra_headers, *(entry.extra_headers for entry in config.model.fallbacks)):
        for name, value in headers.items():
            if is_secret_name(name):
                secrets += [value, value.rpartition(" ")[2]]
    return [secret for secret in dict.fromkeys(secrets) if secret]


def _secrets_in(value: object) -> Iterable[str]:
    """Every secret in what a model dumps, wherever it stands."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
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


def _shown(value: object, name: str, redactor: Redactor) -> object:
    match value:
        case SecretStr():
            return MASK
        case str():
            return MASK if is_secret_name(name) else redactor.redact(value)
        case Path():
            return str(value)
        case Mapping():
            items = cast("Mapping[str, object]", value).items()
            return {redactor.redact(inner): _shown(item, inner, redactor) for inner, item in items}
        case list() | tuple():
            return [_shown(item, "", redactor) for item in cast("Iterable[object]", value)]
        case _:
            return value


class CannotServe(Exception):
    """The daemon cannot start; the words say why and what to do."""


def redactor_of(config: Config, environment: Mapping[str, str] | None = None) -> Redactor:
    """What knows all secrets of the configuration, and those that tools are given from this environment."""
    given = {name: (environment or {}).get(name, "") for name in config.tools.environment}
    theirs = [value for name, value in given.items() if value and _is_a_key(name)]
    return Redactor.of([*secret_values(config), *theirs])


def _is_a_key(name: str) -> bool:
    return is_secret_name(name) or name.upper().endswith("KEY")
