"""How direct messages are answered. By itself, because the configuration knows it, and is read where nothing else of Slack's is."""

from __future__ import annotations

from enum import StrEnum


class Direct(StrEnum):
    """How direct messages are answered."""

    ONE = "one"
    """Each in a thread of its own, as Slack's agents do it; all of them are one conversation."""
    THREADS = "threads"
    """Each in a thread of its own, which is a conversation of its own."""
    FLAT = "flat"
    """Beside each other, without threads: then there are no streams and no stop button."""
