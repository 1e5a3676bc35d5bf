"""What can be asked of the store. Readers have connections of their own and never write.

Law: a read sees everything that was committed before it began, so also whatever a caller has been answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, Select, and_, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from agent_core.store import tables as t
from agent_core.store.errors import StorageUnavailable
from agent_core.store.rows import (
    CallState,
    ConversationRow,
    Delivery,
    DeliveryRow,
    DeliveryState,
    DroppedMessage,
    FailedPart,
    FailedTurn,
    GateRow,
    InboxRow,
    InboxState,
    IncidentRow,
    IncidentState,
    JournalRow,
    LinkRow,
    PersonRow,
    PersonState,
    PlaceRow,
    RungCount,
    SessionRow,
    ToolCallRow,
    TroubleCount,
    TroubleRow,
    TurnRow,
    TurnState,
    Usage,
)
from agent_core.store.trouble import in_words

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
)
_OPEN_DELIVERY = t.deliveries.c.state.in_(
    [s.value for s in (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)]
)
_NEW = InboxState.NEW.value
_OPEN = TurnState.OPEN.value


class Reads:
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    def __init__(self, engine: AsyncEngine, shown: str) -> None:
        self._engine = engine
        self._shown = shown

    async def journal(self, turn: str, after: int = -1) -> list[JournalRow]:
        """The rows of `turn` with a number above `after`, in order."""
        query = _JOURNAL.where(t.journal.c.turn == turn, t.journal.c.seq > after).order_by(t.journal.c.seq)
        return [JournalRow(r[0], r[1], bytes(r[2]), r[3]) for r in await self._all(query)]

    async def turn(self, turn: str) -> TurnRow | None:
        """One turn."""
        found = await self._all(_TURN.where(t.turns.c.turn == turn))
        return _turn(found[0]) if found else None

    async def turns(self, session: str, limit: int, before: str | None = None) -> list[TurnRow]:
        """The last `limit` turns of `session` (before the turn `before`, if given), the newest last."""
        query = _TURN.where(t.turns.c.session == session).order_by(t.turns.c.number.desc()).limit(limit)
        if before is not None:
            number = select(t.turns.c.number).where(t.turns.c.turn == before).scalar_subquery()
            query = query.where(t.turns.c.number < number)
        return [_turn(row) for row in reversed(await self._all(query))]

    async def inputs(self, turn: str) -> list[InboxRow]:
        """The messages that `turn` answers, in order of arrival. Messages that were pruned are missing."""
        query = _INBOX.where(t.turn_inputs.c.turn == turn).order_by(t.inbox.c.arrival)
        return [_inbox(row) for row in await self._all(query)]

    async def calls(self, turn: str) -> list[ToolCallRow]:
        """The tool calls of `turn`."""
        query = _CALLS.where(t.tool_calls.c.turn == turn).order_by(t.tool_calls.c.call)
        return [ToolCallRow(r[0], r[1], r[2], r[3], CallState(r[4]), r[5], r[6]) for r in await self._all(query)]

    async def pending(self, session: str) -> list[InboxRow]:
        """The messages of `session` that no turn has taken yet, in order of arrival."""
        query = _INBOX.where(t.inbox.c.session == session, t.inbox.c.state == _NEW).order_by(t.inbox.c.arrival)
        return [_inbox(row) for row in await self._all(query)]

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
        found = await self._all(_INBOX.where(t.inbox.c.id == inbox_id))
        return _inbox(found[0]) if found else None

    async def inbox_by_key(self, account: str, platform_key: str) -> InboxRow | None:
        """One message, by the platform's own id."""
        found = await self._all(_INBOX.where(t.inbox.c.account == account, t.inbox.c.platform_key == platform_key))
        return _inbox(found[0]) if found else None

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

    async def open_deliveries(self) -> list[Delivery]:
        """The parts of all surfaces that are not as they should be yet, in the order of their places."""
        return await self._deliveries(
            _DELIVERY.where(_OPEN_DELIVERY).order_by(t.deliveries.c.surface, t.deliveries.c.place)
        )

    async def deliveries_of(self, origin: str) -> list[Delivery]:
        """All parts of a turn, or of the answer to a command."""
        return await self._deliveries(_DELIVERY.where(t.deliveries.c.origin == origin).order_by(t.deliveries.c.place))

    async def failed_deliveries(self, limit: int) -> list[Delivery]:
        """Parts that were refused for good, the newest first."""
        failed = t.deliveries.c.state == DeliveryState.FAILED.value
        return await self._deliveries(_DELIVERY.where(failed).order_by(t.deliveries.c.at.desc()).limit(limit))

    async def last_place(self) -> int:
        """The highest place that a part has."""
        found = await self._all(select(func.coalesce(func.max(t.deliveries.c.place), 0)))
        return int(found[0][0])

    async def _deliveries(self, query: Select[*tuple[Any, ...]]) -> list[Delivery]:
        return [_delivery(row) for row in await self._all(query)]

    async def gates(self) -> list[GateRow]:
        """What platforms said about when to send again."""
        query = select(t.gates.c.account, t.gates.c.bucket, t.gates.c.not_before, t.gates.c.reason)
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
        """Those of the sessions with these keys that hold a turn which a model would be shown, the latest first."""
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
        return [ConversationRow(r[0], r[1], r[2], r[3], bytes(r[4])) for r in await self._all(query)]

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
        c = t.troubles.c
        counted = (c.at >= since_ms) & (c.code != "answered") & ~(c.rung.in_(hiccups) & (c.outcome == "helped"))
        if fingerprints:
            counted &= c.fingerprint.in_(fingerprints)
        totals = (
            select(
                c.fingerprint,
                func.count(c.conversation.distinct()),
                func.count(c.turn.distinct()),
                func.coalesce(func.sum(c.ended), 0),
                func.min(c.at),
                func.max(c.at),
            )
            .where(counted)
            .group_by(c.fingerprint)
            .order_by(c.fingerprint)
        )
        rungs = (
            select(c.fingerprint, c.rung, c.outcome, func.count())
            .where(counted, c.rung != "")
            .group_by(c.fingerprint, c.rung, c.outcome)
            .order_by(c.fingerprint, c.rung, c.outcome)
        )
        by_rung: dict[str, list[RungCount]] = {}
        for row in await self._all(rungs):
            by_rung.setdefault(row[0], []).append(RungCount(row[1], row[2], int(row[3])))
        return [
            TroubleCount(r[0], int(r[1]), int(r[2]), int(r[3]), int(r[4]), int(r[5]), tuple(by_rung.get(r[0], ())))
            for r in await self._all(totals)
        ]

    async def failures(self, since_ms: int, clean: Sequence[str]) -> list[FailedTurn]:
        """All failures in turns that were closed at or after a time; turns with one of the exits `clean` have ended well."""
        c, u, s = t.troubles.c, t.turns.c, t.sessions.c
        troubles = (
            select(c.at, c.turn, c.session, s.key, u.exit, c.fingerprint, c.rung, c.outcome, c.ended, c.cause)
            .join(t.turns, u.turn == c.turn)
            .join(t.sessions, s.session == c.session)
            .where(c.at >= since_ms, c.code != "answered")
        )
        told = select(c.turn).where(c.turn == u.turn, c.ended != 0).exists()
        others = (
            select(u.closed_at, u.turn, u.session, s.key, u.exit)
            .join(t.sessions, s.session == u.session)
            .where(u.state == TurnState.CLOSED.value, u.closed_at >= since_ms, u.exit.not_in(clean), ~told)
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
        dropped = query.where(c.state == InboxState.DROPPED.value, c.received_at >= since_ms)
        return [DroppedMessage(*row) for row in await self._all(dropped)]

    async def turns_closed(self, since_ms: int) -> int:
        """How many turns were closed at or after a time."""
        c = t.turns.c
        query = select(func.count()).where(c.state == TurnState.CLOSED.value, c.closed_at >= since_ms)
        return int((await self._all(query))[0][0])

    async def incidents(self, *, open_only: bool = True, limit: int = 200) -> list[IncidentRow]:
        """Incidents, the latest first."""
        c = t.incidents.c
        query = select(
            c.incident, c.fingerprint, c.state, c.code, c.endpoint, c.model, c.tool,
            c.opened_at, c.last_at, c.closed_at, c.conversations, c.turns, c.remedy,
        ).order_by(c.opened_at.desc(), c.incident).limit(limit)  # fmt: skip
        if open_only:
            query = query.where(c.state == IncidentState.OPEN.value)
        return [_incident(row) for row in await self._all(query)]

    async def memories(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        """All entries as (name, value, stored-at ms), oldest first."""
        query = (
            select(t.memory.c.name, t.memory.c.value, t.memory.c.at)
            .where(t.memory.c.scope == scope, t.memory.c.kind == kind)
            .order_by(t.memory.c.at, t.memory.c.name)
        )
        return [(str(r[0]), bytes(r[1]).decode(), int(r[2])) for r in await self._all(query)]

    async def _all(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        try:
            async with self._engine.connect() as conn:
                return (await conn.execute(query)).all()
        except (SQLAlchemyError, PoolTimeout, OSError, TimeoutError) as error:
            raise StorageUnavailable(f"The database {self._shown} cannot be read: {in_words(error)}.") from error


def _turn(row: Row[*tuple[Any, ...]]) -> TurnRow:
    return TurnRow(row[0], row[1], row[2], TurnState(row[3]), row[4], row[5], row[6], row[7], bool(row[8]))


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
        ),
    )


def _inbox(row: Row[*tuple[Any, ...]]) -> InboxRow:
    return InboxRow(
        id=row[0],
        account=row[1],
        platform_key=row[2],
        session=row[3],
        arrival=row[4],
        lane=row[5],
        body=bytes(row[6]),
        state=InboxState(row[7]),
        reason=row[8],
        received_at=row[9],
        turn=row[10],
    )
