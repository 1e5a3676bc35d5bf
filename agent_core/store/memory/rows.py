"""What agents remember, as it is stored."""

from __future__ import annotations

from agent_core.records import dataclass

LISTS = "todo"
"""The kind of the to-do lists, whose scopes are a memory's scope and the name of a workspace."""
AGENT_MARK = "\x1f"
"""What stands in a memory's scope between whose it is and the agent that keeps it for itself."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One entry."""

    scope: str
    kind: str
    name: str
    value: bytes
    at: int
    """When it was stored, ms."""
