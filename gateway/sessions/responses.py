"""Kept responses: found by their ids in what is stored of messages and turns anyhow, gone on from, deleted."""

from __future__ import annotations

from dataclasses import replace

from adapters.contract.base import FromApi, KeptResponse, Ticket
from agent_core.judging.compaction import SessionMemory, summary_words, told_turn
from agent_core.messages import Message
from agent_core.records import dataclass
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.keeping.retaining import empty_message, remove_journals
from agent_core.store.store import Store
from agent_core.turn.events import TakenOver
from gateway.queues import inbox
from gateway.queues.queues import Queues
from gateway.retention.forgetting import DELETED
from gateway.sessions.recall import closed_turn, told_of
from gateway.sessions.stopping import TurnStopping

JUST_MS = 60_000
"""So long somebody may ask again for what ended while nobody was connected."""


@dataclass(frozen=True, slots=True)
class KeptByGateway:
    """What the gateway keeps of responses."""

    store: Store
    queues: Queues
    stopping: TurnStopping
    history_turns: int

    async def find(self, session: str, inbox_id: int) -> KeptResponse | None:
        """See `adapters.contract.base.Gateway.response`."""
        found = await self.request(session, inbox_id)
        return found if found is not None and found.inbound.response is not None else None

    async def request(self, session: str, inbox_id: int) -> KeptResponse | None:
        """See `adapters.contract.base.Gateway.request`."""
        row = await self.store.inbox.one(inbox_id)
        if row is None or row.session != session or row.account != "api":
            return None
        inbound = inbox.decode(row.body)
        if not isinstance(inbound, FromApi):
            return None
        ticket = Ticket(inbox_id, session, duplicate=True)
        return KeptResponse(ticket, inbound, row.received_at, await self._is_latest(row))

    async def unanswered(self, prefix: str, now: int) -> list[str]:
        """See `adapters.contract.base.Gateway.unanswered`."""
        rows = await self.store.inbox.by_keys("api", (), prefix)
        return [row.platform_key for row in rows if await self._is_unanswered(row, now)]

    async def _is_unanswered(self, row: InboxRow, now: int) -> bool:
        if row.state is not InboxState.DONE or row.turn is None:
            return row.state in (InboxState.NEW, InboxState.TAKEN)
        turn = await self.store.turns.one(row.turn)
        if turn is None or turn.closed_at is None or now - turn.closed_at > JUST_MS:
            return False
        return any(event.kind == TakenOver.kind() for event in await self.store.turns.journal(row.turn))

    async def _is_latest(self, row: InboxRow) -> bool:
        if row.state is InboxState.DROPPED:
            return False
        queue = self.queues.of(row.session)
        if queue is not None and queue.waiting:
            return queue.waiting[-1].inbox_id == row.id
        if queue is not None and queue.running is not None:
            return any(message.inbox_id == row.id for message in queue.running.messages)
        latest = await self.store.turns.latest(row.session, 1)
        return bool(latest) and latest[-1].turn == row.turn and not latest[-1].removed

    async def told_after(self, kept: KeptResponse) -> tuple[Message, ...] | None:
        """See `adapters.contract.base.Gateway.told_after`."""
        row = await self.store.inbox.one(kept.ticket.inbox_id)
        if row is None or row.turn is None:
            return None
        rows = [(each.kind, each.body) for each in await self.store.turns.journal(row.turn)]
        turn = closed_turn(row.turn, rows)
        if turn is None or turn.opened is None:
            return None
        if turn.opened.own_history is not None:
            return (*turn.opened.own_history, *told_turn(turn).group)
        turns = await self.store.turns.told(row.session, self.history_turns)
        turns = turns[: turns.index(row.turn) + 1] if row.turn in turns else []
        journals = await self.store.turns.journals(turns) if turns else {}
        memory = SessionMemory(self.history_turns)
        for one in turns:
            if one in journals:
                memory.take(told_of(one, journals[one]))
        before: list[Message] = []
        if memory.summary:
            before.append({"role": "system", "content": summary_words(memory.summary)})
        return (*before, *(message for group in memory.groups for message in group))

    async def delete(self, kept: KeptResponse) -> None:
        """See `adapters.contract.base.Gateway.delete_response`."""
        await self.stopping.stop_message(kept.ticket)
        row = await self.store.inbox.one(kept.ticket.inbox_id)
        if row is not None and row.turn is not None:
            await self.store.keeping.remove_some(remove_journals([row.turn], DELETED))
            self.queues.forget_memories()
        emptied = replace(
            kept.inbound,
            input=(),
            own_history=() if kept.inbound.stateless else None,
            request={},
            client_tools=(),
            response=None,
        )
        await self.store.keeping.remove(empty_message(kept.ticket.inbox_id, inbox.encode(emptied)))
