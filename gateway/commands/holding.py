"""Messages that came too fast: kept, and run when their time comes, unless `/stop` takes them out before.

Such a message is stored as a command that the gateway gives itself, under the platform's own id of it. So a redelivery is known, the next process
carries it out if this one dies, and what it says meanwhile is what is stored: an edit changes it, and one that was taken back is not run.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from adapters.contract.base import FromChat
from adapters.contract.notaccepted import NotAccepted
from agent_core.ports import Clock
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import Store
from gateway.commands.carrying import CommandReply, Request
from gateway.commands.messages import Messages
from gateway.queues import inbox
from gateway.queues.held import HOLD, HeldMessage

AWAY_SECONDS = 5.0
"""How often it is tried to take one in that cannot be stored just now."""


class Holding:
    """The handler of such commands."""

    def __init__(self, messages: Messages, store: Store, clock: Clock) -> None:
        self._messages = messages
        self._store = store
        self._clock = clock
        self._waiting: dict[str, dict[int, asyncio.Event]] = {}
        """By conversation and number: set when it is taken out."""

    def take_out(self, key: str) -> int:
        """Take all of a conversation out; how many they were."""
        waiting = [one for one in self._waiting.get(key, {}).values() if not one.is_set()]
        for one in waiting:
            one.set()
        return len(waiting)

    async def hold(self, request: Request) -> CommandReply:
        """Wait until the message's time has come, and put it into its conversation's queue."""
        assert isinstance(request.inbound, FromChat)
        held, taken_out = HeldMessage.of(request.inbound), asyncio.Event()
        assert held is not None
        self._waiting.setdefault(request.key, {})[request.inbox_id] = taken_out
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0, held.due - self._clock.now_ms()) / 1000):
                    await taken_out.wait()
            return CommandReply("") if taken_out.is_set() else await self._run(request)
        finally:
            del self._waiting[request.key][request.inbox_id]
            if not self._waiting[request.key]:
                del self._waiting[request.key]

    async def _run(self, request: Request) -> CommandReply:
        row = await self._store.inbox.one(request.inbox_id)
        inbound = inbox.decode(row.body) if row is not None and row.state is InboxState.NEW else None
        held = HeldMessage.of(inbound) if isinstance(inbound, FromChat) else None
        if inbound is None or held is None:
            return CommandReply("")
        while True:
            try:
                await self._messages.submit(
                    inbound, f"{HOLD}:{inbound.platform_key}", held.text, None, foreign=held.foreign
                )
            except NotAccepted as refused:
                if refused.code.passes:
                    await asyncio.sleep(AWAY_SECONDS)  # at a shutdown it is left, and the next process takes it up
                    continue
                return CommandReply(str(refused))
            return CommandReply("")
