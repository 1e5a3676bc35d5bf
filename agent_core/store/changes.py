"""That something in the database may have become other: counted, so that who shows it looks only then.

Law: once a write is answered, whether stored or not known to be, the count is another than before it. A database has one writer, so
nothing changes that is not counted here; what only proves that a write gets through is not counted.
"""

from __future__ import annotations

from agent_core.bell import Bell


class Changes:
    """`count` is compared by who looks now and then; who waits lets a bell be rung."""

    def __init__(self) -> None:
        self.count = 0
        self._bells: dict[Bell, None] = {}

    def note(self) -> None:
        """Something was committed, or may have been."""
        self.count += 1
        for bell in self._bells:
            bell.ring()

    def subscribe(self, bell: Bell) -> None:
        """Ring `bell` from now on."""
        self._bells[bell] = None

    def unsubscribe(self, bell: Bell) -> None:
        self._bells.pop(bell, None)
