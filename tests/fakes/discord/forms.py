"""The fields of a request, read by type. What is wrong is gathered and told at once, nested as the fields are (error 50035)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.fakes.common import Json, JsonObject
from tests.fakes.discord.errors import ApiError, flaw, invalid

_SNOWFLAKE = re.compile(r"\d{1,20}")
OCTETS = "application/octet-stream"
REQUIRED = ("BASE_TYPE_REQUIRED", "This field is required")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in a multipart body."""

    field: str
    name: str
    mime_type: str
    """`OCTETS` if the sender did not say; the server then looks at the name."""
    data: bytes


def snowflake_of(value: Json) -> int | None:
    """The id that a value tells, if it does."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _SNOWFLAKE.fullmatch(value):
        return int(value)
    return None


class Form:
    """An object that was sent. A field that is null counts as absent, except for `given`."""

    def __init__(self, values: Mapping[str, Json], *, query: bool = False) -> None:
        self.values: JsonObject = dict(values)
        self._query = query
        self._used: set[str] = set()
        self._flaws: JsonObject = {}
        self._children: dict[str, Form] = {}
        self._lists: dict[str, list[Form]] = {}

    # --- reading ---

    def given(self, name: str) -> bool:
        """Whether the field was sent, be it as null."""
        self._used.add(name)
        return name in self.values

    def raw(self, name: str) -> Json:
        """The value as it is."""
        self._used.add(name)
        return self.values.get(name)

    def text(self, name: str, *, least: int = 0, most: int = 1 << 20, required: bool = False) -> str | None:
        """A string; its length counts characters."""
        value = self._value(name, required)
        if value is None:
            return None
        if not isinstance(value, str):
            self.flaw(name, "STRING_TYPE_CONVERT", "Could not interpret value as string.")
            return None
        if len(value) > most:
            self.flaw(name, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
        elif len(value) < least and not value:
            self.flaw(name, *REQUIRED)
        elif len(value) < least:
            self.flaw(name, "BASE_TYPE_MIN_LENGTH", f"Must be {least} or more in length.")
        return value

    def integer(
        self, name: str, *, least: int | None = None, most: int | None = None, required: bool = False
    ) -> int | None:
        """A whole number."""
        value = self._value(name, required)
        if value is None:
            return None
        if self._query and isinstance(value, str) and re.fullmatch(r"-?\d+", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self.flaw(name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not int.')
            return None
        if most is not None and value > most:
            self.flaw(name, "NUMBER_TYPE_MAX", f"int value should be less than or equal to {most}.")
        if least is not None and value < least:
            self.flaw(name, "NUMBER_TYPE_MIN", f"int value should be greater than or equal to {least}.")
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self._value(name, required=False)
        if value is None:
            return default
        if self._query and isinstance(value, str):
            return value.lower() in {"1", "true"}
        if not isinstance(value, bool):
            self.flaw(name, "BOOLEAN_TYPE_CONVERT", "Must be either true or false.")
            return default
        return value

    def snowflake(self, name: str, *, required: bool = False) -> int | None:
        """An id."""
        value = self._value(name, required)
        if value is None:
            return None
        number = snowflake_of(value)
        if number is None:
            self.flaw(name, "NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')
        return number

    def snowflakes(self, name: str, *, most: int = 100) -> list[int] | None:
        """Several ids."""
        values = self.array(name, most=most)
        if values is None:
            return None
        numbers = [snowflake_of(value) for value in values]
        if None in numbers:
            self.flaw(name, "NUMBER_TYPE_COERCE", f'Value "{values[numbers.index(None)]}" is not snowflake.')
        return [number for number in numbers if number is not None]

    def numbers(self, name: str) -> list[int]:
        """Several whole numbers."""
        values = self.array(name) or []
        if not all(isinstance(value, int) for value in values):
            self.flaw(name, "NUMBER_TYPE_COERCE", "Value is not int.")
        return [value for value in values if isinstance(value, int)]

    def array(self, name: str, *, least: int = 0, most: int = 1 << 20, required: bool = False) -> list[Json] | None:
        """An array."""
        value = self._value(name, required)
        if value is None:
            return None
        if not isinstance(value, list):
            self.flaw(name, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
            return None
        if not least <= len(value) <= most:
            self.flaw(name, "BASE_TYPE_BAD_LENGTH", f"Must be between {least} and {most} in length.")
        return value

    def object(self, name: str, *, required: bool = False) -> Form | None:
        """An object inside this one."""
        value = self._value(name, required)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.flaw(name, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
            return None
        return self._children.setdefault(name, Form(value))

    def items(self, name: str, *, least: int = 0, most: int = 1 << 20, required: bool = False) -> list[Form]:
        """An array of objects."""
        values = self.array(name, least=least, most=most, required=required) or []
        if not all(isinstance(value, dict) for value in values):
            self.flaw(name, "MODEL_TYPE_CONVERT", "Only dictionaries may be used in a ModelType")
        return self._lists.setdefault(name, [Form(value) for value in values if isinstance(value, dict)])

    def _value(self, name: str, required: bool) -> Json:
        self._used.add(name)
        value = self.values.get(name)
        if value is None and required:
            self.flaw(name, *REQUIRED)
        return value

    # --- what is wrong ---

    def flaw(self, name: str, code: str, message: str) -> None:
        """Note what is wrong with a field; the first flaw of a field counts."""
        self._flaws.setdefault(name, flaw(code, message))

    @property
    def flawed(self) -> bool:
        """Whether anything is wrong here or inside."""
        return bool(self.errors())

    def errors(self) -> JsonObject:
        """All flaws, nested."""
        told: JsonObject = dict(self._flaws)
        for name, child in self._children.items():
            if child.flawed:
                told.setdefault(name, child.errors())
        for name, children in self._lists.items():
            inner: JsonObject = {str(n): child.errors() for n, child in enumerate(children) if child.flawed}
            if inner:
                told.setdefault(name, inner)
        return told

    def check(self) -> None:
        """Raise if anything is wrong.

        Raises:
            ApiError: 50035 with every flaw.
        """
        errors = self.errors()
        if errors:
            raise invalid(errors)

    # --- what nobody looked at ---

    def unused(self) -> Iterator[str]:
        """The names of fields that no code of the fake looked at; those inside with dots."""
        for name in self.values:
            if name not in self._used:
                yield name
        for name, child in self._children.items():
            yield from (f"{name}.{inner}" for inner in child.unused())
        for name, children in self._lists.items():
            for child in children:
                yield from (f"{name}.{inner}" for inner in child.unused())


class Asked:
    """A request to the API, taken apart."""

    def __init__(
        self,
        path: Mapping[str, str],
        query: Mapping[str, Json],
        body: Json,
        files: list[Upload],
    ) -> None:
        self.path = path
        """The parts of the address that vary."""
        self.query = Form(query, query=True)
        self.is_list = isinstance(body, list)
        self.body = Form(body if isinstance(body, dict) else {"items": body} if isinstance(body, list) else {})
        """The fields of the body; of a body that is an array, `items`."""
        self.files = files

    def id(self, name: str) -> int:
        """An id from the address.

        Raises:
            ApiError: it is none.
        """
        number = snowflake_of(self.path[name])
        if number is None:
            raise _not_a_snowflake(name, self.path[name])
        return number

    def params(self) -> JsonObject:
        """All that was said, for the log."""
        return {**self.path, **self.query.values, **self.body.values}

    def unused(self) -> frozenset[str]:
        """The names of fields that no code of the fake looked at."""
        return frozenset(self.query.unused()) | frozenset(self.body.unused())


def _not_a_snowflake(name: str, value: str) -> ApiError:
    return invalid({name: flaw("NUMBER_TYPE_COERCE", f'Value "{value}" is not snowflake.')})
