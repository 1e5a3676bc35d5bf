"""What can be asked of sessions, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, and_, bindparam, case, func, not_, or_, select, text, tuple_, union

from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading, around
from agent_core.store.database.keys import among
from agent_core.store.database.node import Writing
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions import upkeep
from agent_core.store.sessions.ops import Claim, Respond
from agent_core.store.sessions.rows import ConversationRow, SessionChange, SessionFigures, SessionRow
from agent_core.store.turns.rows import ROWS_A_TURN, TurnState, timed

if TYPE_CHECKING:
    from agent_core.store.sessions.copies import SessionCopy

_ONE = t.SESSION.query.where(t.sessions.c.session == bindparam("session", "", t.sessions.c.session.type))


class SessionReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def one(self, session: str) -> SessionRow | None:
        """One session, by its id."""
        found = await self._asks.made_always(_ONE, t.SESSION.make, session=session)
        return found[0] if found else None

    async def by_key(self, key: str) -> SessionRow | None:
        return await self._asks.first(t.SESSION.query.where(t.under(key)), t.SESSION.make)

    async def at_work(self, key: str) -> bool:
        """Whether a turn of the session with this key is open."""
        u = t.turns.c
        query = select(u.turn).join(t.sessions, t.sessions.c.session == u.session)
        return bool(await self._asks.all(query.where(text("turns.state = 'open'"), t.sessions.c.key == key).limit(1)))

    async def conversations(self, keys: Sequence[str], limit: int) -> list[ConversationRow]:
        """Those of the sessions with these keys that hold a turn which a model would be shown, the latest first. What cannot be read of them is
        left out (`left_out`)."""
        found, lost = await around(keys, lambda some: self._conversations(some, limit))
        self._asks.lost["conversations"] = bool(lost)
        return sorted(found, key=lambda row: (-row.at, row.key))[:limit]

    async def _conversations(self, keys: Sequence[str], limit: int) -> list[ConversationRow]:
        s, u, j, opening, latest = t.sessions.c, t.turns.c, t.journal.c, t.turns.alias("first"), t.turns.alias("last")
        first, last = opening.c, latest.c
        # the two ends by a step each: a conversation may have thousands of turns
        told = select(u.number).where(u.session == s.session, u.number > s.since, u.undone == 0).limit(1)
        begins, ends = (
            told.order_by(one).correlate(t.sessions).scalar_subquery() for one in (u.number, u.number.desc())
        )
        at = func.coalesce(last.closed_at, last.opened_at)
        query = (
            select(s.key, s.session, at, j.kind, j.body, j.at)
            .select_from(t.sessions)
            .join(opening, and_(first.session == s.session, first.number == begins))
            .join(latest, and_(last.session == s.session, last.number == ends))
            .join(t.journal, j.id == first.first_message * ROWS_A_TURN)
            .where(t.NAMED, s.key.in_(keys))
            .order_by(at.desc(), s.key)
            .limit(limit)
        )
        rows = await self._asks.all(query)
        bodies = await self._asks.whole([timed(bytes(row[4]), row[5]) for row in rows])
        return [ConversationRow(r[0], r[1], r[2], r[3], body) for r, body in zip(rows, bodies, strict=True)]

    async def named(
        self, prefixes: Sequence[str], ending: str, limit: int, after: tuple[int, str] | None, *, newest_first: bool
    ) -> list[SessionRow]:
        """Sessions whose keys begin with one of `prefixes` and have this `ending`, in the order in which they were made, behind the one that
        was made then. What makes their order never changes, so that nobody who goes through them meets one twice."""
        c = t.sessions.c
        query = self._between(prefixes, ending)
        place = tuple_(c.created_at, c.session)
        if after is not None:
            query = query.where(place < tuple_(*after) if newest_first else place > tuple_(*after))
        order = (c.created_at.desc(), c.session.desc()) if newest_first else (c.created_at, c.session)
        return [t.SESSION.make(row) for row in await self._asks.all(query.order_by(*order).limit(limit))]

    async def latest(
        self, prefixes: Sequence[str], ending: str, limit: int, but: str, mark: str, *, marked: bool
    ) -> list[SessionRow]:
        """The same, in the order in which something happened last in them, the latest first: those in whose settings `mark` stands, or the others.
        None whose keys begin with `but`."""
        c = t.sessions.c
        stands = func.coalesce(c.policy, "").contains(mark, autoescape=True)
        query = self._between(prefixes, ending).where(
            stands if marked else not_(stands), not_(self._asks.begins(c.key, but))
        )
        rows = await self._asks.all(query.order_by(c.last_at.desc(), c.session.desc()).limit(limit))
        return [t.SESSION.make(row) for row in rows]

    def _between(self, prefixes: Sequence[str], ending: str) -> Select[*tuple[Any, ...]]:
        c = t.sessions.c
        ends = func.substr(c.key, func.length(c.key) - len(ending) + 1) == ending
        if len(prefixes) == 1:
            return t.SESSION.query.where(t.NAMED, self._asks.begins(c.key, prefixes[0]), ends)
        # each by itself: with one or the other, SQLite looks at all there are
        each = (select(c.session).where(t.NAMED, self._asks.begins(c.key, one), ends) for one in prefixes)
        return t.SESSION.query.where(c.session.in_(union(*each)))

    async def figures(self, sessions: Sequence[str]) -> dict[str, SessionFigures]:
        """What is known of each by its turns; a session without any is missing."""
        u, s = t.turns.c, t.sessions.c
        is_open = u.state == TurnState.OPEN.value
        told = and_(u.number > s.since, u.undone == 0, u.removed == "")
        query = (
            select(
                u.session,
                func.sum(case((or_(told, is_open), 1), else_=0)),
                func.coalesce(func.sum(u.input_tokens), 0),
                func.coalesce(func.sum(u.output_tokens), 0),
                func.max(case((is_open, u.turn), else_="")),
                func.min(case((told, u.number))),
                func.max(case((or_(told, is_open), u.number))),
            )
            .join(t.sessions, s.session == u.session)
            .where(u.session.in_(sessions))
            .group_by(u.session)
        )
        rows = await self._asks.all(query)
        ends = [(str(row[0]), number) for row in rows for number in row[5:7] if number is not None]
        named = select(u.session, u.number, u.turn).where(among((u.session, u.number), ends))
        turns = {(str(r[0]), int(r[1])): str(r[2]) for r in await self._asks.all(named)} if ends else {}
        return {
            str(r[0]): SessionFigures(
                int(r[1]), int(r[2]), int(r[3]), str(r[4]), turns.get((r[0], r[5]), ""), turns.get((r[0], r[6]), "")
            )
            for r in rows
        }

    async def of_place(self, prefix: str) -> list[SessionRow]:
        """The sessions whose keys begin with `prefix`, but those of single requests, and those that go on in such places."""
        own = await self._asks.all(t.SESSION.query.where(t.NAMED, self._asks.begins(t.sessions.c.key, prefix)))
        p = t.places.c
        continued = select(p.continues).where(self._asks.begins(p.place, prefix), p.continues.is_not(None))
        visited = await self._asks.all(t.SESSION.query.where(t.NAMED, t.sessions.c.key.in_(continued)))
        return list({row[0]: t.SESSION.make(row) for row in (*own, *visited)}.values())

    async def starts(self, since_ms: int, until_ms: int) -> list[int]:
        """When gateways were started in between; the last start before that comes first."""
        c = t.nodes.c
        before = await self._asks.all(select(func.max(c.started_at)).where(c.started_at < since_ms))
        later = await self._asks.all(select(c.started_at).where(c.started_at >= since_ms, c.started_at <= until_ms))
        return sorted(int(row[0]) for row in (*before, *later) if row[0] is not None)


class Sessions(SessionReads, Writing):
    """All of it, for the node that writes."""

    async def claim(self, session: str) -> int:
        """Promises: the session is this node's, under the epoch returned (at least 1). A turn that a dead node left open in it is
        still to be taken up.

        Raises OwnedElsewhere if a living node owns it, LeaseLost, Conflict.
        """
        await self._node.must_live()
        return await self._writer.submit(Claim(session))

    async def respond(
        self,
        session: str,
        epoch: int,
        inbox_id: int,
        change: SessionChange,
        deliveries: Sequence[DeliveryRow],
        schedules: Sequence[ScheduleRow] = (),
    ) -> None:
        """Promises: a command is done, with what it changes and what is to be said, together or not at all.

        Raises Conflict if one of `schedules` is not as it was seen.
        """
        await self._writer.submit(Respond(session, epoch, inbox_id, change, tuple(deliveries), tuple(schedules)))

    async def change(self, session: str, epoch: int, change: SessionChange) -> None:
        """Promises: the session is changed like this."""
        await self._writer.submit(Respond(session, epoch, 0, change, ()))

    async def make(self, session: str, key: str, policy: str) -> bool:
        """Promises: there is a session with this key, which is this node's under epoch 1, and holds nothing. False if there was one before."""
        await self._node.must_live()
        at = self._node.clock.now_ms()
        return await self._writer.alone(upkeep.make(session, key, policy, at, self._node.who.node))

    async def copy(self, wanted: SessionCopy) -> bool:
        """Promises: there is a session of this node's with copies of these turns. False if there was one with its key before."""
        from agent_core.store.sessions.copies import copy  # few ask for it

        await self._node.must_live()
        return await self._writer.alone(copy(wanted, self._node.clock.now_ms(), self._node.who.node))

    async def move_chat(self, account: str, old: str, new: str) -> list[str]:
        """Promises: the sessions, the parts and the memory of chat `old` of `account` (``platform/bot/``) are those of chat `new` now. The keys of its sessions."""
        return await self._writer.alone(upkeep.move_chat(account, old, new))
