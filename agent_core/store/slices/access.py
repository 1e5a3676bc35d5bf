"""What can be asked of slices, and how they change hands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, select, update

from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.slices.rows import Division, NodeSight, SliceRow
from agent_core.store.slices.sql import DIVISION, NODES, OWNERS, PEERS, peer

Divide = Callable[[Division], Mapping[str, int]]
"""Decides which slices get which owner now."""
_MOVED = (
    update(t.slices)
    .where(t.slices.c.slice == bindparam("which"))
    .values(owner=bindparam("new_owner"), epoch=t.slices.c.epoch + 1)
)


def _division(peers: Iterable[Sequence[Any]], owners: Iterable[Sequence[Any]]) -> Division:
    rows = list(owners)
    return Division(
        tuple(peer(tuple(row)) for row in peers),
        {str(name): owner for name, owner, _ in rows},
        {str(name): int(epoch) for name, _, epoch in rows},
    )


class SliceReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def division(self) -> Division:
        """Who is there, and who works on what. On PostgreSQL alone."""
        rows = await self._asks.always(DIVISION)  # asked twice a second, for ever
        peers = sorted(tuple(row[:5]) for row in rows if row[5])
        return _division(peers, ((name, owner, epoch) for owner, name, _, epoch, _, there in rows if not there))

    async def nodes(self) -> list[NodeSight]:
        """Who is there, and how they do. On PostgreSQL alone."""
        rows = await self._asks.all(NODES)
        return [
            NodeSight(int(r[0]), str(r[1]), str(r[2]), int(r[3]), str(r[4]), max(0.0, float(r[5] or 0)), int(r[6]))
            for r in rows
        ]

    async def told(self, nodes: Collection[int]) -> dict[int, str]:
        """What these have told of themselves, also those that are gone."""
        query = select(t.nodes.c.node, t.nodes.c.told).where(t.nodes.c.node.in_(sorted(nodes)))
        return {int(node): str(words) for node, words in await self._asks.all(query)}


class Slices(SliceReads, Writing):
    """All of it, for the node that writes."""

    async def divide(self, names: Collection[str], decide: Divide) -> Division:
        """Promises: there are slices with these names, and what `decide` says of them as they are is so. One node does it at a time.

        Raises LeaseLost.
        """
        await self._node.must_live()

        def body(conn: Connection) -> Division:
            there = {str(name) for name in conn.execute(OWNERS.with_for_update()).scalars()}
            if new := sorted(set(names) - there):
                from sqlalchemy.dialects import postgresql

                rows = [t.SLICE.values(SliceRow(name)) for name in new]
                conn.execute(postgresql.insert(t.slices).on_conflict_do_nothing(), rows)
            found = conn.execute(OWNERS.with_for_update()).all()
            division = _division(conn.execute(PEERS).all(), found)
            moved = self._free(conn, division, decide(division))
            if moved:
                conn.execute(_MOVED, [{"which": name, "new_owner": owner} for name, owner in sorted(moved.items())])
            epochs = {name: division.epochs[name] + 1 for name in moved}
            return Division(division.peers, {**division.owners, **moved}, {**division.epochs, **epochs})

        return await self._writer.alone(body)

    def _free(self, conn: Connection, division: Division, moved: Mapping[str, int]) -> Mapping[str, int]:
        """Of what is to move, what may: of another node's only what that one has left for good, so that it knows if it comes back."""
        who = self._node.who
        others = {owner for name in moved if (owner := division.owners[name]) not in (None, who.node)}
        dead = who.dead(conn, others) if others else frozenset[int]()
        return {name: to for name, to in moved.items() if division.owners[name] in (None, who.node, *dead)}

    async def tell(self, words: str) -> None:
        """Promises: whoever asks how the nodes do is told this of this one.

        Raises LeaseLost.
        """
        await self._node.must_live()
        node = self._node.who.node
        await self._writer.alone(
            lambda conn: conn.execute(update(t.nodes).where(t.nodes.c.node == node).values(told=words))
        )

    async def take_part(self, address: str, serves: Collection[str]) -> None:
        """Promises: the other nodes know that this one takes part, where it is, and which accounts it serves; with no address, that it takes nothing more.

        Raises LeaseLost.
        """
        await self._node.must_live()
        said = {"address": address, "serves": orjson.dumps(sorted(serves)).decode()}
        mine = update(t.nodes).where(t.nodes.c.node == self._node.who.node).values(said)
        await self._writer.alone(lambda conn: conn.execute(mine))
