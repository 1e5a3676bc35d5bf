"""How a conversation begins, from the first row of a turn's journal: it is called so where nobody gave it a name."""

from __future__ import annotations

from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode
from agent_core.messages import text_of
from agent_core.text.shown import shortened
from agent_core.turn.events import TurnOpened

UNKNOWN = "…"
"""It cannot be read."""


def opened_of(kind: str, body: bytes) -> TurnOpened | None:
    """The event that opened a turn, from the first row of its journal; None if it cannot be read."""
    try:
        opened = decode(kind, body)
    except UnreadableJournal:
        return None
    return opened if isinstance(opened, TurnOpened) else None


def first_words(opened: TurnOpened | None) -> str:
    """What a person said in it, shortened."""
    if opened is None:
        return UNKNOWN
    return shortened(" ".join(text_of(message.content) for message in opened.input if message.role == "user"))
