"""What the operators' console asks: the latest of everything, each answer bounded, each look a step in an index.

The newest turns are found by their ids, which are made so that they sort by the time at which they were made.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, func, select, text, union_all
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from agent_core.limits.budgets import Level
from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.audit import AuditRow
from agent_core.store.budgets.rows import DAILY
from agent_core.store.database.asks import StoreReading
from agent_core.store.troubles.rows import FORESEEN


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A turn, with the key of its session."""

    turn: str
    session: str
    key: str
    number: int
    exit: str
    """Empty while it is open."""
    opened_at: int
    closed_at: int | None
    undone: bool
    input_tokens: int
    output_tokens: int
    quarantined: str
    """Why nothing of its session is run for now; empty if it is."""
    node: int = 0
    """Whose its session is, or was last; 0: nobody's."""


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """Messages of a session that no turn has taken yet."""

    session: str
    key: str
    count: int
    since: int
    """When the first of them came, ms."""
    quarantined: str
    """As of a turn."""


@dataclass(frozen=True, slots=True)
class ExitCount:
    """How many turns ended so, and what they used."""

    exit: str
    count: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class SpentBy:
    """What turns used that the same people asked, by the same key, and the same model answered."""

    people: str
    """As `agent_core.store.turns.rows.TurnRow.people`."""
    key: str
    model: str
    count: int
    tokens: int


LONG_MS = (1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000)
"""How long turns took is counted up to each of these, and beyond the last."""


@dataclass(frozen=True, slots=True)
class PotLevel:
    """How full a budget is in the window that runs now."""

    scope: str
    until: int
    level: Level


_QUARANTINED = func.coalesce(t.sessions.c.quarantined, "")
_TURN = select(
    t.turns.c.turn,
    t.turns.c.session,
    t.sessions.c.key,
    t.turns.c.number,
    t.turns.c.exit,
    t.turns.c.opened_at,
    t.turns.c.closed_at,
    t.turns.c.undone,
    t.turns.c.input_tokens,
    t.turns.c.output_tokens,
    _QUARANTINED,
    t.sessions.c.owner,
).join(t.sessions, t.sessions.c.session == t.turns.c.session)


class Overview(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def open_turns(self, limit: int) -> list[TurnSummary]:
        """Turns that are open, on whichever node, the newest first."""
        u = t.turns.c  # in an order that no index has: else all turns are read in that one's
        open_ones = _TURN.where(text("turns.state = 'open'")).order_by(u.opened_at.desc(), u.turn.desc())
        return await self._asks.readable("turns", open_ones, u.turn, _turn, lambda one: one.turn, limit)

    async def turns(self, limit: int) -> list[TurnSummary]:
        """The turns that were opened last, the newest first."""
        wanted = _TURN.order_by(t.turns.c.turn.desc())
        return await self._asks.readable("turns", wanted, t.turns.c.turn, _turn, lambda one: one.turn, limit)

    async def waiting(self, limit: int) -> list[WaitingMessages]:
        """Sessions with messages that wait, those that wait longest first."""
        c = t.inbox.c
        first = func.min(c.received_at)
        query = (
            select(c.session, t.sessions.c.key, func.count(), first, _QUARANTINED)
            .join(t.sessions, t.sessions.c.session == c.session)
            .where(text("inbox.state = 'new'"))
            .group_by(c.session, t.sessions.c.key, t.sessions.c.quarantined)
            .order_by(first)
            .limit(limit)
        )
        rows = await self._asks.all(query)
        return [WaitingMessages(row[0], row[1], int(row[2]), int(row[3]), row[4]) for row in rows]

    async def exits(self, since: int, until: int) -> list[ExitCount]:
        """How the turns ended that were closed from `since` on and before `until`."""
        u = t.turns.c
        c = _closed(since, until, u.exit, u.input_tokens, u.output_tokens)
        used = (func.coalesce(func.sum(c.input_tokens), 0), func.coalesce(func.sum(c.output_tokens), 0))
        query = select(c.exit, func.count(), *used).group_by(c.exit).order_by(c.exit)
        return [ExitCount(str(r[0] or ""), int(r[1]), int(r[2]), int(r[3])) for r in await self._asks.all(query)]

    async def took(self, since: int, until: int) -> list[int]:
        """How many turns took up to each of `LONG_MS`, and longer: of those that `exits` counts."""
        u = t.turns.c
        lasted = u.closed_at - u.opened_at
        bound = case(*((lasted <= most, place) for place, most in enumerate(LONG_MS)), else_=len(LONG_MS))
        c = _closed(since, until, bound.label("bound"))
        query = select(c.bound, func.count()).group_by(c.bound)
        found = {int(row[0]): int(row[1]) for row in await self._asks.all(query)}
        return [found.get(place, 0) for place in range(len(LONG_MS) + 1)]

    async def spent(self, since: int, until: int, limit: int) -> list[SpentBy]:
        """What those turns used, by who asked and which model answered; the most first."""
        u = t.turns.c
        c = _closed(since, until, u.people, u.key, u.model, u.input_tokens, u.output_tokens)
        tokens = func.sum(c.input_tokens + c.output_tokens)
        query = (
            select(c.people, c.key, c.model, func.count(), func.coalesce(tokens, 0))
            .group_by(c.people, c.key, c.model)
            .order_by(tokens.desc(), c.people, c.key, c.model)
            .limit(limit)
        )
        return [SpentBy(str(r[0]), str(r[1]), str(r[2]), int(r[3]), int(r[4])) for r in await self._asks.all(query)]

    async def broke(self, since: int, until: int) -> dict[str, int]:
        """How often model calls failed, by cause."""
        c = t.troubles.c
        query = select(c.cause, func.count()).where(
            c.at >= since, c.at < until, c.code != "answered", c.cause != FORESEEN
        )
        return {str(row[0]): int(row[1]) for row in await self._asks.all(query.group_by(c.cause))}

    async def pots(self, now: int, limit: int) -> list[PotLevel]:
        """The budgets whose window runs now and that something was put into, the fullest first."""
        c = t.budgets.c
        query = t.POT.query.where(c.until > now, c.scope.not_like(f"{DAILY}%"))
        fullest = query.order_by(c.spent_tokens.desc(), c.scope).limit(limit)
        return [PotLevel(pot.scope, pot.until, pot.level) for pot in await self._asks.made(fullest, t.POT.make)]

    async def memories(self, of: Collection[str] = ()) -> list[tuple[str, str, int, int]]:
        """How much is remembered, by (scope, kind): bytes of names and texts, and how many entries. In all, or under the scopes that are
        one of these or begin with one that ends in a slash."""
        c = t.memory.c
        size = func.sum(func.length(c.value)) + func.sum(func.length(c.name))
        query = select(c.scope, c.kind, size, func.count()).group_by(c.scope, c.kind)
        named = [self._asks.begins(c.scope, one) if one.endswith("/") else c.scope == one for one in of]
        found = {tuple(row) for which in named or [c.scope != ""] for row in await self._asks.all(query.where(which))}
        return [(str(row[0]), str(row[1]), int(row[2]), int(row[3])) for row in sorted(found)]

    async def audit(self, limit: int) -> list[AuditRow]:
        """What was done by hand, the latest first."""
        c = t.audit.c
        wanted = t.AUDIT.query.order_by(c.audit.desc())
        return await self._asks.readable("audit", wanted, c.audit, t.AUDIT.make, lambda one: one.audit, limit)


def _closed(since: int, until: int, *columns: ColumnElement[Any]) -> ReadOnlyColumnCollection[str, Any]:
    """Of the turns that were closed in between. Two questions, because there are two indexes: with one, each turn of some weeks would be looked at."""
    ended = and_(t.turns.c.closed_at >= since, t.turns.c.closed_at < until)
    kept = select(*columns).where(text("turns.state = 'closed'"), text("turns.removed = ''"), ended)
    return union_all(kept, select(*columns).where(text("turns.removed <> ''"), ended)).subquery().c


def _turn(row: Row[*tuple[Any, ...]]) -> TurnSummary:
    return TurnSummary(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4] or "",
        row[5],
        row[6],
        bool(row[7]),
        int(row[8]),
        int(row[9]),
        row[10],
        int(row[11] or 0),
    )
