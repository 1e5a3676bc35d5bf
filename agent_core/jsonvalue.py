"""What JSON can say, as a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import TypeAliasType

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:  # pydantic reads stored events by this, and wants a recursive alias to have a name
    Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")


def read_loosely(data: bytes) -> Json:
    """What another program says, which may be a little off: behind a byte order mark, with NaN, or with half a character, as where somebody cuts a
    text within an emoji. Raises `ValueError`."""
    import orjson

    text = data.decode("utf-8-sig")
    try:
        found: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        import json

        try:
            loose = json.loads(text, parse_constant=lambda _: None)
        except RecursionError as error:
            raise ValueError("too deep") from error
        found = orjson.loads(json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace"))
    return found
