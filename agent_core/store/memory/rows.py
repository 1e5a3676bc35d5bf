"""What agents remember, as it is stored."""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One entry."""

    scope: str
    kind: str
    name: str
    value: bytes
    at: int
    """When it was stored, ms."""
