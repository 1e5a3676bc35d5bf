"""What can be asked of failures, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import orjson
from sqlalchemy import Select, bindparam, func, select, text

from agent_core.store import tables as t
from agent_core.store.database.asks import Always, StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.troubles.ops import PutIncident
from agent_core.store.troubles.rows import (
    FORESEEN,
    FailedTurn,
    IncidentRow,
    RemedyCount,
    TroubleCount,
    TroubleRow,
)
from agent_core.store.webhooks.rows import HookRow

COUNTED_MOST = 100_000
"""So many failures are counted at most, the latest."""
SINCE = "since_ms"


_TROUBLES = t.TROUBLE.query.add_columns(t.troubles.c.turn)


class TroubleReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def of(self, conversation: str, since_ms: int, limit: int = 200) -> list[tuple[str, TroubleRow]]:
        """The latest failures of a conversation since a time, with their turns, the oldest first."""
        found = await self._asks.always(_latest(limit), conversation=conversation, since_ms=since_ms)
        return [_trouble(row) for row in reversed(found)]

    async def by(self, *, turn: str = "", fingerprint: str = "", limit: int = 200) -> list[tuple[str, TroubleRow]]:
        """Failures of a turn, or with a fingerprint, with their turns; the newest first."""
        c = t.troubles.c
        query = _TROUBLES.where(c.turn == turn if turn else (c.fingerprint == fingerprint) & (c.cause != FORESEEN))
        order = (c.number.desc(),) if turn else (c.at.desc(), c.turn, c.number)
        return [_trouble(row) for row in await self._asks.all(query.order_by(*order).limit(limit))]

    async def counts(
        self, since_ms: int, fingerprints: Sequence[str] = (), hiccups: Sequence[str] = ()
    ) -> list[TroubleCount]:
        """How often each fingerprint (of these, if some are named) came up since a time.

        Failures that a remedy of the `hiccups` cured are left out.
        """
        totals, remedies = _counting(tuple(hiccups), of_some=bool(fingerprints))
        named = {SINCE: since_ms}
        counted, tried = await self._asks.each(
            Always(totals, fingerprints, named), Always(remedies, fingerprints, named)
        )
        by_remedy: dict[str, list[RemedyCount]] = {}
        for row in tried:
            by_remedy.setdefault(row[0], []).append(RemedyCount(row[1], row[2], int(row[3])))
        return [
            TroubleCount(
                fingerprint=r[0], conversations=int(r[1]), turns=int(r[2]), ended=int(r[3]), first_at=int(r[4]), last_at=int(r[5]),
                people=int(r[6]), remedies=tuple(by_remedy.get(r[0], ())),
            )
            for r in counted
        ]  # fmt: skip

    async def people_of(self, fingerprint: str, since_ms: int, limit: int = 1_000) -> int:
        """How many people met a failure since a time; joined accounts are one person, and so are all of whom nobody knows who they are."""
        c, u = t.troubles.c, t.turns.c
        asked = (
            select(u.people).join(t.troubles, u.turn == c.turn).where(c.fingerprint == fingerprint, c.at >= since_ms)
        )
        rows = await self._asks.all(asked.where(c.cause != FORESEEN).distinct().limit(limit))
        accounts = {tuple(one) for row in rows for one in orjson.loads(row[0] or "[]")}
        links = select(t.links.c.account, t.links.c.person, t.links.c.who)
        who = {
            (row[0], row[1]): row[2]
            for row in await self._asks.all(links.where(t.links.c.person.in_({p for _, p in accounts})))
        }
        return len({who.get(one, one) for one in accounts} | {"" for row in rows if not row[0]})

    async def failures(self, since_ms: int, clean: Sequence[str]) -> list[FailedTurn]:
        """All failures in turns that were closed at or after a time; turns with one of the exits `clean` have ended well, as
        have those that were answered or handed to a client."""
        c, u, s = t.troubles.c, t.turns.c, t.sessions.c
        troubles = (
            select(c.at, c.turn, c.session, s.key, u.exit, c.fingerprint, c.rung, c.outcome, c.ended, c.cause)
            .join(t.turns, u.turn == c.turn)
            .join(t.sessions, s.session == c.session)
            .where(c.at >= since_ms, c.code != "answered", c.cause != FORESEEN)
        )
        told = select(c.turn).where(c.turn == u.turn, c.ended != 0).exists()
        others = (
            select(u.closed_at, u.turn, u.session, s.key, u.exit)
            .join(t.sessions, s.session == u.session)
            .where(t.NOT_ANSWERED, u.closed_at >= since_ms, u.exit.not_in(clean), ~told)
        )
        found = [FailedTurn(*row[:8], ended=bool(row[8]), cause=row[9]) for row in await self._asks.all(troubles)]
        return found + [FailedTurn(*row) for row in await self._asks.all(others)]

    async def incidents(self, *, open_only: bool = True, limit: int = 200) -> list[IncidentRow]:
        """Incidents, the latest first. Their ids sort by the time at which they were made."""
        rows = await self._asks.always(_incidents(limit, open_only=open_only))
        return self._asks.sensible("incidents", rows, t.INCIDENT.make)

    async def incident(self, incident: str) -> IncidentRow | None:
        return await self._asks.first(t.INCIDENT.query.where(t.incidents.c.incident == incident), t.INCIDENT.make)


class Troubles(TroubleReads, Writing):
    """All of it, for the node that writes."""

    async def put_incident(self, incident: IncidentRow, hooks: Sequence[HookRow] = ()) -> bool:
        """Promises: the incident is stored as it is. Answers whether it opens or closes by this; then `hooks` tell others of it."""
        return await self._writer.submit(PutIncident(incident, tuple(hooks)))


@cache
def _counting(hiccups: tuple[str, ...], *, of_some: bool) -> tuple[Select[*tuple[Any, ...]], Select[*tuple[Any, ...]]]:
    """What counts each fingerprint, and what counts remedies."""
    c, u = t.troubles.c, t.turns.c
    of_them = (c.at >= bindparam(SINCE, None, c.at.type)) & (c.code != "answered")
    if of_some:
        of_them &= c.fingerprint.in_(bindparam("keys", expanding=True))
    # The latest first, and a bound: else SQLite reads all of them in the order in which they are to be counted.
    latest = select(c.fingerprint, c.conversation, c.turn, c.ended, c.at, c.cause, c.rung, c.outcome, u.people)
    latest = latest.join(t.turns, u.turn == c.turn).where(of_them)
    found = latest.order_by(c.at.desc()).limit(COUNTED_MOST).subquery().c
    totals = (
        select(
            found.fingerprint,
            func.count(found.conversation.distinct()),
            func.count(found.turn.distinct()),
            func.coalesce(func.sum(found.ended), 0),
            func.min(found.at),
            func.max(found.at),
            func.count(found.people.distinct()),
        )
        .where(found.cause != FORESEEN, ~(found.rung.in_(hiccups) & (found.outcome == "helped")))
        .group_by(found.fingerprint)
        .order_by(found.fingerprint)
    )
    remedies = (
        select(found.fingerprint, found.rung, found.outcome, func.count())
        .where(found.rung != "")
        .group_by(found.fingerprint, found.rung, found.outcome)
        .order_by(found.fingerprint, found.rung, found.outcome)
    )
    return totals, remedies


@cache
def _latest(limit: int) -> Select[*tuple[Any, ...]]:
    """The latest failures of a conversation."""
    c = t.troubles.c
    mine = c.conversation == bindparam("conversation", "", c.conversation.type)
    query = _TROUBLES.where(mine, c.at >= bindparam(SINCE, 0, c.at.type))
    return query.order_by(c.at.desc(), c.turn.desc(), c.number.desc()).limit(limit)


@cache
def _incidents(limit: int, *, open_only: bool) -> Select[*tuple[Any, ...]]:
    """Incidents, the latest first."""
    c = t.incidents.c
    if not open_only:
        return t.INCIDENT.query.order_by(c.incident.desc()).limit(limit)
    # as it stands in the index, and in an order that no index has: else all are looked at in that one's
    opened = t.INCIDENT.query.where(text("incidents.state = 'open'"))
    return opened.order_by(c.opened_at.desc(), c.incident).limit(limit)


def _trouble(row: Sequence[Any]) -> tuple[str, TroubleRow]:
    return str(row[-1]), t.TROUBLE.make(row)
