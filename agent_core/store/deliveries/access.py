"""What can be asked of parts, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, Select, and_, case, exists, func, or_, select, text

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.audit import AuditRow
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing
from agent_core.store.deliveries.ops import Act, PutDeliveries, PutGate
from agent_core.store.deliveries.rows import (
    MOST_PLACE,
    AdapterStateRow,
    Delivery,
    DeliveryRow,
    DeliveryState,
    FailedPart,
    GateRow,
)
from agent_core.store.sessions import upkeep
from agent_core.store.turns.rows import (
    TurnState,
)
from agent_core.store.webhooks.rows import HookRow


class Lie(StrEnum):
    """What is wrong with a part."""

    OPEN = "open"
    """It is to be changed still: wanted, or being sent, or nobody knows whether it was."""
    UNDONE = "undone"
    """It is sent, but not as it is wanted: it should be gone, or grows still, or has no message."""
    UNENDED = "unended"
    """It is sent, and is on its way still, although nothing can change it any more."""
    UNTOLD = "untold"
    """It was taken away, and its turn left nothing else in the chat."""


@dataclass(frozen=True, slots=True)
class Lying:
    """A part that is not as it should be at rest."""

    lie: Lie
    surface: str
    origin: str
    bubble: str
    part: int
    state: DeliveryState
    at: int
    """When it was changed last, ms."""


NEWEST = 200
"""So many parts can be stored in another order than they got their places."""
_PARTS = t.PART.query.add_columns(t.deliveries.c.session)
_newest = select(t.deliveries.c.place).order_by(t.deliveries.c.id.desc()).limit(NEWEST).subquery()
_LAST_PLACE = select(func.coalesce(func.max(case((_newest.c.place < MOST_PLACE, _newest.c.place))), 0))


class DeliveryReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def open(self, limit: int | None = None) -> list[Delivery]:
        """The parts of all surfaces that are not as they should be yet, in the order of their places; at most `limit`."""
        order = (t.deliveries.c.surface, t.deliveries.c.place)
        return await self._deliveries(_PARTS.where(t.OPEN_PARTS).order_by(*order).limit(limit))

    async def one(self, surface: str, origin: str, bubble: str, part: int) -> Delivery | None:
        """One part, by what names it."""
        c = t.deliveries.c
        named = (c.surface == surface, c.origin == origin, c.bubble == bubble, c.part == part)
        return next(iter(await self._deliveries(_PARTS.where(*named))), None)

    async def shown(self, surface: str, origin: str) -> bool:
        """Whether anything of a turn is, or was, to be seen there."""
        c = t.deliveries.c
        return bool(await self._asks.all(select(c.id).where(c.surface == surface, c.origin == origin).limit(1)))

    async def of(self, origin: str) -> list[Delivery]:
        """All parts of a turn, or of the answer to a command."""
        return await self._deliveries(_PARTS.where(t.deliveries.c.origin == origin).order_by(t.deliveries.c.place))

    async def of_all(self, origins: Sequence[str]) -> list[Delivery]:
        """All parts of these turns."""
        query = _PARTS.where(t.deliveries.c.origin.in_(origins))
        return await self._deliveries(query.order_by(t.deliveries.c.surface, t.deliveries.c.place)) if origins else []

    async def failed(self, limit: int) -> list[Delivery]:
        """Parts that were refused for good, the newest first."""
        return await self._deliveries(_PARTS.where(t.FAILED_PARTS).order_by(t.deliveries.c.at.desc()).limit(limit))

    async def last_place(self) -> int:
        """The highest place of the parts that were stored last: places rise with them, and the highest of all would be looked for in every row."""
        found = await self._asks.always(_LAST_PLACE)
        return int(found[0][0])

    async def by(self, *, receipt: str = "", number: int = 0) -> list[Delivery]:
        """Parts by the platform's id of their message, or by their number, the newest first."""
        c = t.deliveries.c
        which = c.id == number if number else and_(c.platform_id == receipt, text("platform_id is not null"))
        return await self._deliveries(_PARTS.where(which).order_by(c.id.desc()).limit(20))

    async def failed_parts(self, since_ms: int) -> list[FailedPart]:
        """Parts that were refused for good at or after a time."""
        c = t.deliveries.c
        query = select(c.at, c.session, c.surface, c.origin, c.cause)
        failed = query.where(t.FAILED_PARTS, c.at >= since_ms)
        return [FailedPart(*row) for row in await self._asks.all(failed)]

    async def lying(self, limit: int = 100, since_ms: int = 0) -> list[Lying]:
        """Parts that are not as they should be at rest. While something is being sent, what is under way is among them.

        Whether a turn has left nothing is asked of those that ended after `since_ms`: of older ones parts may be pruned.
        """
        c = t.deliveries.c
        runs = exists().where(t.turns.c.turn == c.origin, t.turns.c.state == TurnState.OPEN.value)
        undone_yet = c.state.in_(
            [s.value for s in (DeliveryState.WANTED, DeliveryState.SENDING, DeliveryState.UNKNOWN)]
        )
        sent = c.state == DeliveryState.SENT.value
        undone = sent & or_(c.gone == 1, c.platform_id.is_(None), c.platform_id.startswith("grows:"))
        unended = sent & (c.final == 0)
        other = t.deliveries.alias()
        stays = exists().where(other.c.origin == c.origin, other.c.final == 1, other.c.gone == 0)
        told = exists().where(
            t.turns.c.turn == c.origin,
            t.turns.c.state == TurnState.CLOSED.value,
            t.turns.c.closed_at >= since_ms,
            t.turns.c.undone == 0,
        )
        untold = (c.gone == 1) & told & ~stays
        lie = case(
            (undone_yet, Lie.OPEN.value),
            (undone, Lie.UNDONE.value),
            (unended, Lie.UNENDED.value),
            else_=Lie.UNTOLD.value,
        )
        wrong = select(lie, c.surface, c.origin, c.bubble, c.part, c.state, c.at).where(
            ~runs, or_(undone_yet, undone, unended, untold)
        )
        found = await self._asks.all(wrong.order_by(c.surface, c.place, c.part).limit(limit))
        return [Lying(Lie(r[0]), r[1], r[2], r[3], r[4], DeliveryState(r[5]), r[6]) for r in found]

    async def gates(self) -> list[GateRow]:
        """What platforms said about when to send again."""
        return await self._asks.made_always(t.GATE.query, t.GATE.make)

    async def adapter_states(self, since_ms: int, until_ms: int, account: str = "") -> list[AdapterStateRow]:
        """The states of the adapters (of one, if it is named) from a time to another: the one in force at its beginning first."""
        c = t.adapter_states.c
        named = [account] if account else await self._asks.distinct(c.account)
        found: list[AdapterStateRow] = []
        for one in named:
            mine = t.ADAPTER_STATE.query.where(c.account == one)
            before = await self._asks.all(mine.where(c.at < since_ms).order_by(c.at.desc()).limit(1))
            later = await self._asks.all(mine.where(c.at >= since_ms, c.at <= until_ms).order_by(c.at))
            found += [t.ADAPTER_STATE.make(row) for row in (*before, *later)]
        return found

    async def _deliveries(self, query: Select[*tuple[Any, ...]]) -> list[Delivery]:
        return await self._asks.made(query, _delivery)


class Deliveries(DeliveryReads, Writing):
    """All of it, for the node that writes."""

    async def put(
        self, session: str, epoch: int, deliveries: Sequence[DeliveryRow], hooks: Sequence[HookRow] = ()
    ) -> None:
        """Promises: these parts are stored as they are given. Before a part is sent, and after, see `gateway.delivery.outbox`."""
        await self._writer.submit(PutDeliveries(session, epoch, tuple(deliveries), tuple(hooks)))

    async def put_gate(self, gate: GateRow) -> None:
        """Promises: also after a restart nothing is sent there before the time."""
        await self._writer.submit(PutGate(gate))

    async def note_adapter(self, row: AdapterStateRow) -> None:
        """Promises: it is stored how an adapter is doing from then on."""
        await self._writer.alone(upkeep.note_adapter(row))

    async def act(
        self, audit: AuditRow, session: str = "", epoch: int = 0, deliveries: Sequence[DeliveryRow] = ()
    ) -> None:
        """Promises: it is noted what was done by hand, and `deliveries` of `session` are stored, together or not at all."""
        await self._writer.submit(Act(audit, session, epoch, tuple(deliveries)))


def _delivery(row: Row[*tuple[Any, ...]]) -> Delivery:
    return Delivery(str(row[-1]), t.PART.make(row))
