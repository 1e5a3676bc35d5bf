"""What the library's client tells the adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Began:
    """A session has begun that knows nothing of what was before. `shard`: the connection's number; None: there is only one."""

    shard: int | None


@dataclass(frozen=True, slots=True)
class Complete:
    """The servers of a connection are known."""

    shard: int | None


@dataclass(frozen=True, slots=True)
class Brought:
    """What a person did, as the gateway told it: the event's name, and its JSON."""

    kind: str
    data: Any


Happened: TypeAlias = Began | Complete | Brought
