"""Creep, planted: what `tests/bench/test_budgets.py` makes a gateway do more than it needs."""

from __future__ import annotations

from typing import Any


def select() -> None:
    """A turn asks the database once more."""
    from agent_core.store.sessions.access import Sessions
    from agent_core.store.turns.access import Turns

    planted: Any = Turns
    closed = planted.close

    async def close(self: Any, session: str, *arguments: Any, **given: Any) -> None:
        await closed(self, session, *arguments, **given)
        await Sessions(self._asks, self._node).one(session)

    planted.close = close


def commit() -> None:
    """A turn commits once more."""
    from agent_core.store.turns.access import Turns

    planted: Any = Turns
    closed = planted.close

    async def close(self: Any, *arguments: Any, **given: Any) -> None:
        await closed(self, *arguments, **given)
        await closed(self, *arguments, **given)  # which is told apart as the same, and changes nothing

    planted.close = close


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

    def feed(self: Any, event: Any, **given: Any) -> Any:
        for _ in range(50):
            len(())
        return fed(self, event, **given)

    planted.feed = feed


def write() -> None:
    """Each row of the journal is longer than it need be."""
    from dataclasses import replace

    from agent_core.driver import closing

    planted: Any = closing
    made = planted.row_of

    def row_of(event: Any, seq: int) -> Any:
        row = made(event, seq)
        return replace(row, body=row.body + b" " * 200)

    planted.row_of = row_of


def hold() -> None:
    """Each turn has a dozen lists more, that nobody has put anything into."""
    from agent_core.machine.turn import Turn

    planted: Any = Turn
    made, held = planted.__init__, dict[int, Any]()

    def __init__(self: Any) -> None:  # noqa: N807
        made(self)
        held[id(self)] = [[] for _ in range(12)]

    def __del__(self: Any) -> None:  # noqa: N807
        held.pop(id(self), None)

    planted.__init__, planted.__del__ = __init__, __del__


PLANTS = {one.__name__: one for one in (select, commit, copy, call, write, hold)}


def plant(*names: str) -> None:
    """Some of it; all, if none is named."""
    for name in names or PLANTS:
        PLANTS[name]()
