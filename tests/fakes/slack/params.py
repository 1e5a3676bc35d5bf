"""The arguments of a request, whichever way they came: query, form, multipart or JSON; and its token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import orjson
from aiohttp import BodyPartReader, web

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack.errors import ApiError, bad

FORM_ONLY = frozenset({"users.info", "bots.info", "team.info", "conversations.info", "files.getUploadURLExternal"})
"""Methods for which the server does not read a body of JSON (the "content types" of their pages)."""


class Params:
    """Arguments by name, read by type. Remembers which ones were asked for."""

    def __init__(self, values: Mapping[str, Json], token: str | None = None) -> None:
        self.values = {name: value for name, value in values.items() if value is not None}
        self.token = token
        self._used: set[str] = set()

    @property
    def unused(self) -> frozenset[str]:
        """The names of what nobody has asked for."""
        return frozenset(self.values) - self._used

    def passed(self, *names: str) -> None:
        """These are known, and nothing that the fake shows depends on them."""
        self._used.update(names)

    def has(self, name: str) -> bool:
        """Whether it is there and not empty."""
        self._used.add(name)
        return self.values.get(name, "") != ""

    def text(self, name: str) -> str:
        """A string; empty if it is not there."""
        self._used.add(name)
        value = self.values.get(name, "")
        if isinstance(value, dict | list):
            raise bad("must be a string", name)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def required(self, *names: str) -> tuple[str, ...]:
        """Arguments that must be there, as strings; an object or an array gives an empty one.

        Raises:
            ApiError: one is missing.
        """
        missing = [name for name in names if not self.has(name)]
        if missing:
            raise ApiError("invalid_arguments", messages=[f"missing required field: {name}" for name in missing])
        return tuple("" if isinstance(self.values[name], dict | list) else self.text(name) for name in names)

    def integer(self, name: str, default: int) -> int:
        """A whole number, written as one or as a string."""
        if not self.has(name):
            return default
        try:
            return int(self.text(name))
        except ValueError:
            raise bad("must be an integer", name) from None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True for true, "true" and 1."""
        return self.text(name).lower() in {"true", "1"} if self.has(name) else default

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
            raise bad("must be valid JSON", name) from None

    def names(self, name: str) -> list[str]:
        """Several words, separated by commas or in an array."""
        self._used.add(name)
        value = self.values.get(name, "")
        if isinstance(value, list):
            return [str(item) for item in value]
        return [word.strip() for word in str(value).split(",") if word.strip()]


async def read_params(request: web.Request, method: str) -> Params:
    """All arguments of a request, and its token: from the header, or (not with JSON) from the argument `token`.

    Raises:
        ApiError: the body cannot be read.
    """
    values: JsonObject = dict(request.query)
    match request.content_type if request.can_read_body else "":
        case "application/json":
            parsed = await _json(request)
            if method not in FORM_ONLY:
                values.update(parsed)
                values.pop("token", None)
        case "application/x-www-form-urlencoded":
            form = await request.post()
            values.update({name: value for name, value in form.items() if isinstance(value, str)})
        case "multipart/form-data":
            async for part in await request.multipart():
                assert isinstance(part, BodyPartReader)
                values[part.name or ""] = bytes(await part.read()).decode("utf-8", "replace")
        case "" | "application/octet-stream":
            pass
        case _:
            raise ApiError("invalid_post_type")
    given = values.pop("token", None)
    kind, _, secret = request.headers.get("Authorization", "").partition(" ")
    token = secret.strip() if kind.lower() == "bearer" else None
    return Params(values, token or (str(given) if given else None))


async def _json(request: web.Request) -> JsonObject:
    try:
        parsed = cast("Json", orjson.loads(await request.read()))
    except orjson.JSONDecodeError:
        raise ApiError("invalid_json") from None
    if not isinstance(parsed, dict):
        raise ApiError("json_not_object")
    return parsed
