"""What the API answers when all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.common import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Reply:
    """A status with a body; None: no body."""

    status: int
    body: Json = None


def done(body: JsonObject | Sequence[Json], status: int = 200) -> Reply:
    """200, or another good status, with JSON."""
    return Reply(status, body if isinstance(body, dict) else list(body))


def nothing() -> Reply:
    """204."""
    return Reply(204)
