"""What this process has in hand, for whoever reads from the database what there is to do.

Theory. What is in hand stands in the database as not done yet, so whoever reads what is to be done leaves it out. But a reading takes its time: what
was stored as done while it was under way is not in hand any more, and still stands in what was read. Done once more it would be sent twice, or would stop
what came after it. So a reading is held against all that was in hand at any time since it began.

Law (tests/gateway/test_inhand.py): what is stored as done before it leaves the hand is never taken for new by a reading, however both fall together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class InHand(Generic[K, V]):
    """Things by their names."""

    def __init__(self) -> None:
        self._things: dict[K, V] = {}
        self._readings: dict[int, set[K]] = {}

    def __contains__(self, name: K) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[V]:
        """The things themselves."""
        return iter([*self._things.values()])

    def __len__(self) -> int:
        return len(self._things)

    def take(self, name: K, thing: V) -> None:
        """It is begun."""
        self._things[name] = thing
        for seen in self._readings.values():
            seen.add(name)

    def leave(self, name: K) -> None:
        """It is over, and what came of it is stored."""
        self._things.pop(name, None)

    @contextmanager
    def reading(self) -> Generator[set[K]]:
        """What is to be done is read in the block: of that, what this names was in hand meanwhile, and is not to be begun."""
        seen = {*self._things}
        self._readings[id(seen)] = seen
        try:
            yield seen
        finally:
            del self._readings[id(seen)]
