"""What a section of the configuration is made of: its base class, its kinds of values, and the marks on its keys.

A value comes typed from TOML, or as one text from the environment. Each kind accepts both, and says in words what it must be
– without repeating what was given, which could be a secret in the wrong place.
"""

from __future__ import annotations

import json
from typing import Annotated, Self, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    SecretStr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agent_core.records import dataclass
from agent_core.text.tongue import LANGUAGES, language_of


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


class Section(BaseModel):
    """What all sections have in common."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        str_strip_whitespace=True,
        defer_build=True,
    )

    @model_validator(mode="wrap")
    @classmethod
    def _truths_are_no_numbers(cls, given: object, made: ModelWrapValidatorHandler[Self]) -> Self:
        """`true` is no number, though Python would count it as 1: it is found wrong as any other word is."""
        if isinstance(given, dict) and any(isinstance(one, bool) for one in cast("dict[str, object]", given).values()):
            spelled = {True: "true", False: "false"}
            given = {
                key: spelled[one] if isinstance(one, bool) and not cls._is_switch(key) else one
                for key, one in cast("dict[str, object]", given).items()
            }
        return made(given)

    @classmethod
    def _is_switch(cls, key: str) -> bool:
        """Whether a key may be true or false, or is none of ours."""
        field = cls.model_fields.get(key)
        return field is None or not _numeric(field.annotation)


def _numeric(kind: object) -> bool:
    """Whether values of this kind are numbers."""
    parts = get_args(kind)
    return kind is int or kind is float or (bool not in parts and any(_numeric(part) for part in parts))


NO_HOST = "must be an address with a valid host and port"
LONGEST_LABEL = 64
"""Characters between two dots of a host's name; fewer than that."""


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


def may_be_called(host: str) -> bool:
    """Whether a machine can have this name or address: of one that none can have, looking it up says so in no words of its own."""
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            return False
    *labels, last = host.split(".")
    return all(0 < len(label) < LONGEST_LABEL for label in labels) and len(last) < LONGEST_LABEL


def http_url(value: str) -> str:
    """An address of a server, without a slash at its end; empty stays empty."""
    if not value:
        return value
    try:
        parts = urlsplit(value)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, half of an IPv6 address
        raise PydanticCustomError("outspoken", NO_HOST) from None
    if not may_be_called(parts.hostname or ""):
        raise PydanticCustomError("outspoken", NO_HOST)
    if not sound:
        raise PydanticCustomError(
            "outspoken", "must be an address that begins with http:// or https:// and names a host"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise PydanticCustomError(
            "outspoken", "must be an address without user, password, query and fragment; a key belongs into api_key"
        )
    return value.rstrip("/")


def proxy_url(value: str) -> str:
    """An address of a proxy, perhaps with who we are there; empty stays empty. What names no scheme speaks HTTP."""
    if not value:
        return value
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and may_be_called(parts.hostname):
            return parts.geturl()
    except ValueError:
        pass  # a port that is no number, half of an IPv6 address
    raise PydanticCustomError(
        "outspoken", "must be the address of a proxy that speaks HTTP, such as http://proxy.example.org:3128"
    )


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


def revealed(secret: SecretStr | None) -> str:
    """What is in it; empty if there is none."""
    return secret.get_secret_value() if secret is not None else ""


def spoken(value: str) -> str:
    """A language that the gateway speaks, by its tag; empty stays empty."""
    if value and not language_of(value):
        raise PydanticCustomError("outspoken", "must be one of {tags}", {"tags": ", ".join(LANGUAGES)})
    return language_of(value)


Secret: TypeAlias = Annotated[SecretStr, AfterValidator(sendable)]
Texts: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(listed)]
Tongue: TypeAlias = Annotated[str, AfterValidator(spoken)]
Tongues: TypeAlias = Annotated[dict[str, Tongue], BeforeValidator(parsed_json)]
Url: TypeAlias = Annotated[str, AfterValidator(http_url)]
Proxy: TypeAlias = Annotated[str, AfterValidator(proxy_url)]
