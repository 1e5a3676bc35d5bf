"""What is seldom in more than one piece: a deque takes 0.8 KiB for its first one, and a stream holds three of aiohttp's that are empty."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Few(list[T]):
    """A queue of a few, in the place of a deque."""

    __slots__ = ()

    def popleft(self) -> T:
        """The first of it, which is taken out."""
        return self.pop(0)

    def appendleft(self, piece: T) -> None:
        """It is the first now."""
        self.insert(0, piece)
