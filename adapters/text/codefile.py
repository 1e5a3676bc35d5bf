"""A code block that became a file; see `files`, which a gateway without chats does not need."""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A code block that became a file."""

    name: str
    language: str
    text: str
