"""What a tool is given that begins something which ends after its turn: a way to say so in the conversation then."""

from __future__ import annotations

from typing import Protocol

FOLLOW_UP_CHARS = 20_000
"""So much of what came of it the model is told."""


class FollowUps(Protocol):
    """Begins a turn in the conversation that another turn belongs to."""

    async def begin(self, turn: str, key: str, title: str, words: str) -> bool:
        """Something that `turn` began has ended: its conversation is told, and the model there goes on with it.

        `title` is one line for people, shown in the chat before the answer ("Command 2 (make test) has ended: exit status 0, after 4 min").
        `words` is what came of it, for the model: it may be anything, and is told as data, not as instructions. The same `key` begins one turn
        at most, however often it is said, for at least seven days; so whoever is not sure says it again.

        True: it is stored, or was before, and will be told, also after a restart. False: there is nobody to tell (the conversation was removed,
        the request brought its own history, or who asked may not talk any more). Raises `StorageUnavailable`: say it again later.
        """
        ...

    async def reaches(self, turn: str) -> bool:
        """Whether there is somebody to tell: what a model is promised. Raises `StorageUnavailable`."""
        ...


class NobodyFollows:
    """Where there is no gateway around the tools."""

    async def begin(self, turn: str, key: str, title: str, words: str) -> bool:  # noqa: ARG002 - a `FollowUps` is asked so
        return False

    async def reaches(self, turn: str) -> bool:  # noqa: ARG002
        return False


NOBODY_FOLLOWS: FollowUps = NobodyFollows()
