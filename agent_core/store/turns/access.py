"""What can be asked of turns, and what can be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, ScalarSelect, Select, Text, bindparam, case, cast, func, select, text

from agent_core.records import changed
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.node import Writing, packed_rows
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.troubles.rows import (
    TroubleRow,
)
from agent_core.store.turns.ops import Append, Close, Start
from agent_core.store.turns.rows import (
    ROWS_A_TURN,
    IntendedCall,
    JournalRow,
    OpeningTurn,
    ToolCallRow,
    TurnPlace,
    TurnRow,
    TurnState,
    Usage,
    timed,
)
from agent_core.store.webhooks.rows import HookRow

TURNS_A_QUERY = 100
ASKING_MOST = 500
ASKED = "ApprovalAsked"
"""The kind of the row that says that somebody is asked."""

_OPEN = TurnState.OPEN.value
_JOURNAL = (
    t.EVENT.query.select_from(t.turns.join(t.journal, t.rows_of_turn()))
    .where(
        t.turns.c.turn == bindparam("of", "", Text),
        t.journal.c.id > t.turns.c.first_message * ROWS_A_TURN + bindparam("behind", 0, BigInteger),
    )
    .order_by(t.journal.c.id)
)

_ONE = t.TURN.query.where(t.turns.c.turn == bindparam("turn", "", Text))
_JOURNALS = (
    select(t.turns.c.turn, t.journal.c.kind, t.journal.c.body, t.journal.c.at)
    .select_from(t.turns.join(t.journal, t.rows_of_turn()))
    .where(t.turns.c.turn.in_(bindparam("keys", expanding=True)))
    .order_by(t.turns.c.turn, t.journal.c.seq)
)


@cache
def _told(limit: int) -> Select[*tuple[Any, ...]]:
    """The last turns of a session that are put before the model, the newest first."""
    u, s, session = t.turns.c, t.sessions.c, bindparam("session", "", Text)
    since = select(s.since).where(s.session == session).scalar_subquery()
    mine = select(u.turn).where(u.session == session, u.number > since, u.undone == 0)
    return mine.where(u.state == TurnState.CLOSED.value).order_by(u.number.desc()).limit(limit)


class TurnReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def journal(self, turn: str, after: int = -1) -> list[JournalRow]:
        """The rows of `turn` with a number above `after`, in order."""
        found = await self._asks.always(_JOURNAL, of=turn, behind=after)
        with self._asks.sense():
            rows = [t.EVENT.make(row) for row in found]
        bodies = await self._asks.whole([timed(row.body, row.at) for row in rows])
        return [replace(row, body=body) for row, body in zip(rows, bodies, strict=True)]

    async def one(self, turn: str) -> TurnRow | None:
        found = await self._asks.made_always(_ONE, t.TURN.make, turn=turn)
        return found[0] if found else None

    async def latest(self, session: str, limit: int, before: str | None = None) -> list[TurnRow]:
        """The last `limit` turns of `session` (before the turn `before`, if given), the newest last."""
        query = t.TURN.query.where(t.turns.c.session == session).order_by(t.turns.c.number.desc()).limit(limit)
        if before is not None:
            number = select(t.turns.c.number).where(t.turns.c.turn == before).scalar_subquery()
            query = query.where(t.turns.c.number < number)
        return (await self._asks.made(query, t.TURN.make))[::-1]

    async def behind(self, session: str, number: int, limit: int, *, newest_first: bool = False) -> list[TurnRow]:
        """The next turns of `session` behind that number, in this order."""
        c = t.turns.c
        mine = t.TURN.query.where(c.session == session, c.number < number if newest_first else c.number > number)
        order = c.number.desc() if newest_first else c.number
        return await self._asks.made(mine.order_by(order).limit(limit), t.TURN.make)

    async def some(self, turns: Sequence[str]) -> list[TurnRow]:
        """These, in the order of their numbers."""
        query = t.TURN.query.where(t.turns.c.turn.in_(turns)).order_by(t.turns.c.number)
        return await self._asks.made(query, t.TURN.make)

    async def places(self, session: str) -> list[TurnPlace]:
        """Where each turn of a session stands, in the order of their numbers."""
        c = t.turns.c
        query = select(c.turn, c.number, c.follows, c.undone, c.removed).where(c.session == session)
        return [TurnPlace(*row) for row in await self._asks.all(query.order_by(c.number))]

    async def openings(self, turns: Sequence[str]) -> dict[str, tuple[str, bytes]]:
        """Kind and body of the first event of each; a turn whose journal is gone is missing."""
        j = t.journal.c
        first = t.turns.join(t.journal, j.id == t.turns.c.first_message * ROWS_A_TURN)
        rows = await self._asks.all(
            select(t.turns.c.turn, j.kind, j.body, j.at).select_from(first).where(t.turns.c.turn.in_(turns))
        )
        bodies = await self._asks.whole([timed(bytes(row[2]), row[3]) for row in rows])
        return {str(row[0]): (str(row[1]), body) for row, body in zip(rows, bodies, strict=True)}

    async def calls(self, turn: str) -> list[ToolCallRow]:
        query = t.CALL.query.where(t.tool_calls.c.turn == turn).order_by(t.tool_calls.c.call)
        return await self._asks.made(query, t.CALL.make)

    async def asking(self) -> list[TurnRow]:
        """Open turns that have asked somebody for an approval, whatever came of it; some hundreds at most."""
        rows = t.journal.join(t.turns, t.rows_of_turn())
        asked = select(t.turns.c.turn).select_from(rows).where(text("turns.state = 'open'"), t.journal.c.kind == ASKED)
        query = t.TURN.query.where(t.turns.c.turn.in_(asked)).order_by(t.turns.c.opened_at).limit(ASKING_MOST)
        return await self._asks.made(query, t.TURN.make)

    async def count_open(self) -> int:
        """How many turns are open, over all sessions."""
        found = await self._asks.all(select(func.count()).select_from(t.turns).where(t.turns.c.state == _OPEN))
        return int(found[0][0])

    async def oldest_open(self) -> tuple[str, int] | None:
        """The turn that has been open for longest, with when it began (ms)."""
        c = t.turns.c
        query = select(c.turn, c.opened_at).where(c.state == _OPEN).order_by(c.opened_at).limit(1)
        found = await self._asks.all(query)
        return (str(found[0][0]), int(found[0][1])) if found else None

    async def usage(self, session: str, since_ms: int = 0) -> Usage:
        """What the turns of a session used that ended at or after a time."""
        query = select(
            func.count(),
            func.coalesce(func.sum(t.turns.c.input_tokens), 0),
            func.coalesce(func.sum(t.turns.c.output_tokens), 0),
        ).where(t.turns.c.session == session, t.turns.c.closed_at >= since_ms)
        found = await self._asks.all(query)
        return Usage(int(found[0][0]), int(found[0][1]), int(found[0][2]))

    async def count_closed(self, since_ms: int) -> int:
        """How many turns were closed at or after a time."""
        c, count = t.turns.c, select(func.count())
        # two of them: for both in one SQLite looks at each turn, and not into an index alone
        kept = count.where(text("turns.state = 'closed'"), text("turns.removed = ''"), c.closed_at >= since_ms)
        others = count.where(text("turns.removed <> ''"), c.closed_at >= since_ms)
        found = await self._asks.all(select(kept.scalar_subquery() + others.scalar_subquery()))
        return int(found[0][0])

    async def between(self, session: str, since_ms: int, until_ms: int, limit: int = 20) -> list[TurnRow]:
        """The turns of a session that were open at some time in between, the oldest first; the latest `limit`."""
        c = t.turns.c
        # its number as a value: joined with it, PostgreSQL would read all turns of the session
        until = t.TURN.query.where(c.session == session, c.number <= _begun_until(session, until_ms))
        found = (await self._asks.made(until.order_by(c.number.desc()).limit(limit), t.TURN.make))[::-1]
        return [u for u in found if u.closed_at is None or u.closed_at >= since_ms]

    async def bugs(self, since_ms: int, until_ms: int, limit: int = 50) -> list[TurnRow]:
        """The turns that a mistake of the program's own ended in between."""
        c = t.turns.c
        query = t.TURN.query.where(text("exit = 'internal_error'"), c.closed_at >= since_ms, c.closed_at <= until_ms)
        return [t.TURN.make(row) for row in await self._asks.all(query.order_by(c.closed_at).limit(limit))]

    async def told(self, session: str, limit: int) -> list[str]:
        """The last `limit` closed turns of a session that are put before the model, the oldest first: none that was undone, and none
        before the conversation was begun anew."""
        return [str(row[0]) for row in reversed(await self._asks.always(_told(limit), session=session))]

    async def journals(self, turns: Sequence[str]) -> dict[str, list[tuple[str, bytes]]]:
        """Kind and body of the journal's rows, in order, by turn; a turn that has none is missing."""
        found: dict[str, list[tuple[str, bytes]]] = {}
        for first in range(0, len(turns), TURNS_A_QUERY):
            rows = await self._asks.always(_JOURNALS, turns[first : first + TURNS_A_QUERY])
            bodies = await self._asks.whole([timed(bytes(row[2]), row[3]) for row in rows])
            for (turn, kind, _, _), body in zip(rows, bodies, strict=True):
                found.setdefault(turn, []).append((kind, body))
        return found


class Turns(TurnReads, Writing):
    """All of it, for the node that writes."""

    async def start(
        self,
        session: str,
        epoch: int,
        turn: str,
        inbox_ids: Sequence[int],
        row: JournalRow,
        opened_at: int,
        deadline: int,
        judged: Sequence[JournalRow] = (),
    ) -> None:
        """As `open`, of a turn whose journal begins with `row` and `judged`."""
        await self.open(OpeningTurn(session, epoch, turn, (row, *judged), opened_at, deadline), inbox_ids)

    async def open(self, opening: OpeningTurn, inbox_ids: Sequence[int]) -> None:
        """Promises: the turn is open, its messages are taken by it alone, and its journal begins with its rows (from number 0).

        Raises Conflict if the session has an open turn, or a message is not new, or not of this session.
        """
        rows, pieces = await packed_rows(opening.rows)
        await self._writer.submit(Start(changed(opening, rows=tuple(rows)), tuple(inbox_ids), pieces))

    async def append(
        self, session: str, epoch: int, turn: str, rows: Sequence[JournalRow], hooks: Sequence[HookRow] = ()
    ) -> None:
        """Promises: `rows` are in the journal; only now may they be shown or acted on.

        Raises Conflict if they would leave a hole or the turn is closed, Fenced if a stored row differs.
        """
        rows, pieces = await packed_rows(rows)
        await self._writer.submit(Append(session, epoch, turn, tuple(rows), pieces=pieces, hooks=tuple(hooks)))

    async def intend(
        self,
        session: str,
        epoch: int,
        turn: str,
        rows: Sequence[JournalRow],
        calls: Sequence[IntendedCall],
        hooks: Sequence[HookRow] = (),
    ) -> None:
        """Promises: as `append`, and that `calls` are recorded as intended: from here on they may have run."""
        rows, pieces = await packed_rows(rows)
        await self._writer.submit(
            Append(session, epoch, turn, tuple(rows), intended=tuple(calls), pieces=pieces, hooks=tuple(hooks))
        )

    async def close(
        self,
        session: str,
        epoch: int,
        turn: str,
        rows: Sequence[JournalRow],
        exit: str,  # noqa: A002 - the word of the design for how a turn ends
        closed_at: int,
        deliveries: Sequence[DeliveryRow] = (),
        used: tuple[int, int] = (0, 0),
        heard: Sequence[int] = (),
        troubles: Sequence[TroubleRow] = (),
        hooks: Sequence[HookRow] = (),
        by: tuple[str, str] = ("", ""),
        intended: Sequence[IntendedCall] = (),
    ) -> None:
        """Promises: the exit's rows, the closed turn, its messages done and `deliveries` wanted are there together or not at all.

        `used` are the tokens of the turn, in and out; `heard` are messages that came into the running turn; `troubles` is what
        went wrong in it; `hooks` tell others of it; `by` are the model that answered and the name of the key that asked; the
        start of the calls `intended` is among the rows. Raises Fenced if the turn has ended already in another way.
        """
        rows, pieces = await packed_rows(rows)
        await self._writer.submit(
            Close(
                session,
                epoch,
                turn,
                tuple(rows),
                exit,
                closed_at,
                tuple(deliveries),
                *used,
                tuple(heard),
                tuple(troubles),
                pieces,
                tuple(hooks),
                *by,
                tuple(intended),
            )
        )


def _begun_until(session: str, until_ms: int) -> ScalarSelect[int]:
    """The number of a session's last turn that had begun at a time. Turns are numbered as they begin, so it is a search by halves, in
    one question: as many steps in an index as the number of turns has bits."""
    c = t.turns.c
    newest = select(func.coalesce(func.max(c.number), 0)).where(c.session == session)
    span = select(cast(0, BigInteger).label("low"), newest.scalar_subquery().label("high")).cte("span", recursive=True)
    middle = (span.c.low + span.c.high + 1) // 2
    mine = select(c.number).where(c.session == session, c.number <= middle).order_by(c.number.desc()).limit(1)
    number = mine.scalar_subquery()
    later = mine.with_only_columns(c.opened_at).scalar_subquery() > until_ms
    step = select(case((later, span.c.low), else_=middle), case((later, number - 1), else_=span.c.high))
    span = span.union_all(step.where(span.c.low < span.c.high))
    return select(span.c.low).where(span.c.low >= span.c.high).scalar_subquery()
