"""Removing what is old, as the gateway asks for it: in small transactions, so that others are hardly held up."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from agent_core.limits.reckoning import Leap
from agent_core.limits.retention import Keep, cutoff, next_size
from agent_core.store.database.lines import SqliteLine
from agent_core.store.database.node import Writing
from agent_core.store.database.trouble import in_words, opening
from agent_core.store.errors import Damaged
from agent_core.store.keeping import pruning
from agent_core.store.keeping.pruning import Old, Pruned, PrunedTable
from agent_core.store.keeping.retaining import Removed, Retaining

log = structlog.get_logger("storage")

PRUNE_AT_ONCE = 100
"""How many rows the first pruning transaction looks at; then it is as many as take some milliseconds."""
PRUNE_MOST = 2_000
LOG_TRIES = 50
PAUSE = 3
"""Between two transactions that remove something the writer is the others' for so many times as long."""
KEEP = Keep()
T = TypeVar("T")


class Keeping(Writing):
    """What the node that writes removes."""

    async def prune(self, now_ms: int, keep: Keep = KEEP, leaps: tuple[Leap, ...] = ()) -> Pruned:
        """Promises: gone is what is old at `now_ms` of ended messages, settled parts, failures and entries of what was done by hand;
        nothing of an open turn, and no message that a platform may bring again. What cannot be read of one kind keeps no other.

        Goes in small transactions with pauses in between, so that others are hardly held up.
        """
        now = min(now_ms, self._node.clock.now_ms())
        messages, failures, audit = (
            cutoff(now, days, leaps) for days in (keep.bodies_days, keep.failures_days, keep.audit_days)
        )
        old = pruning.Old(messages, failures, audit)
        gone: Counter[str] = Counter()
        longest, damaged = 0.0, ""
        each = [partial(self._walk, kind, gone) for kind in pruning.kinds(old)]
        for work in (*each, partial(self._rest, old), partial(self._nodes, old, gone)):
            try:
                longest = max(longest, await work())
            except Damaged as error:
                damaged = damaged or str(error)
        return Pruned(gone["messages"], gone["nodes"], gone["parts"], gone["failures"], longest, damaged)

    async def _walk(self, kind: PrunedTable, gone: Counter[str]) -> float:
        """Remove what is old of one kind, and count it; how many seconds the longest transaction took."""
        after, most, longest = None, PRUNE_AT_ONCE, 0.0
        while True:
            walked, seconds = await self._writer.timed(pruning.walk(kind, after, most))
            gone[kind.counted] += walked.count
            longest, after = max(longest, seconds), walked.after
            if after is None:
                return longest
            most = next_size(most, seconds, PRUNE_MOST)
            await asyncio.sleep(seconds * PAUSE)

    async def _rest(self, old: Old) -> float:
        return (await self._writer.timed(pruning.the_rest(old)))[1]

    async def _nodes(self, old: Old, gone: Counter[str]) -> float:
        who, longest = self._node.who, 0.0
        for (node,) in await self._asks.all(pruning.idle_nodes(old, who.node)):
            removed, seconds = await self._writer.timed(pruning.dead_node(who, node))
            gone["nodes"], longest = gone["nodes"] + removed, max(longest, seconds)
            await asyncio.sleep(seconds * PAUSE)
        return longest

    async def remove(self, body: Callable[[Connection], T]) -> T:
        """Promises: one of the transactions of `retaining` or `forgetting` is committed."""
        return await self._writer.alone(body)

    async def remove_some(self, body: Callable[[Connection], int]) -> Removed:
        """Promises: as `remove`, for those that say how much they have removed; and how long nobody else could write is told."""
        return Removed(*await self._writer.timed(body))

    async def scrub(self, most_bytes: int | None) -> bool:
        """Promises: of a SQLite database, nothing that was removed is in its log any more; and, if the answer is True, nothing is left
        between the rows of its file either, because it was written anew. Files larger than `most_bytes` are not, nor one for
        whose copies there is no room, or of which something cannot be read.

        On PostgreSQL that is the server's work, and the answer is True.
        """
        line = self._writer.line
        if not isinstance(line, SqliteLine):
            return True
        with opening(self._node.shown):
            for _ in range(LOG_TRIES):
                if await line.emptied_log():
                    break
                await asyncio.sleep(0.1)
            if most_bytes is not None and await Retaining(self._asks).database_bytes() > most_bytes:
                return False
            try:
                await line.rewrite()
            except (sqlite3.Error, OSError) as error:  # it would fail again and again, and nobody's words wait for it
                log.warning("storage.not_rewritten", database=self._node.shown, error=in_words(error))
                return False
        return True
