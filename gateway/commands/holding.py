"""Messages that came too fast, or for which there was no room: kept, and run when their time comes, unless `/stop` takes them out before.

Such a message is stored as a command that the gateway gives itself, under the platform's own id of it. So a redelivery is known, the next process
carries it out if this one dies, and what it says meanwhile is what is stored: an edit changes it, and one that was taken back is not run.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from adapters.contract.base import FromChat
from adapters.contract.notaccepted import NotAccepted
from adapters.delivery.aftermath import within
from agent_core.ports import Clock
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import Store
from gateway.commands.carrying import CommandReply, Request
from gateway.commands.messages import Messages
from gateway.queues import inbox
from gateway.queues.held import HOLD, HeldMessage

AWAY_SECONDS = 5.0
"""How often it is tried to take one in that cannot be stored just now."""
ROOM_SECONDS = 1.0
"""How often it is looked whether there is room."""


class Holding:
    """The handler of such commands."""

    def __init__(self, messages: Messages, store: Store, clock: Clock) -> None:
        self._messages = messages
        self._here = messages.held
        self._store = store
        self._clock = clock

    async def hold(self, request: Request) -> CommandReply:
        """Wait until the message's time has come and there is room, and put it into its conversation's queue."""
        assert isinstance(request.inbound, FromChat)
        held = HeldMessage.of(request.inbound)
        assert held is not None
        with self._here.holding(request.key, request.inbox_id) as taken_out:
            early = within(held.due, self._clock.now_ms(), held.due - request.received_at)
            if early and await _within(early / 1000, taken_out):
                return CommandReply("")
            with suppress(_Waits):
                if self._ready(request):
                    return await self._run(request, taken_out)
            with self._here.lining_up(request.key, request.inbox_id):
                while True:
                    while not self._ready(request):
                        if await _within(ROOM_SECONDS, taken_out):
                            return CommandReply("")
                    with suppress(_Waits):
                        return await self._run(request, taken_out)

    def _ready(self, request: Request) -> bool:
        """Whether there is room, and nobody before it."""
        return self._here.next(request.key, request.inbox_id) and self._messages.crowded(request.key) is None

    async def _run(self, request: Request, taken_out: asyncio.Event) -> CommandReply:
        row = await self._store.inbox.one(request.inbox_id)
        inbound = inbox.decode(row.body) if row is not None and row.state is InboxState.NEW else None
        held = HeldMessage.of(inbound) if isinstance(inbound, FromChat) else None
        if inbound is None or held is None or taken_out.is_set():
            return CommandReply("")
        key = f"{HOLD}:{inbound.platform_key}"
        try:
            await self._messages.submit(inbound, key, held.text, held.policy, foreign=held.foreign)
        except NotAccepted as refused:
            if refused.code.lacks_room:
                raise _Waits from refused
            if refused.code.passes:
                await asyncio.sleep(AWAY_SECONDS)  # at a shutdown it is left, and the next process takes it up
                raise _Waits from refused
            return CommandReply(str(refused))
        now = await self._store.inbox.one(request.inbox_id)
        if taken_out.is_set() or now is None or now.state is not InboxState.NEW:
            # Somebody took it out, or back, while it was being taken in
            await self._messages.stop(inbound.account, key)
        return CommandReply("")


class _Waits(Exception):
    """It could not be taken in just now."""


async def _within(seconds: float, happens: asyncio.Event) -> bool:
    """Whether it happens within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await happens.wait()
    return happens.is_set()
