"""Clients that went away: what was asked is stopped, unless somebody has come back when a short grace is over.

A process that ends within the grace has decided nothing: the next one brings the turn to its end, as any other that was left open. What is decided
is a stop like a person's, which stands in the journal.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import structlog

from adapters.contract.base import Ticket
from agent_core.records import dataclass
from agent_core.store.errors import StoreError
from gateway.sessions.stopping import TurnStopping

log = structlog.get_logger("api")


@dataclass(slots=True)
class ClientsGone:
    """`group` has the tasks that wait; they end with the hub."""

    stopping: TurnStopping
    following: Counter[int]
    """Who follows which message."""
    group: asyncio.TaskGroup
    tasks: set[asyncio.Task[None]]

    def left(self, ticket: Ticket, grace_seconds: float) -> None:
        """See `adapters.contract.base.Gateway.client_left`."""
        self.tasks.add(task := self.group.create_task(self._wait(ticket, grace_seconds), name="leaving"))
        task.add_done_callback(self.tasks.discard)

    async def _wait(self, ticket: Ticket, grace_seconds: float) -> None:
        await asyncio.sleep(grace_seconds)
        if self.following[ticket.inbox_id] > 0:
            return
        try:
            outcome = await self.stopping.stop_message(ticket)
        except Exception as error:  # it goes on to its end, then; and so does all else that the group has
            unknown = not isinstance(error, StoreError)
            log.warning(
                "api.not_stopped", inbox=ticket.inbox_id, session=ticket.session, error=str(error), exc_info=unknown
            )
            return
        if outcome.stopped:
            log.info("api.left_and_stopped", inbox=ticket.inbox_id, session=ticket.session)
