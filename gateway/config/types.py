"""The kinds of values that configuration keys have, and how each is read from a text.

A value comes typed from TOML, or as one text from the environment. Each kind accepts both, and says in words what it must be
– without repeating what was given, which could be a secret in the wrong place.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, JsonValue, SecretStr
from pydantic_core import PydanticCustomError

PREFIX = "OUTSPOKEN_"
"""How the names of our environment variables begin."""


@dataclass(frozen=True, slots=True)
class Usual:
    """Marks a key with the names that other programs use for its environment variable, in the order they are tried."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FromOutside:
    """Marks a key whose value may also stand in a file of its own, named by another key."""

    also: str
    """The key that names that file, or several of them."""
    secret: bool = True
    """The value must not stand in the configuration file."""
    variable: str = ""
    """The key that names an environment variable with the value; only in tables, which have no variables of their own."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Marks a number with what it counts, where the end of its key does not say so."""

    words: str


class SessionPolicy(StrEnum):
    """What a message does that comes while its session's turn is running."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


class Disconnect(StrEnum):
    """What happens to a turn whose API client went away."""

    DETACH = "detach"
    CANCEL = "cancel"


class IfMissed(StrEnum):
    """What becomes of a scheduled occurrence whose time passed while nothing could be done."""

    RUN = "run"
    """It runs late."""
    SKIP = "skip"
    """It does not run, and the chat is told so."""


class LogLevel(StrEnum):
    """From which gravity on events of our own are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """The form of a log line."""

    AUTO = "auto"
    JSON = "json"
    PRETTY = "pretty"


def complaint(key: str, words: str, fix: str) -> PydanticCustomError:
    """A problem of a section that belongs to its `key`; none of the words may hold a value that could be a secret."""
    return PydanticCustomError("outspoken", "{words}", {"words": words, "key": key, "fix": fix})


def listed(value: object) -> object:
    """Lists may come as one text from the environment: JSON, or names with commas between."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return parsed_json(value)
    return [item.strip() for item in value.split(",") if item.strip()]


def parsed_json(value: object) -> object:
    """Tables may come as one text of JSON from the environment."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise PydanticCustomError("outspoken", "must be JSON when it comes from the environment, and is not") from None


def named_tables(value: object) -> object:
    """A list of tables in which a plain name stands for a table with that name."""
    items = listed(value)
    if not isinstance(items, list):
        return items
    return [{"name": item} if isinstance(item, str) else item for item in cast("list[object]", items)]


_LEVELS = {"warn": "warning", "critical": "error", "fatal": "error", "trace": "debug", "notice": "info"}


def named_level(value: object) -> object:
    """A log level in any spelling that other programs use in ``LOG_LEVEL``."""
    return _LEVELS.get(value.lower(), value.lower()) if isinstance(value, str) else value


def http_url(value: str) -> str:
    """An address of a server, without a slash at its end; empty stays empty."""
    if not value:
        return value
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half of an IPv6 address
        raise PydanticCustomError("outspoken", "must be an address with a valid host and port") from None
    if not sound:
        raise PydanticCustomError(
            "outspoken", "must be an address that begins with http:// or https:// and names a host"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PydanticCustomError(
            "outspoken", "must be an address without user, password, query and fragment; a key belongs into api_key"
        )
    return value.rstrip("/")


_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "sqlite+aiosqlite": "sqlite+aiosqlite",
    "postgres": "postgresql+asyncpg",
    "postgresql": "postgresql+asyncpg",
    "postgresql+asyncpg": "postgresql+asyncpg",
}


def database_url(value: str) -> str:
    """The address with its driver spelt out: SQLAlchemy 2.1 takes another one for ``postgresql://``."""
    scheme, colon, rest = value.partition("://")
    if not value:
        return value
    if not colon or scheme not in _DRIVERS:
        raise PydanticCustomError(
            "outspoken", "must begin with sqlite:/// (and a path) or with postgresql:// (and user, host and database)"
        )
    return f"{_DRIVERS[scheme]}://{rest}"


def header_safe(value: Mapping[str, str]) -> Mapping[str, str]:
    """Headers that cannot break out of their line."""
    for name, content in value.items():
        if (
            not name
            or not name.isascii()
            or any(character in name for character in " :\r\n\t\0")
            or not content.isprintable()
        ):
            raise PydanticCustomError("outspoken", "must hold header names and values without line breaks")
    return value


def sendable(value: SecretStr) -> SecretStr:
    """A key that can stand in an HTTP header; what cannot was pasted wrongly, and the server's 401 would not say so."""
    text = value.get_secret_value()
    if text[:1] in {'"', "'"}:
        raise PydanticCustomError("outspoken", "must be without quotation marks")
    if not text or not all("!" <= character <= "~" for character in text):
        raise PydanticCustomError(
            "outspoken",
            "must be one word of ASCII characters, and is empty or holds a space, a line break or another character",
        )
    return value


Secret: TypeAlias = Annotated[SecretStr, AfterValidator(sendable)]
Texts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(listed)]
Secrets: TypeAlias = Annotated[tuple[Secret, ...], BeforeValidator(listed)]
Paths: TypeAlias = Annotated[tuple[Path, ...], BeforeValidator(listed)]
Table: TypeAlias = Annotated[Mapping[str, JsonValue], BeforeValidator(parsed_json)]
Headers: TypeAlias = Annotated[Mapping[str, str], BeforeValidator(parsed_json), AfterValidator(header_safe)]
Url: TypeAlias = Annotated[str, AfterValidator(http_url)]


class Section(BaseModel):
    """What all sections have in common."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
    )


def is_loopback(host: str) -> bool:
    """True if only programs of this machine can reach a server that listens at `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
