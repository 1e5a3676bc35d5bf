"""Creep, planted: what `tests/bench/test_budgets.py` makes a gateway do more than it needs."""

from __future__ import annotations

from typing import Any


def select() -> None:
    """A turn asks the database once more."""
    from agent_core.store.sessions.access import Sessions
    from agent_core.store.turns.access import Turns

    planted: Any = Turns
    begun = planted.start

    async def start(self: Any, *arguments: Any, **given: Any) -> None:
        await begun(self, *arguments, **given)
        await Sessions(self._asks, self._node).one(given["session"])

    planted.start = start


def commit() -> None:
    """A turn commits once more."""
    from agent_core.store.turns.access import Turns

    planted: Any = Turns
    begun = planted.start

    async def start(self: Any, *arguments: Any, **given: Any) -> None:
        await begun(self, *arguments, **given)
        await begun(self, *arguments, **given)  # which is told apart as the same, and changes nothing

    planted.start = start


def copy() -> None:
    """What came from the model is copied once more."""
    from agent_core.model.stream.alike import BodyReader

    planted: Any = BodyReader
    fed = planted.feed

    def feed(self: Any, data: bytes, at: int) -> Any:
        return fed(self, bytes(bytearray(data)), at)

    planted.feed = feed


def call() -> None:
    """A turn calls a hundred and fifty things more, all of them small."""
    from agent_core.machine.turn import Turn

    planted: Any = Turn
    fed = planted.feed

    def feed(self: Any, event: Any) -> Any:
        for _ in range(50):
            len(())
        return fed(self, event)

    planted.feed = feed


def plant() -> None:
    """All of it."""
    for one in (select, commit, copy, call):
        one()
