"""Words beside turns that are true until they are taken back: a message's place in the queue."""

from __future__ import annotations

from adapters.delivery.reconcile import Part

STANDING = "queue:"
"""Their origins begin so. They are remembered while they stand, also when nothing else goes on in the chat."""


def queue_origin(inbox_id: int) -> str:
    """What the word about a message's place in the queue belongs to."""
    return f"{STANDING}{inbox_id}"


def stands(part: Part) -> bool:
    """It is such a word, and is to be seen."""
    return part.row.origin.startswith(STANDING) and not part.row.gone
