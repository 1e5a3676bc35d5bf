"""Who owns what is written for a chat: under whose epoch it is stored, and what it belongs to if that is no turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from adapters.delivery.reconcile import Part
from agent_core.records import dataclass
from agent_core.store.turns.rows import OpenTurn


@dataclass(frozen=True, slots=True)
class Owner:
    """Under which ownership the parts of a turn (or of a command's answer) are written."""

    session: str
    epoch: int


class Restoring(Protocol):
    """What chats are told of by an earlier process, loaded so that it can change."""

    async def load(self, turns: Sequence[OpenTurn], begun: Sequence[int]) -> None:
        """Take up all parts of turns that go on; the messages that they answer do not wait any more, and nothing says so."""
        ...

    async def load_words(self, owner: Owner, waiting: Sequence[int]) -> None:
        """Know the words about messages that still wait, so that they are taken back when their turn begins."""
        ...


STANDING = "queue:"
"""Their origins begin so. They are remembered while they stand, also when nothing else goes on in the chat."""


def queue_origin(inbox_id: int) -> str:
    """What the word about a message's place in the queue belongs to."""
    return f"{STANDING}{inbox_id}"


def is_word(part: Part) -> bool:
    """It is such a word."""
    return part.row.origin.startswith(STANDING)


def stands(part: Part) -> bool:
    """It is one, and is to be seen."""
    return is_word(part) and not part.row.gone
