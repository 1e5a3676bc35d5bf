"""The kinds of values that the gateway's own configuration keys have, beside those of `adapters/contract/settings.py`."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from adapters.contract.settings import Secret, Section, complaint, listed, parsed_json
from gateway.schedule.times import NoSuchZone, zone_named

PREFIX = "OUTSPOKEN_"
"""How the names of our environment variables begin."""


class SessionPolicy(StrEnum):
    """What a message does that comes while its session's turn is running."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"


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


def _zone(name: str) -> str:
    try:
        return zone_named(name) if name else name
    except NoSuchZone as error:  # whose words repeat what was given, which may be a secret in the wrong place
        near = f"; {error.near} is one" if error.near else ", such as UTC or Europe/Berlin"
        raise PydanticCustomError(
            "outspoken", "must be a time zone that this machine knows{near}", {"near": near}
        ) from None


ZoneName: TypeAlias = Annotated[str, AfterValidator(_zone)]
"""The name of a time zone, as the tz database writes it; empty where there may be none."""


def named_tables(value: object) -> object:
    """A list of tables with a name each: from tables by their names, or from a list in which a plain name stands for a table with it."""
    items = parsed_json(value) if isinstance(value, str) and value.lstrip().startswith("{") else listed(value)
    if isinstance(items, dict):
        tables = cast("dict[str, object]", items).items()
        return [
            {"name": name, **cast("dict[str, object]", one)} if isinstance(one, dict) else one for name, one in tables
        ]
    if not isinstance(items, list):
        return items
    return [{"name": item} if isinstance(item, str) else item for item in cast("list[object]", items)]


class NamedTables(Section):
    """A section in which people write tables with names of their own, ``[section.NAME]``. This is the one way to have such."""

    tables: ClassVar[str]
    """The key that holds all of them as a list (`named_tables`), each with its `name`."""

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        held = cast("tuple[Section, ...]", getattr(self, self.tables))
        names = [str(getattr(one, "name", "")) for one in held]
        if len(set(names)) < len(names):
            raise complaint(self.tables, "two of its tables have the same name", "Give each one a name of its own.")
        return self


_LEVELS = {"warn": "warning", "critical": "error", "fatal": "error", "trace": "debug", "notice": "info"}


def named_level(value: object) -> object:
    """A log level in any spelling that other programs use in ``LOG_LEVEL``."""
    return _LEVELS.get(value.lower(), value.lower()) if isinstance(value, str) else value


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
    if "?" in rest:
        # With the database's whole library, which few addresses need read so early
        from agent_core.store.database.place import (
            misread,
        )

        if why := misread(value):
            raise PydanticCustomError(
                "outspoken", "must be one that can be used. {why}", {"why": why.removesuffix(".")}
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


Secrets: TypeAlias = Annotated[tuple[Secret, ...], BeforeValidator(listed)]
Paths: TypeAlias = Annotated[tuple[Path, ...], BeforeValidator(listed)]
Table: TypeAlias = Annotated[Mapping[str, JsonValue], BeforeValidator(parsed_json)]
Headers: TypeAlias = Annotated[Mapping[str, str], BeforeValidator(parsed_json), AfterValidator(header_safe)]


_OF_NUMBERS = frozenset("0123456789abcdefx.")


def plainly(host: str) -> str:
    """The host in the one spelling that a server listens at and a client calls: the system reads more of them ("127.1", "0")."""
    host = host.strip()
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1]
    if host[:1].isdecimal() and _OF_NUMBERS.issuperset(host.lower()):
        import socket  # which nearly no command needs to read a configuration

        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(host))
    return host


def is_loopback(host: str) -> bool:
    """True if only programs of this machine can reach a server that listens at `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
