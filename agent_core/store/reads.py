"""What can be asked of the store. Readers have connections of their own and never write.

Law: a read sees everything that was committed before it began, so also whatever a caller has been answered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import orjson
from sqlalchemy import Column, ColumnElement, Row, Select, and_, func, or_, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from agent_core.limits.budgets import Level
from agent_core.limits.retention import DAY_MS
from agent_core.ports import time_mark
from agent_core.store import tables as t
from agent_core.store.budgets import writes as sqlbudgets
from agent_core.store.database.asks import around
from agent_core.store.database.keys import among
from agent_core.store.deliveries.auditing import Auditing
from agent_core.store.deliveries.rows import AdapterStateRow, Delivery, DeliveryRow, DeliveryState, FailedPart, GateRow
from agent_core.store.inbox.rows import DroppedMessage, InboxRow, InboxState
from agent_core.store.inbox.unread import Unread
from agent_core.store.keeping.forgetting import Forgotten
from agent_core.store.keeping.retaining import Retaining
from agent_core.store.overview import Overview
from agent_core.store.people.rows import LinkRow, PersonRow, PersonState, PlaceRow
from agent_core.store.schedules.rows import OccurrenceOutcome, OccurrenceRow, ScheduleRow, ScheduleState
from agent_core.store.sessions.asides import Asides
from agent_core.store.sessions.rows import ConversationRow, SessionRow
from agent_core.store.sessions.takeups import LeftBehind
from agent_core.store.sql import SCHEDULE, schedule_row
from agent_core.store.troubles.rows import (
    FORESEEN,
    FailedTurn,
    IncidentRow,
    IncidentState,
    RemedyCount,
    TroubleCount,
    TroubleRow,
)
from agent_core.store.turns.histories import Histories
from agent_core.store.turns.rows import CallState, JournalRow, ToolCallRow, TurnRow, TurnState, Usage

_INBOX = select(
    t.inbox.c.id,
    t.inbox.c.account,
    t.inbox.c.platform_key,
    t.inbox.c.session,
    t.inbox.c.arrival,
    t.inbox.c.lane,
    t.inbox.c.body,
    t.inbox.c.state,
    t.inbox.c.reason,
    t.inbox.c.received_at,
    t.turn_inputs.c.turn,
).select_from(t.inbox.outerjoin(t.turn_inputs, t.turn_inputs.c.inbox == t.inbox.c.id))
_TROUBLE = select(
    t.troubles.c.turn,
    t.troubles.c.number,
    t.troubles.c.at,
    t.troubles.c.conversation,
    t.troubles.c.fingerprint,
    t.troubles.c.code,
    t.troubles.c.cause,
    t.troubles.c.endpoint,
    t.troubles.c.model,
    t.troubles.c.tool,
    t.troubles.c.size,
    t.troubles.c.chars,
    t.troubles.c.rung,
    t.troubles.c.outcome,
    t.troubles.c.ended,
)
_INCIDENT = select(
    t.incidents.c.incident,
    t.incidents.c.fingerprint,
    t.incidents.c.state,
    t.incidents.c.code,
    t.incidents.c.endpoint,
    t.incidents.c.model,
    t.incidents.c.tool,
    t.incidents.c.opened_at,
    t.incidents.c.last_at,
    t.incidents.c.closed_at,
    t.incidents.c.conversations,
    t.incidents.c.turns,
    t.incidents.c.remedy,
)
_SESSION = select(
    t.sessions.c.session,
    t.sessions.c.key,
    t.sessions.c.owner,
    t.sessions.c.epoch,
    t.sessions.c.policy,
    t.sessions.c.runnable_at,
    t.sessions.c.quarantined,
    t.sessions.c.created_at,
    t.sessions.c.last_at,
    t.sessions.c.since,
)
_TURN = select(
    t.turns.c.turn,
    t.turns.c.session,
    t.turns.c.number,
    t.turns.c.state,
    t.turns.c.exit,
    t.turns.c.opened_at,
    t.turns.c.closed_at,
    t.turns.c.deadline,
    t.turns.c.undone,
    t.turns.c.removed,
)
_JOURNAL = select(t.journal.c.seq, t.journal.c.kind, t.journal.c.body, t.journal.c.at)
_CALLS = select(
    t.tool_calls.c.turn,
    t.tool_calls.c.call,
    t.tool_calls.c.tool,
    t.tool_calls.c.effect,
    t.tool_calls.c.state,
    t.tool_calls.c.key,
    t.tool_calls.c.result_ref,
)
_DELIVERY = select(
    t.deliveries.c.session,
    t.deliveries.c.surface,
    t.deliveries.c.origin,
    t.deliveries.c.bubble,
    t.deliveries.c.part,
    t.deliveries.c.place,
    t.deliveries.c.want,
    t.deliveries.c.want_hash,
    t.deliveries.c.key,
    t.deliveries.c.state,
    t.deliveries.c.rev,
    t.deliveries.c.final,
    t.deliveries.c.gone,
    t.deliveries.c.platform_id,
    t.deliveries.c.attempt,
    t.deliveries.c.sending_at,
    t.deliveries.c.retry_at,
    t.deliveries.c.labelled,
    t.deliveries.c.plain,
    t.deliveries.c.cause,
    t.deliveries.c.at,
    t.deliveries.c.failures,
    t.deliveries.c.trouble,
)
COUNTED_MOST = 100_000
"""So many failures are counted at most, the latest."""
_NEW = InboxState.NEW.value
_OPEN = TurnState.OPEN.value


class Reads(Unread):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    def __init__(self, engine: AsyncEngine, shown: str) -> None:
        super().__init__(engine, shown)
        self.overview = Overview(engine, shown)
        """What the operators' console shows: the latest of everything."""
        self.histories = Histories(engine, shown)
        """Sessions' pasts."""
        self.auditing = Auditing(engine, shown)
        """Whether what is stored is true."""
        self.retaining = Retaining(engine, shown)  # what may be removed
        self.forgotten = Forgotten(engine, shown)  # what is whose, for who is to be forgotten
        self.left = LeftBehind(engine, shown)
        """What is open, whoever has it."""
        self.asides = Asides(engine, shown)
        """Conversations that were set aside, because they cannot be read."""

    async def journal(self, turn: str, after: int = -1) -> list[JournalRow]:
        """The rows of `turn` with a number above `after`, in order."""
        query = _JOURNAL.where(t.journal.c.turn == turn, t.journal.c.seq > after).order_by(t.journal.c.seq)
        rows = await self._all(query)
        bodies = await self._whole([bytes(row[2]) for row in rows])
        return [JournalRow(r[0], r[1], body, r[3]) for r, body in zip(rows, bodies, strict=True)]

    async def turn(self, turn: str) -> TurnRow | None:
        """One turn."""
        return await self._first(_TURN.where(t.turns.c.turn == turn), _turn)

    async def turns(self, session: str, limit: int, before: str | None = None) -> list[TurnRow]:
        """The last `limit` turns of `session` (before the turn `before`, if given), the newest last."""
        query = _TURN.where(t.turns.c.session == session).order_by(t.turns.c.number.desc()).limit(limit)
        if before is not None:
            number = select(t.turns.c.number).where(t.turns.c.turn == before).scalar_subquery()
            query = query.where(t.turns.c.number < number)
        return (await self._made(query, _turn))[::-1]

    async def inputs(self, *turns: str) -> list[InboxRow]:
        """The messages that `turns` answer, in order of arrival. Messages that were pruned are missing."""
        if not turns:
            return []  # asked for none of them, SQLite would read the whole table
        query = _INBOX.where(t.turn_inputs.c.turn.in_(turns)).order_by(t.inbox.c.arrival)
        return await self._messages(query)

    async def calls(self, turn: str) -> list[ToolCallRow]:
        """The tool calls of `turn`."""
        query = _CALLS.where(t.tool_calls.c.turn == turn).order_by(t.tool_calls.c.call)
        return [ToolCallRow(r[0], r[1], r[2], r[3], CallState(r[4]), r[5], r[6]) for r in await self._all(query)]

    async def pending(self, session: str) -> list[InboxRow]:
        """The messages of `session` that no turn has taken yet, in order of arrival."""
        query = _INBOX.where(t.inbox.c.session == session, t.inbox.c.state == _NEW).order_by(t.inbox.c.arrival)
        return await self._messages(query)

    async def sessions_with_pending(self) -> list[str]:
        """Sessions that have messages which no turn has taken yet; the one that waits longest comes first."""
        oldest = func.min(t.inbox.c.arrival)
        query = select(t.inbox.c.session).where(t.inbox.c.state == _NEW).group_by(t.inbox.c.session).order_by(oldest)
        return [str(row[0]) for row in await self._all(query)]

    async def session(self, session: str) -> SessionRow | None:
        """One session, by its id."""
        found = await self._all(_SESSION.where(t.sessions.c.session == session))
        return SessionRow(*found[0]) if found else None

    async def session_by_key(self, key: str) -> SessionRow | None:
        """One session, by its key."""
        found = await self._all(_SESSION.where(t.sessions.c.key == key))
        return SessionRow(*found[0]) if found else None

    async def inbox_row(self, inbox_id: int) -> InboxRow | None:
        """One message, by its id."""
        return next(iter(await self._messages(_INBOX.where(t.inbox.c.id == inbox_id))), None)

    async def inbox_by_key(self, account: str, platform_key: str) -> InboxRow | None:
        """One message, by the platform's own id."""
        named = _INBOX.where(t.inbox.c.account == account, t.inbox.c.platform_key == platform_key)
        return next(iter(await self._messages(named)), None)

    async def _messages(self, query: Select[*tuple[Any, ...]]) -> list[InboxRow]:
        rows = await self._all(query)
        with self._sense():
            bodies = await self._whole([bytes(row[6]) for row in rows])
            return [_inbox(row, body) for row, body in zip(rows, bodies, strict=True)]

    async def cursor(self, account: str, channel: str) -> str | None:
        """How far an adapter has read `channel`; None if it never has."""
        query = select(t.cursors.c.last_seen).where(t.cursors.c.account == account, t.cursors.c.channel == channel)
        found = await self._all(query)
        return str(found[0][0]) if found else None

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        """All channels of an account that were read, and how far."""
        query = select(t.cursors.c.channel, t.cursors.c.last_seen).where(t.cursors.c.account == account)
        return [(str(row[0]), str(row[1])) for row in await self._all(query.order_by(t.cursors.c.channel))]

    async def count_open(self) -> int:
        """How many turns are open, over all sessions."""
        found = await self._all(select(func.count()).select_from(t.turns).where(t.turns.c.state == _OPEN))
        return int(found[0][0])

    async def open_deliveries(self, limit: int | None = None) -> list[Delivery]:
        """The parts of all surfaces that are not as they should be yet, in the order of their places; at most `limit`."""
        order = (t.deliveries.c.surface, t.deliveries.c.place)
        return await self._deliveries(_DELIVERY.where(t.OPEN_PARTS).order_by(*order).limit(limit))

    async def delivery(self, surface: str, origin: str, bubble: str, part: int) -> Delivery | None:
        """One part, by what names it."""
        c = t.deliveries.c
        named = (c.surface == surface, c.origin == origin, c.bubble == bubble, c.part == part)
        return next(iter(await self._deliveries(_DELIVERY.where(*named))), None)

    async def deliveries_of(self, origin: str) -> list[Delivery]:
        """All parts of a turn, or of the answer to a command."""
        return await self._deliveries(_DELIVERY.where(t.deliveries.c.origin == origin).order_by(t.deliveries.c.place))

    async def deliveries_of_all(self, origins: Sequence[str]) -> list[Delivery]:
        """All parts of these turns."""
        query = _DELIVERY.where(t.deliveries.c.origin.in_(origins))
        return await self._deliveries(query.order_by(t.deliveries.c.surface, t.deliveries.c.place)) if origins else []

    async def failed_deliveries(self, limit: int) -> list[Delivery]:
        """Parts that were refused for good, the newest first."""
        failed = t.deliveries.c.state == DeliveryState.FAILED.value
        return await self._deliveries(_DELIVERY.where(failed).order_by(t.deliveries.c.at.desc()).limit(limit))

    async def last_place(self) -> int:
        """The highest place that a part has."""
        found = await self._all(select(func.coalesce(func.max(t.deliveries.c.place), 0)))
        return int(found[0][0])

    async def _deliveries(self, query: Select[*tuple[Any, ...]]) -> list[Delivery]:
        return await self._made(query, _delivery)

    async def gates(self) -> list[GateRow]:
        """What platforms said about when to send again."""
        query = select(t.gates.c.account, t.gates.c.bucket, t.gates.c.not_before, t.gates.c.reason, t.gates.c.at)
        return [GateRow(*row) for row in await self._all(query)]

    async def people(self, account: str = "") -> list[PersonRow]:
        """Everybody who is known, the newest first; of one account, if it is named."""
        p = t.people.c
        query = select(p.account, p.person, p.state, p.name, p.code, p.code_until, p.at, p.by).order_by(p.at.desc())
        if account:
            query = query.where(p.account == account)
        return [PersonRow(r[0], r[1], PersonState(r[2]), *r[3:]) for r in await self._all(query)]

    async def places(self) -> list[PlaceRow]:
        """All private chats that are known."""
        p = t.places.c
        return [PlaceRow(*row) for row in await self._all(select(p.place, p.account, p.person, p.continues, p.at))]

    async def links(self) -> list[LinkRow]:
        """All joined accounts, in the order in which they were joined."""
        c = t.links.c
        query = select(c.account, c.person, c.who, c.name, c.username, c.at).order_by(c.at, c.account, c.person)
        return [LinkRow(*row) for row in await self._all(query)]

    async def conversations(self, keys: Sequence[str], limit: int) -> list[ConversationRow]:
        """Those of the sessions with these keys that hold a turn which a model would be shown, the latest first. What cannot be read of them is
        left out (`left_out`)."""
        found, lost = await around(keys, lambda some: self._conversations(some, limit))
        self._left_out["conversations"] = bool(lost)
        return sorted(found, key=lambda row: (-row.at, row.key))[:limit]

    async def _conversations(self, keys: Sequence[str], limit: int) -> list[ConversationRow]:
        u = t.turns.c
        held = select(
            t.sessions.c.key,
            t.sessions.c.session,
            func.min(u.number).label("first"),
            func.max(func.coalesce(u.closed_at, u.opened_at)).label("at"),
        ).join(t.turns, u.session == t.sessions.c.session)
        known = (
            held.where(t.sessions.c.key.in_(keys), u.number > t.sessions.c.since, u.undone == 0)
            .group_by(t.sessions.c.key, t.sessions.c.session)
            .subquery()
        )
        j = t.journal.c
        query = (
            select(known.c.key, known.c.session, known.c.at, j.kind, j.body)
            .join(t.turns, and_(u.session == known.c.session, u.number == known.c.first))
            .join(t.journal, and_(j.turn == u.turn, j.seq == 0))
            .order_by(known.c.at.desc(), known.c.key)
            .limit(limit)
        )
        rows = await self._all(query)
        bodies = await self._whole([bytes(row[4]) for row in rows])
        return [ConversationRow(r[0], r[1], r[2], r[3], body) for r, body in zip(rows, bodies, strict=True)]

    async def schedule(self, schedule: str) -> ScheduleRow | None:
        """One schedule."""
        found = await self._schedules(SCHEDULE.where(t.schedules.c.schedule == schedule))
        return found[0] if found else None

    async def schedules_of(self, session_key: str, kind: str) -> list[ScheduleRow]:
        """The active schedules of a session, the next one first."""
        mine = (t.schedules.c.session_key == session_key, t.schedules.c.kind == kind)
        query = SCHEDULE.where(*mine, t.schedules.c.state == ScheduleState.ACTIVE.value)
        found = await self._schedules(query.order_by(t.schedules.c.next_at, t.schedules.c.schedule))
        return sorted(found, key=lambda row: (row.next_at or 0, row.schedule))

    async def schedules(self, prefix: str) -> list[ScheduleRow]:
        """All schedules whose ids begin so, whatever their state."""
        named = self._begins(t.schedules.c.schedule, prefix)
        return await self._schedules(SCHEDULE.where(named).order_by(t.schedules.c.schedule))

    async def due_schedules(self, now_ms: int) -> list[ScheduleRow]:
        """The active schedules with an occurrence at or before `now_ms`, the oldest first."""
        due = (t.schedules.c.state == ScheduleState.ACTIVE.value, t.schedules.c.next_at <= now_ms)
        found = await self._schedules(SCHEDULE.where(*due).order_by(t.schedules.c.next_at, t.schedules.c.schedule))
        return sorted(found, key=lambda row: (row.next_at or 0, row.schedule))

    async def next_occurrence(self) -> int | None:
        """When the next occurrence of all is due, ms; None if there is none."""
        query = select(func.min(t.schedules.c.next_at)).where(t.schedules.c.state == ScheduleState.ACTIVE.value)
        found = (await self._all(query))[0][0]
        return None if found is None else int(found)

    async def occurrences(self, schedule: str) -> list[OccurrenceRow]:
        """What was claimed of a schedule, in order."""
        o = t.occurrences.c
        query = select(o.schedule, o.due_at, o.last_at, o.count, o.outcome, o.at, o.inbox).where(o.schedule == schedule)
        rows = await self._all(query.order_by(o.due_at))
        return [OccurrenceRow(r[0], r[1], r[2], r[3], OccurrenceOutcome(r[4]), r[5], r[6]) for r in rows]

    async def _schedules(self, query: Select[*tuple[Any, ...]]) -> list[ScheduleRow]:
        c = t.schedules.c
        return await self._readable("schedules", query, c.schedule, schedule_row, lambda one: one.schedule)

    async def usage(self, session: str, since_ms: int = 0) -> Usage:
        """What the turns of a session used that ended at or after a time."""
        query = select(
            func.count(),
            func.coalesce(func.sum(t.turns.c.input_tokens), 0),
            func.coalesce(func.sum(t.turns.c.output_tokens), 0),
        ).where(t.turns.c.session == session, t.turns.c.closed_at >= since_ms)
        found = await self._all(query)
        return Usage(int(found[0][0]), int(found[0][1]), int(found[0][2]))

    async def troubles_of(self, conversation: str, since_ms: int, limit: int = 200) -> list[tuple[str, TroubleRow]]:
        """The latest failures of a conversation since a time, with their turns, the oldest first."""
        query = (
            _TROUBLE.where(t.troubles.c.conversation == conversation, t.troubles.c.at >= since_ms)
            .order_by(t.troubles.c.at.desc(), t.troubles.c.turn.desc(), t.troubles.c.number.desc())
            .limit(limit)
        )
        return [_trouble(row) for row in reversed(await self._all(query))]

    async def trouble_counts(
        self, since_ms: int, fingerprints: Sequence[str] = (), hiccups: Sequence[str] = ()
    ) -> list[TroubleCount]:
        """How often each fingerprint (of these, if some are named) came up since a time.

        Failures that a remedy of the `hiccups` cured are left out.
        """
        c, u = t.troubles.c, t.turns.c
        of_them = (c.at >= since_ms) & (c.code != "answered")
        if fingerprints:
            of_them &= c.fingerprint.in_(fingerprints)
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
        by_remedy: dict[str, list[RemedyCount]] = {}
        for row in await self._all(remedies):
            by_remedy.setdefault(row[0], []).append(RemedyCount(row[1], row[2], int(row[3])))
        return [
            TroubleCount(
                fingerprint=r[0], conversations=int(r[1]), turns=int(r[2]), ended=int(r[3]), first_at=int(r[4]), last_at=int(r[5]),
                people=int(r[6]), remedies=tuple(by_remedy.get(r[0], ())),
            )
            for r in await self._all(totals)
        ]  # fmt: skip

    async def people_of(self, fingerprint: str, since_ms: int, limit: int = 1_000) -> int:
        """How many people met a failure since a time; joined accounts are one person, and so are all of whom nobody knows who they are."""
        c, u = t.troubles.c, t.turns.c
        asked = (
            select(u.people).join(t.troubles, u.turn == c.turn).where(c.fingerprint == fingerprint, c.at >= since_ms)
        )
        rows = await self._all(asked.where(c.cause != FORESEEN).distinct().limit(limit))
        accounts = {tuple(one) for row in rows for one in orjson.loads(row[0] or "[]")}
        links = select(t.links.c.account, t.links.c.person, t.links.c.who)
        who = {
            (row[0], row[1]): row[2]
            for row in await self._all(links.where(t.links.c.person.in_({p for _, p in accounts})))
        }
        return len({who.get(one, one) for one in accounts} | {"" for row in rows if not row[0]})

    async def failures(self, since_ms: int, clean: Sequence[str]) -> list[FailedTurn]:
        """All failures in turns that were closed at or after a time; turns with one of the exits `clean` have ended well."""
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
            .where(_closed_since(since_ms), u.exit.not_in(clean), ~told)
        )
        found = [FailedTurn(*row[:8], ended=bool(row[8]), cause=row[9]) for row in await self._all(troubles)]
        return found + [FailedTurn(*row) for row in await self._all(others)]

    async def failed_parts(self, since_ms: int) -> list[FailedPart]:
        """Parts that were refused for good at or after a time."""
        c = t.deliveries.c
        query = select(c.at, c.session, c.surface, c.origin, c.cause)
        failed = query.where(c.state == DeliveryState.FAILED.value, c.at >= since_ms)
        return [FailedPart(*row) for row in await self._all(failed)]

    async def dropped_messages(self, since_ms: int) -> list[DroppedMessage]:
        """Messages that came at or after a time and were not run."""
        c = t.inbox.c
        query = select(c.received_at, c.session, c.account, c.id, func.coalesce(c.reason, ""))
        first = await self.inbox_near(since_ms)
        dropped = query.where(c.id >= first, c.state == InboxState.DROPPED.value, c.received_at >= since_ms)
        return [DroppedMessage(*row) for row in await self._all(dropped)]

    async def turns_closed(self, since_ms: int) -> int:
        """How many turns were closed at or after a time."""
        query = select(func.count()).select_from(t.turns).where(_closed_since(since_ms))
        return int((await self._all(query))[0][0])

    async def incidents(self, *, open_only: bool = True, limit: int = 200) -> list[IncidentRow]:
        """Incidents, the latest first."""
        c = t.incidents.c
        query = _INCIDENT.order_by(c.opened_at.desc(), c.incident).limit(limit)
        if open_only:
            query = query.where(c.state == IncidentState.OPEN.value)
        return [_incident(row) for row in await self._all(query)]

    async def levels(self, pots: Collection[tuple[str, int]]) -> dict[tuple[str, int], Level]:
        """How full these pots are, by (scope, window); those that nothing was put into are missing."""
        if not pots:
            return {}
        these = among((t.budgets.c.scope, t.budgets.c.window), sorted(pots))
        found = await self._all(select(*sqlbudgets.LEVEL_COLUMNS).where(these))
        return {(str(row[0]), int(row[1])): sqlbudgets.level_of(row) for row in found}

    # ------------------------------------------------------------------ tracing

    async def adapter_states(self, since_ms: int, until_ms: int, account: str = "") -> list[AdapterStateRow]:
        """The states of the adapters (of one, if it is named) from a time to another: the one in force at its beginning first."""
        c = t.adapter_states.c
        named = [account] if account else await self._distinct(c.account)
        found: list[AdapterStateRow] = []
        for one in named:
            mine = select(c.account, c.at, c.state, c.words).where(c.account == one)
            before = await self._all(mine.where(c.at < since_ms).order_by(c.at.desc()).limit(1))
            later = await self._all(mine.where(c.at >= since_ms, c.at <= until_ms).order_by(c.at))
            found += [AdapterStateRow(*row) for row in (*before, *later)]
        return found

    async def accounts(self) -> list[str]:
        """All accounts that a message was stored for."""
        return await self._distinct(t.inbox.c.account)

    async def _distinct(self, column: Column[str]) -> list[str]:
        """The different values of a column that leads an index: a step each, however many rows there are."""
        found: list[str] = []
        while True:
            query = select(func.min(column))
            value = (await self._all(query.where(column > found[-1]) if found else query))[0][0]
            if value is None:
                return found
            found.append(str(value))

    async def sessions_of_place(self, prefix: str) -> list[SessionRow]:
        """The sessions whose keys begin with `prefix`, and those that go on in such places."""
        own = await self._all(_SESSION.where(self._begins(t.sessions.c.key, prefix)))
        p = t.places.c
        continued = select(p.continues).where(self._begins(p.place, prefix), p.continues.is_not(None))
        visited = await self._all(_SESSION.where(t.sessions.c.key.in_(continued)))
        return list({row[0]: SessionRow(*row) for row in (*own, *visited)}.values())

    async def turns_between(self, session: str, since_ms: int, until_ms: int, limit: int = 20) -> list[TurnRow]:
        """The turns of a session that were open at some time in between, the oldest first; the latest `limit`."""
        c = t.turns.c
        mine = _TURN.where(c.session == session).order_by(c.number.desc())
        newest = await self._all(mine.limit(1))
        low, high = 0, _turn(newest[0]).number if newest else 0
        while low < high:  # a search by halves for the last that had begun: they are numbered as they begin
            middle = (low + high + 1) // 2
            row = await self._all(mine.where(c.number <= middle).limit(1))
            if row and _turn(row[0]).opened_at > until_ms:
                high = min(middle, _turn(row[0]).number) - 1
            else:
                low = middle
        rows = await self._all(mine.where(c.number <= high, c.number > high - limit))
        turns = [_turn(row) for row in reversed(rows)]
        return [u for u in turns if u.closed_at is None or u.closed_at >= since_ms]

    async def bugs(self, since_ms: int, until_ms: int, limit: int = 50) -> list[TurnRow]:
        """The turns that a mistake of the program's own ended in between."""
        c = t.turns.c
        query = _TURN.where(text("exit = 'internal_error'"), c.closed_at >= since_ms, c.closed_at <= until_ms)
        return [_turn(row) for row in await self._all(query.order_by(c.closed_at).limit(limit))]

    async def inbox_near(self, at_ms: int) -> int:
        """The number of the first message received at or after a time; one above the last if there is none.

        Messages are numbered as they are received, so this is a search by halves. A clock that was set back makes it inexact.
        """
        c = t.inbox.c
        lowest, highest = (select(edge(c.id)).scalar_subquery() for edge in (func.min, func.max))
        ends = (await self._all(select(lowest, highest)))[0]  # apart: SQLite reads all rows for both in one
        if ends[0] is None:
            return 1
        low, high = int(ends[0]), int(ends[1]) + 1
        while low < high:
            middle = (low + high) // 2
            row = (await self._all(select(c.id, c.received_at).where(c.id >= middle).order_by(c.id).limit(1)))[0]
            if int(row[1]) < at_ms:
                low = int(row[0]) + 1
            else:
                high = middle
        return low

    async def inbox_beside(self, number: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The stored messages next to a number, below and above it, each as (number, ms); None where there is none."""
        c = t.inbox.c
        query = select(c.id, c.received_at).limit(1)
        below = await self._all(query.where(c.id < number).order_by(c.id.desc()))
        above = await self._all(query.where(c.id > number).order_by(c.id))
        return next(((int(r[0]), int(r[1])) for r in below), None), next(((int(r[0]), int(r[1])) for r in above), None)

    async def inbox_between(
        self, first: int, last: int, sessions: Sequence[str] = (), *, ends: str = ""
    ) -> list[InboxRow]:
        """Messages by number, the ends included: of these sessions, if some are named; with a key that ends so, if one is given."""
        query = _INBOX.where(t.inbox.c.id >= first, t.inbox.c.id <= last)
        if sessions:
            query = query.where(t.inbox.c.session.in_(sessions))
        if ends:
            query = query.where(t.inbox.c.platform_key.endswith(ends, autoescape=True))
        return await self._messages(query.order_by(t.inbox.c.id))

    async def inbox_by_keys(self, account: str, keys: Sequence[str], prefix: str = "") -> list[InboxRow]:
        """Messages of an account by their keys, or by what the key begins with."""
        named = t.inbox.c.platform_key.in_(keys)
        which = or_(named, self._begins(t.inbox.c.platform_key, prefix)) if prefix else named
        return await self._messages(_INBOX.where(t.inbox.c.account == account, which).limit(20))

    async def deliveries_by(self, *, receipt: str = "", number: int = 0) -> list[Delivery]:
        """Parts by the platform's id of their message, or by their number, the newest first."""
        c = t.deliveries.c
        which = c.id == number if number else and_(c.platform_id == receipt, text("platform_id is not null"))
        return await self._deliveries(_DELIVERY.where(which).order_by(c.id.desc()).limit(20))

    async def incident(self, incident: str) -> IncidentRow | None:
        """One incident."""
        found = await self._all(_INCIDENT.where(t.incidents.c.incident == incident))
        return _incident(found[0]) if found else None

    async def troubles_by(
        self, *, turn: str = "", fingerprint: str = "", limit: int = 200
    ) -> list[tuple[str, TroubleRow]]:
        """Failures of a turn, or with a fingerprint, with their turns; the newest first."""
        c = t.troubles.c
        query = _TROUBLE.where(c.turn == turn if turn else (c.fingerprint == fingerprint) & (c.cause != FORESEEN))
        order = (c.number.desc(),) if turn else (c.at.desc(), c.turn, c.number)
        return [_trouble(row) for row in await self._all(query.order_by(*order).limit(limit))]

    async def starts(self, since_ms: int, until_ms: int) -> list[int]:
        """When gateways were started in between; the last start before that comes first."""
        c = t.nodes.c
        before = await self._all(select(func.max(c.started_at)).where(c.started_at < since_ms))
        later = await self._all(select(c.started_at).where(c.started_at >= since_ms, c.started_at <= until_ms))
        return sorted(int(row[0]) for row in (*before, *later) if row[0] is not None)

    # ------------------------------------------------------------------ memory

    async def memories(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        query = (
            select(t.memory.c.name, t.memory.c.value, t.memory.c.at)
            .where(t.memory.c.scope == scope, t.memory.c.kind == kind)
            .order_by(t.memory.c.at, t.memory.c.name)
        )
        return [(str(r[0]), bytes(r[1]).decode(), int(r[2])) for r in await self._all(query)]


def _closed_since(since_ms: int) -> ColumnElement[bool]:
    """Turns that were closed at or after a time. An index has those with a journal; of the others those that lasted for more than a day are
    left out, because they are found by their ids, which sort by when they were opened."""
    u = t.turns.c
    kept = and_(text("turns.state = 'closed'"), text("turns.removed = ''"), u.closed_at >= since_ms)
    others = and_(u.turn >= f"t_{time_mark(since_ms - DAY_MS)}", u.removed != "", u.closed_at >= since_ms)
    return or_(kept, others)


def _turn(row: Row[*tuple[Any, ...]]) -> TurnRow:
    return TurnRow(row[0], row[1], row[2], TurnState(row[3]), row[4], row[5], row[6], row[7], bool(row[8]), row[9])


def _trouble(row: Row[*tuple[Any, ...]]) -> tuple[str, TroubleRow]:
    made = TroubleRow(
        number=row[1], at=row[2], conversation=row[3], fingerprint=row[4], code=row[5], cause=row[6], endpoint=row[7],
        model=row[8], tool=row[9], size=row[10], chars=row[11], rung=row[12], outcome=row[13], ended=bool(row[14]),
    )  # fmt: skip
    return str(row[0]), made


def _incident(row: Row[*tuple[Any, ...]]) -> IncidentRow:
    return IncidentRow(
        incident=row[0], fingerprint=row[1], state=IncidentState(row[2]), code=row[3], endpoint=row[4], model=row[5],
        tool=row[6], opened_at=row[7], last_at=row[8], closed_at=row[9], conversations=row[10], turns=row[11], remedy=row[12],
    )  # fmt: skip


def _delivery(row: Row[*tuple[Any, ...]]) -> Delivery:
    return Delivery(
        session=row[0],
        row=DeliveryRow(
            surface=row[1],
            origin=row[2],
            bubble=row[3],
            part=row[4],
            place=row[5],
            want=bytes(row[6]),
            want_hash=row[7],
            key=row[8],
            state=DeliveryState(row[9]),
            rev=row[10],
            final=bool(row[11]),
            gone=bool(row[12]),
            platform_id=row[13],
            attempt=row[14],
            sending_at=row[15],
            retry_at=row[16],
            labelled=bool(row[17]),
            plain=bool(row[18]),
            cause=row[19],
            at=row[20],
            failures=row[21],
            trouble=row[22],
        ),
    )


def _inbox(r: Row[*tuple[Any, ...]], body: bytes) -> InboxRow:
    return InboxRow(r[0], r[1], r[2], r[3], r[4], r[5], body, InboxState(r[7]), r[8], r[9], r[10])
