"""What all aggregates get in their constructors: how they ask, and, where they write, the node that writes.

An aggregate's object comes in two forms: `TurnReads` asks and works on any database that is only looked at; `Turns` writes as well, through
the one writer of its node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.database.asks import StoreAsks, StoreReading
from agent_core.store.database.ownership import Ownership, Who
from agent_core.store.database.way import BACK_SECONDS
from agent_core.store.database.writer import Writer
from agent_core.store.errors import LeaseLost, StorageUnavailable
from agent_core.store.keeping.packing import LOOKED_AT_BYTES, Packed, Piece, pack
from agent_core.store.turns.rows import JournalRow

LIVING_SECONDS = 0.05
"""So often it is looked whether it is known again."""


@dataclass(slots=True)
class Node:
    """This process, as it writes."""

    writer: Writer
    who: Who
    ownership: Ownership
    clock: Clock
    shown: str

    async def must_live(self) -> None:
        """Come back when this node certainly lives. Raises LeaseLost if it may own nothing any more, StorageUnavailable if that is not known
        for a while: a loop that stood still for a moment, or a server that stumbled, is no reason to end a start."""
        for _ in range(round(BACK_SECONDS / LIVING_SECONDS)):
            if not self.ownership.may_return():
                break
            await asyncio.sleep(LIVING_SECONDS)
        else:
            raise StorageUnavailable(f"The database {self.shown} is away.")
        if not self.ownership.lease_ok():
            raise LeaseLost(
                f"Node {self.who.node} has lost its lock in {self.shown}; open the store again as a new node."
            )


class Writing(StoreReading):
    """Every method that writes raises `StorageUnavailable` if the database is away, and `Fenced` if the session is somebody else's by now."""

    def __init__(self, asks: StoreAsks, node: Node) -> None:
        super().__init__(asks)
        self._node = node
        self._writer = node.writer


async def packed(body: bytes) -> Packed:
    """A body as it is stored; a large one is looked at beside the loop."""
    return Packed(body) if len(body) < LOOKED_AT_BYTES else await asyncio.to_thread(pack, body)


async def packed_rows(rows: Sequence[JournalRow]) -> tuple[list[JournalRow], tuple[Piece, ...]]:
    """The same of a journal's rows, and what was cut out of all of them."""
    if not [row for row in rows if len(row.body) >= LOOKED_AT_BYTES]:
        return list(rows), ()
    found = [await packed(row.body) for row in rows]
    made = [replace(row, body=one.body) for row, one in zip(rows, found, strict=True)]
    return made, tuple(piece for one in found for piece in one.pieces)
