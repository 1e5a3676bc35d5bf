"""What agents remember, as it is stored."""

from __future__ import annotations

from agent_core.records import dataclass, later

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
    turn: str = later("")
    """In which it was kept."""
    author: str = later("")
    """Who asked that turn, as ACCOUNT/PERSON. By this the entries of people are found who are to be forgotten."""
    writer: str = later("")
    """Their name."""
    others: bool = later(False)
    """It may be the words of others."""

    @property
    def text(self) -> str:
        """What is kept, as text. What is damaged in it is shown as damage: the rest can be read, and written anew."""
        return self.value.decode(errors="replace")
