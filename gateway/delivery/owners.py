"""Who owns what is written for a chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

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
