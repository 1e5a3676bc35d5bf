"""How a module of `agent_core.tools.builtin` brings its tools, and whose tools a turn may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

from agent_core.records import dataclass
from agent_core.tools.base import MemoryStore, Tool
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.workers.pool import Workers


class ToolsFrom(StrEnum):
    """Whose tools a turn may use: who asks agrees to that."""

    NONE = "none"
    CLIENT = "client"
    GATEWAY = "gateway"
    BOTH = "both"

    @property
    def clients(self) -> bool:
        return self in (ToolsFrom.CLIENT, ToolsFrom.BOTH)

    @property
    def gateways(self) -> bool:
        return self in (ToolsFrom.GATEWAY, ToolsFrom.BOTH)

    def within(self, allowed: ToolsFrom) -> ToolsFrom:
        """What is left of it where no more than `allowed` may be used (by a key, for example)."""
        clients, gateways = self.clients and allowed.clients, self.gateways and allowed.gateways
        if clients:
            return ToolsFrom.BOTH if gateways else ToolsFrom.CLIENT
        return ToolsFrom.GATEWAY if gateways else ToolsFrom.NONE


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What tools can be made with."""

    memory: MemoryStore
    spool: Path
    """The folder of the files that are to be sent."""
    workers: Workers
    follow_ups: FollowUps = NOBODY_FOLLOWS
    """Tells a conversation of what ended after its turn."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a module of `agent_core.tools.builtin` brings."""

    place: int
    """Where they stand among the others, as the models read them."""
    make: Callable[[ToolParts], Iterable[Tool]]


@dataclass(frozen=True, slots=True)
class Unusable:
    """Something that was to bring a tool or a skill and brings none; the rest is offered."""

    source: str
    why: str
