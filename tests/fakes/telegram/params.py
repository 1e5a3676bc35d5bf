"""The parameters of a request, whichever way they came: query, form, multipart or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import orjson
from aiohttp import BodyPartReader, web

from tests.fakes.common import Json
from tests.fakes.telegram.errors import bad


@dataclass(frozen=True, slots=True)
class Upload:
    """A part of a multipart body with a file name."""

    name: str
    mime_type: str
    data: bytes


class Params:
    """Parameters by name, read by type. Remembers which ones were asked for."""

    def __init__(self, values: Mapping[str, Json], files: Mapping[str, Upload] | None = None) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.files = dict(files or {})
        self._used: set[str] = set()

    @property
    def unused(self) -> frozenset[str]:
        """The names of what nobody has asked for."""
        return frozenset(self.values) - self._used

    def has(self, name: str) -> bool:
        """Whether it is there and not empty."""
        self._used.add(name)
        return self.values.get(name, "") != ""

    def text(self, name: str) -> str:
        """A string; empty if it is not there."""
        self._used.add(name)
        value = self.values.get(name, "")
        if isinstance(value, dict | list):
            raise bad(f'field "{name}" must be of type String')
        return str(value).lower() if isinstance(value, bool) else str(value)

    def integer(self, name: str, default: int = 0) -> int:
        """A whole number, written as one or as a string."""
        if not self.has(name):
            return default
        value = self.values[name]
        try:
            if isinstance(value, str | int) and not isinstance(value, bool):
                return int(value)
        except ValueError:
            pass
        raise bad(f"invalid {name} specified: a number is expected")

    def flag(self, name: str) -> bool:
        """True for true, "true", "yes" and 1, as the server reads it."""
        return self.text(name).strip().lower() in {"true", "yes", "1"}

    def structure(self, name: str) -> Json:
        """An object or array, written as such or as a string of JSON; None if it is not there."""
        if not self.has(name):
            return None
        value = self.values[name]
        if not isinstance(value, str):
            return value
        try:
            return cast("Json", orjson.loads(value))
        except orjson.JSONDecodeError:
            raise bad(f"can't parse {name} JSON object") from None

    def integers(self, name: str) -> list[int]:
        """An array of whole numbers."""
        value = self.structure(name)
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise bad(f"can't parse {name}: an Array of Number is expected")
        return cast("list[int]", value)

    def upload(self, name: str) -> Upload | None:
        """The file of this name, or the one that `attach://…` in the parameter of this name points at."""
        self._used.add(name)
        value = self.values.get(name)
        if isinstance(value, str) and value.startswith("attach://"):
            return self.files.get(value.removeprefix("attach://"))
        return self.files.get(name)


async def read_params(request: web.Request) -> Params:
    """All parameters of a request.

    Raises:
        ApiError: the body cannot be read.
    """
    values: dict[str, Json] = dict(request.query)
    files: dict[str, Upload] = {}
    if request.content_type == "application/json":
        body = await request.read()
        try:
            parsed = cast("Json", orjson.loads(body)) if body.strip() else {}
        except orjson.JSONDecodeError:
            raise bad("can't parse JSON object") from None
        if not isinstance(parsed, dict):
            raise bad("can't parse request: an Object is expected")
        values.update(parsed)
    elif request.content_type == "application/x-www-form-urlencoded":
        try:
            form = await request.post()
        except UnicodeDecodeError:
            raise bad("strings must be encoded in UTF-8") from None
        values.update({name: value for name, value in form.items() if isinstance(value, str)})
    elif request.content_type == "multipart/form-data":
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            data = bytes(await part.read())
            named = disposition(part.headers.get("Content-Disposition", ""))
            if "filename" not in named:
                values[named.get("name", "")] = data.decode("utf-8")
            else:
                mime_type = part.headers.get("Content-Type", "application/octet-stream")
                files[named.get("name", "")] = Upload(named["filename"], mime_type, data)
    return Params(values, files)


def disposition(header: str) -> dict[str, str]:
    """What the head of a part names, as the Bot API's server reads it (`HttpReader` of https://github.com/tdlib/td): whatever stands between the
    outer quotes, up to the next semicolon. It knows of no escapes, and of no `filename*`.

    Raises:
        ApiError: it is no part of a form.
    """
    kind, _, rest = header.strip().partition(";")
    if kind != "form-data":
        raise bad("expected form-data content disposition")
    named: dict[str, str] = {}
    for piece in rest.split(";"):
        key, equals, value = piece.partition("=")
        if not equals:
            break
        value = value.strip()
        whole = len(value) > 1 and value[0] == value[-1] == '"'
        named[key.strip()] = value[1:-1] if whole else value
    return named
