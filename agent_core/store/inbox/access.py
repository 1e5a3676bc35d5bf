"""What can be asked of messages, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Select, and_, bindparam, case, func, not_, or_, select, text

from agent_core.records import changed
from agent_core.store import tables as t
from agent_core.store.budgets.rows import Charge
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing, packed, packed_rows
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Damaged
from agent_core.store.inbox.ops import Accept, Drop, MoveCursor, Reword
from agent_core.store.inbox.rows import Accepted, DroppedMessage, InboxRow, InboxState, NewMessage
from agent_core.store.inbox.sql import BY_KEY, MESSAGES, OF_TURN, reserve
from agent_core.store.turns.rows import OpeningTurn

_NEW = InboxState.NEW.value
_ONE = MESSAGES.where(t.inbox.c.id.in_(bindparam("keys", expanding=True)))
_ACCOUNT, _KEY = (t.MESSAGE.names.index(name) for name in ("account", "platform_key"))


class InboxReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def pending(self, session: str) -> list[InboxRow]:
        """The messages of `session` that no turn has taken yet, in order of arrival."""
        query = MESSAGES.where(t.inbox.c.session == session, t.inbox.c.state == _NEW).order_by(t.inbox.c.arrival)
        return await self._messages(query)

    async def sessions_with_pending(self) -> list[str]:
        """Sessions that have messages which no turn has taken yet; the one that waits longest comes first."""
        oldest = func.min(t.inbox.c.arrival)
        query = select(t.inbox.c.session).where(t.inbox.c.state == _NEW).group_by(t.inbox.c.session).order_by(oldest)
        return [str(row[0]) for row in await self._asks.all(query)]

    async def inputs(self, *turns: str) -> list[InboxRow]:
        """The messages that `turns` answer, in order of arrival. Messages that were pruned are missing."""
        if not turns:
            return []  # asked for none of them, SQLite would read the whole table
        query = MESSAGES.where(t.turns.c.turn.in_(turns), OF_TURN).order_by(t.inbox.c.arrival)
        return await self._messages(query)

    async def one(self, inbox_id: int) -> InboxRow | None:
        """One message, by its id."""
        found = await self._asks.always(_ONE, [inbox_id])
        return next(iter(await self._whole(found)), None)

    async def by_key(self, account: str, platform_key: str) -> InboxRow | None:
        """One message, by the platform's own id. Each message of a chat is looked for so, and hardly any is found."""
        key = (account, platform_key)
        try:
            found = await self._asks.gathered(BY_KEY, key)
        except Damaged:  # it may be another's
            found = await self._asks.always(BY_KEY, [key])
        return next(iter(await self._whole([row for row in found if (row[_ACCOUNT], row[_KEY]) == key])), None)

    async def beside_turns(self, session: str, commands: str, limit: int) -> list[InboxRow]:
        """The latest messages of `session` of which no turn tells, the newest first: those of the lane of `commands` that are done, and those of others that
        were dropped."""
        command = t.inbox.c.lane == commands
        done, dropped = t.inbox.c.state == InboxState.DONE.value, t.inbox.c.state == InboxState.DROPPED.value
        query = MESSAGES.where(t.inbox.c.session == session, or_(and_(command, done), and_(not_(command), dropped)))
        return await self._messages(query.order_by(t.inbox.c.id.desc()).limit(limit))

    async def cursor(self, account: str, channel: str) -> str | None:
        """How far an adapter has read `channel`; None if it never has."""
        query = select(t.cursors.c.last_seen).where(t.cursors.c.account == account, t.cursors.c.channel == channel)
        found = await self._asks.all(query)
        return str(found[0][0]) if found else None

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        """All channels of an account that were read, and how far."""
        query = select(t.cursors.c.channel, t.cursors.c.last_seen).where(t.cursors.c.account == account)
        return [(str(row[0]), str(row[1])) for row in await self._asks.all(query.order_by(t.cursors.c.channel))]

    async def accounts(self) -> list[str]:
        """All accounts that a message was stored for."""
        return await self._asks.distinct(t.inbox.c.account)

    async def near(self, at_ms: int) -> int:
        """The number of the first message received at or after a time; one above the last if there is none.

        Messages are numbered as they are received, so this is a search by halves. A clock that was set back makes it inexact.
        """
        found = await self._asks.all(_first_since(at_ms))
        return int(found[0][0]) if found else 1

    async def beside(self, number: int) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
        """The stored messages next to a number, below and above it, each as (number, ms); None where there is none."""
        c = t.inbox.c
        query = select(c.id, c.received_at).limit(1)
        below = await self._asks.all(query.where(c.id < number).order_by(c.id.desc()))
        above = await self._asks.all(query.where(c.id > number).order_by(c.id))
        return next(((int(r[0]), int(r[1])) for r in below), None), next(((int(r[0]), int(r[1])) for r in above), None)

    async def between(self, first: int, last: int, sessions: Sequence[str] = (), *, ends: str = "") -> list[InboxRow]:
        """Messages by number, the ends included: of these sessions, if some are named; with a key that ends so, if one is given."""
        query = MESSAGES.where(t.inbox.c.id >= first, t.inbox.c.id <= last)
        if sessions:
            query = query.where(t.inbox.c.session.in_(sessions))
        if ends:
            query = query.where(t.inbox.c.platform_key.endswith(ends, autoescape=True))
        return await self._messages(query.order_by(t.inbox.c.id))

    async def by_keys(self, account: str, keys: Sequence[str], prefix: str = "") -> list[InboxRow]:
        """Messages of an account by their keys, or by what the key begins with."""
        named = t.inbox.c.platform_key.in_(keys)
        which = or_(named, self._asks.begins(t.inbox.c.platform_key, prefix)) if prefix else named
        return await self._messages(MESSAGES.where(t.inbox.c.account == account, which).limit(20))

    async def dropped(self, since_ms: int) -> list[DroppedMessage]:
        """Messages that came at or after a time and were not run."""
        c = t.inbox.c
        query = select(c.received_at, c.session, c.account, c.id, func.coalesce(c.reason, ""))
        dropped = query.where(text("inbox.state = 'dropped'"), c.received_at >= since_ms)
        # In an order that its index does not have, SQLite would read all messages
        found = await self._asks.all(dropped)
        return [DroppedMessage(*row) for row in sorted(found, key=lambda row: int(row[3]))]

    async def _messages(self, query: Select[*tuple[Any, ...]]) -> list[InboxRow]:
        return await self._whole(await self._asks.all(query))

    async def _whole(self, rows: Sequence[Sequence[Any]]) -> list[InboxRow]:
        if not rows:
            return []
        with self._asks.sense():
            found = [t.MESSAGE.make(row) for row in rows]
        bodies = await self._asks.whole([one.body for one in found])
        return [replace(one, body=body) for one, body in zip(found, bodies, strict=True)]


class Inbox(InboxReads, Writing):
    """All of it, for the node that writes."""

    async def accept(self, message: NewMessage, opening: OpeningTurn | None = None, *, claims: bool = True) -> Accepted:
        """Promises: the message is stored once, with its cursor; only now may it be acknowledged to the platform.

        With a claim: the occurrence is claimed in the same commit; Conflict, and nothing is stored, if it was before. The session is made if its key is new, and is then this node's without a `claim` of its own (unless another's to run: not `claims`). If the same (account, platform_key) is stored already, nothing changes, and the
        stored one is told with its turn. The turn `opening` begins with the message in the same commit, if the message is stored by this and the
        session is ours as it says, without an open turn; the answer tells.
        """
        stored, claims = await packed(message.body), claims and self._node.ownership.lease_ok()
        pieces = stored.pieces
        if pieces:
            message = replace(message, body=stored.body)
        if opening is not None:
            rows, more = await packed_rows(opening.rows)
            if more:
                opening, pieces = changed(opening, rows=tuple(rows)), pieces + more
        return await self._writer.submit(Accept(message, claims, pieces, opening if claims else None))

    async def move_cursor(self, account: str, channel: str, last_seen: str) -> None:
        """Promises: reading of `channel` goes on after `last_seen`; for what was read and is no message to accept."""
        await self._writer.submit(MoveCursor(account, channel, last_seen))

    async def reserve(self, account: str, channel: str, every_ms: int) -> int:
        """Promises, with 0: for `every_ms` whoever else asks for this channel is told to wait. In how many ms it may be asked again, if somebody has it.

        A place is had by beginning, and not by waiting for it: who is gone meanwhile leaves none behind.
        """
        return await self._writer.alone(partial(reserve, account, channel, every_ms, self._node.clock.now_ms()))

    async def reword(
        self, account: str, platform_key: str, body: bytes, charges: tuple[Charge, ...] = (), at: int = 0
    ) -> bool:
        """Promises: a message that no turn has taken yet now reads like this, and what is new in it counts for the day. False if it is too
        late, or unknown. Raises `NoRoomToday`."""
        stored = await packed(body)
        return await self._writer.submit(Reword(account, platform_key, stored.body, stored.pieces, charges, at))

    async def drop(
        self, inbox_id: int, reason: str, session: str = "", epoch: int = 0, deliveries: Sequence[DeliveryRow] = ()
    ) -> None:
        """Promises: the message will never be part of a turn, `reason` says why, and `deliveries` of `session` are stored with that, or nothing of
        it. Raises Conflict unless it is new, or dropped already."""
        await self._writer.submit(Drop(inbox_id, reason, session, epoch, tuple(deliveries)))


def _first_since(at_ms: int) -> Select[tuple[int]]:
    """See `InboxReads.near`: in one question, as many steps by the key as the highest number has bits."""
    c = t.inbox.c
    # Apart: SQLite reads all rows for both in one
    lowest, highest = (select(edge(c.id)).scalar_subquery() for edge in (func.min, func.max))
    span = select(lowest.label("low"), (highest + 1).label("high")).cte("span", recursive=True)
    middle = (span.c.low + span.c.high) // 2
    row = select(c.id).where(c.id >= middle).order_by(c.id).limit(1)
    number = row.scalar_subquery()
    before = row.with_only_columns(c.received_at).scalar_subquery() < at_ms
    step = select(case((before, number + 1), else_=span.c.low), case((before, span.c.high), else_=middle))
    span = span.union_all(step.where(span.c.low < span.c.high))
    return select(span.c.low).where(span.c.low >= span.c.high)
