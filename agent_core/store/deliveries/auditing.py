"""The auditor's questions: whether what is stored of the deliveries is true, whatever has happened to the processes.

Law: at rest, no part of a turn that is over is to be changed still, none is sent otherwise than it is wanted, and no turn that showed
text on its way ends without anything that stays. What belongs to no
turn (the answer to a command, a word about the queue) is over when it was said.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import case, exists, or_, select

from agent_core.store import tables as t
from agent_core.store.database.asks import Asks
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.turns.rows import TurnState


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


class Auditing(Asks):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

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
        found = await self._all(wrong.order_by(c.surface, c.place, c.part).limit(limit))
        return [Lying(Lie(r[0]), r[1], r[2], r[3], r[4], DeliveryState(r[5]), r[6]) for r in found]
