"""What JSON can say, as a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import TypeAliasType

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
else:  # pydantic reads stored events by this, and wants a recursive alias to have a name
    Json = TypeAliasType("Json", "bool | int | float | str | list[Json] | dict[str, Json] | None")
