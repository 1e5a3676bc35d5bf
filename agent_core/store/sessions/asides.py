"""Conversations that were set aside because what they hold cannot be read, and setting one aside.

Theory. Storage fails by pages, and a page holds rows of few conversations. A conversation that cannot be read is put away whole: its
session keeps its rows and loses its key, and a new session has the key from then on, so that its chat goes on with a fresh
conversation and nobody touches the damaged rows again. Every step after that is tried by itself, because each may touch them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, insert, select, text, update

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreReading, around
from agent_core.store.database.node import Writing
from agent_core.store.database.ownership import Who
from agent_core.store.inbox.rows import InboxState
from agent_core.store.turns.rows import TurnState

MARK = "~"
"""What the key of a session that was set aside has behind it, before its id."""
MOST = 1_000


@dataclass(frozen=True, slots=True)
class Aside:
    """A conversation that was set aside."""

    session: str
    key: str
    """That of its chat, which another session has by now."""
    words: str
    at: int


@dataclass(frozen=True, slots=True)
class Fresh:
    """The session that goes on in the place of one that was set aside."""

    session: str
    key: str
    epoch: int


def key_before(key: str, session: str) -> str:
    """The key that a session had before it was set aside."""
    return key.removesuffix(f"{MARK}{session}")


_s = t.sessions.c
_ASIDE = (
    select(_s.session, _s.key, _s.quarantined, _s.last_at)
    .where(_s.quarantined.is_not(None))
    .order_by(_s.last_at.desc())
    .limit(MOST)
)


class AsideReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def all(self) -> list[Aside]:
        """All conversations that were set aside, the latest first."""
        found = await self._asks.always(_ASIDE)
        return [Aside(row[0], key_before(row[1], row[0]), row[2], row[3]) for row in found]

    async def key_of(self, session: str) -> str | None:
        """The key of a session, and nothing else of it."""
        c = t.sessions.c
        found = await self._asks.all(select(c.key).where(c.session == session))
        return str(found[0][0]) if found else None

    async def session_of(self, key: str) -> tuple[str, int] | None:
        """Session and epoch of a key, and nothing else of it."""
        c = t.sessions.c
        found = await self._asks.all(select(c.session, c.epoch).where(t.under(key)))
        return (str(found[0][0]), int(found[0][1])) if found else None

    async def open_turn(self, session: str) -> tuple[str, int] | None:
        """The open turn of a session, and how many rows its journal has."""
        u, j = t.turns.c, t.journal.c
        found = await self._asks.all(select(u.turn).where(u.session == session, u.state == TurnState.OPEN.value))
        if not found:
            return None
        rows = select(j.seq).select_from(t.turns.join(t.journal, t.rows_of_turn()))
        last = await self._asks.all(rows.where(u.turn == found[0][0]).order_by(j.id.desc()).limit(1))
        return str(found[0][0]), (int(last[0][0]) + 1 if last else 0)

    async def waiting(self, session: str) -> list[int]:
        """The messages of a session that nobody has done, by their numbers."""
        c = t.inbox.c
        new = text("inbox.state = 'new'")  # in so many words: the index is partial, and knows it by itself
        query = select(c.id).where(c.session == session, new).order_by(c.arrival)
        return [int(row[0]) for row in await self._asks.all(query)]

    async def sound(self, turns: Sequence[str]) -> list[str]:
        """Those of `turns` whose journals can be read at all."""
        j = t.journal.c

        async def ask(some: Sequence[str]) -> Sequence[str]:
            rows = select(j.kind, j.body).select_from(t.turns.join(t.journal, t.rows_of_turn()))
            await self._asks.all(rows.where(t.turns.c.turn.in_(some)))
            return some

        return (await around(turns, ask))[0]


def set_aside(session: str, words: str, fresh: str, at: int, who: Who) -> Callable[[Connection], Fresh | None]:
    """Take the key away from `session` and give it to the new session `fresh`; None if a living node owns it, or there is none."""

    def body(conn: Connection) -> Fresh | None:
        c = t.sessions.c
        row = conn.execute(select(c.key, c.owner, c.policy, c.quarantined).where(c.session == session)).first()
        if row is None:
            return None
        key = key_before(row[0], session)
        if row[3] is not None:  # the commit of an earlier attempt took place after all
            found = conn.execute(select(c.session, c.epoch).where(t.under(key))).first()
            return Fresh(found[0], key, found[1]) if found is not None else None
        if row[1] not in (None, who.node) and not who.dead(conn, {int(row[1])}):
            return None
        aside = {"key": f"{key}{MARK}{session}", "quarantined": words, "last_at": at, "owner": who.node}
        conn.execute(update(t.sessions).where(c.session == session).values(**aside, epoch=c.epoch + 1))
        made = {"session": fresh, "key": key, "owner": who.node, "epoch": 1, "policy": row[2]}
        conn.execute(insert(t.sessions).values(**made, created_at=at, last_at=at))
        return Fresh(fresh, key, 1)

    return body


def drop(inbox_id: int, words: str) -> Callable[[Connection], None]:
    """A message will not be part of a turn, whatever else is known of its session."""

    def body(conn: Connection) -> None:
        c = t.inbox.c
        waits = (c.id == inbox_id, c.state == InboxState.NEW.value)
        conn.execute(update(t.inbox).where(*waits).values(state=InboxState.DROPPED.value, reason=words))

    return body


def end_turn(turn: str, ending: str, at: int) -> Callable[[Connection], None]:
    """A turn whose journal can be neither read nor written is over."""

    def body(conn: Connection) -> None:
        c = t.turns.c
        values = {"state": TurnState.CLOSED.value, "exit": ending, "closed_at": at}
        conn.execute(update(t.turns).where(c.turn == turn, c.state == TurnState.OPEN.value).values(**values))

    return body


class Asides(AsideReads, Writing):
    """All of it, for the node that writes."""

    async def set_aside(self, session: str, words: str, fresh: str) -> Fresh | None:
        """Promises: `session` has no key any more, and the new session `fresh` has it. None if it is a living node's, or not there."""
        await self._node.must_live()
        return await self._writer.alone(set_aside(session, words, fresh, self._node.clock.now_ms(), self._node.who))

    async def drop(self, inbox_id: int, words: str) -> None:
        """Promises: the message of a session that was set aside will not be part of a turn, and `words` say why."""
        await self._writer.alone(drop(inbox_id, words))

    async def end_turn(self, turn: str, ending: str) -> None:
        """Promises: the turn, whose journal cannot be read, is over."""
        await self._writer.alone(end_turn(turn, ending, self._node.clock.now_ms()))
