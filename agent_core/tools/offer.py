"""How a module of `agent_core.tools.builtin` brings its tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from agent_core.records import dataclass
from agent_core.tools.base import MemoryStore, Tool
from agent_core.workers.pool import Workers


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What tools can be made with."""

    memory: MemoryStore
    spool: Path
    """The folder of the files that are to be sent."""
    workers: Workers


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools that a module of `agent_core.tools.builtin` brings."""

    place: int
    """Where they stand among the others, as the models read them."""
    make: Callable[[ToolParts], Iterable[Tool]]
