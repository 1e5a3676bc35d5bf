"""Takes commands in: stored in the inbox first, then begun, whether a person typed them, a schedule is due or an operator says something."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.chat import ChatAddress
from agent_core.messages import InputMessage
from agent_core.ports import Clock
from agent_core.store.inbox.rows import Accepted, InboxState
from agent_core.store.schedules.rows import Claimed
from gateway.commands.carrying import ChatCommands, Request
from gateway.commands.messages import Cursor
from gateway.commands.posts import Post, encode_post, post_inbound
from gateway.commands.registry import BY_NAME
from gateway.delivery.owners import Owner
from gateway.people.access import PersonStanding
from gateway.people.members import Members
from gateway.people.routing import Command, session_of
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE
from gateway.sessions.accepting import Accepting


class CommandIntake:
    """Also implements `gateway.recovery.keeper.Commands`."""

    def __init__(self, accepting: Accepting, members: Members, commands: ChatCommands, clock: Clock) -> None:
        self._accepting = accepting
        self._members = members
        self._commands = commands
        self._clock = clock

    async def take(
        self, inbound: Inbound, command: Command, cursor: Cursor = None, claim: Claimed | None = None
    ) -> tuple[Accepted, asyncio.Task[None] | None]:
        """Store a command (with the occurrence that it stands for) and begin to carry it out, unless it was known.

        Raises `StorageUnavailable`; `Conflict` if the occurrence was claimed before.
        """
        stored = replace(inbound, input=(InputMessage(f"/{command.name} {command.words}".strip()),))
        now = self._clock.now_ms()
        message = replace(self._accepting.new_message(stored, COMMAND_LANE, now, cursor), claim=claim)
        coming = (message.account, message.platform_key)
        self._accepting.under_way[coming] = message.session_key
        try:
            accepted = await self._accepting.put(message)
            if accepted.duplicate or not self._accepting.portion.mine(message.session_key):
                return accepted, None  # whoever runs the conversation carries it out
            queue = await self._accepting.owned_stored(inbound.session.text(), accepted)
            if queue is None:
                return accepted, None  # likewise
            return accepted, self._begin(
                stored, accepted.inbox_id, Owner(accepted.session, queue.epoch), now, accepted.arrival
            )
        finally:
            self._accepting.under_way.pop(coming, None)

    def alone(self, key: str) -> AbstractAsyncContextManager[None]:
        """No command changes the session with this key while the block runs."""
        return self._commands.alone(key)

    async def post(self, address: ChatAddress, key: str, words: str) -> int:
        """Say something in a chat for whoever runs the gateway; the same `key` is said once. Its number in the inbox."""
        return await self._post(post_inbound(address, key, key), words)

    async def post_on_page(self, page: FromApi, key: str, words: str) -> int:
        """The same in the conversation that a message of the web page belongs to."""
        return await self._post(replace(page, platform_key=key, input=(), digest=""), words)

    async def _post(self, inbound: Inbound, words: str) -> int:
        accepted, _ = await self.take(inbound, Command("post", encode_post(Post(words))))
        return accepted.inbox_id

    def _begin(
        self, inbound: Inbound, inbox_id: int, owner: Owner, received_at: int, arrival: int
    ) -> asyncio.Task[None]:
        written = str(inbound.input[0].content).removeprefix("/")
        name, _, words = written.partition(" ")
        admin, own = False, inbound.session
        if isinstance(inbound, FromChat):
            admin = self._members.standing_of(inbound.chat) is PersonStanding.ADMIN
            own = session_of(inbound.chat, self._members.rules_of(inbound.chat.address))
        request = Request(BY_NAME[name], words, inbound, inbox_id, owner, admin, own, received_at, arrival)
        task = self._commands.begin(request)
        # What was said after it finds it done: `/new` and a message come together after an outage
        if request.command.changes:
            self._members.directory.changing(own, task)
        return task

    def busy(self) -> Collection[str]:
        """The keys of the sessions of which a command is being carried out."""
        return [*self._commands.in_hand, *self._accepting.under_way.values()]

    # ------------------------------------------------------------------ what the keeper takes up

    def carries_out(self, inbox_id: int) -> bool:
        return inbox_id in self._commands.in_hand

    async def carry_out(self, inbox_id: int, owner: Owner) -> bool:
        """Begin it, unless it is done, in hand or on its way into it, or was dropped since it was found. False if nobody here can. Raises
        `StorageUnavailable`, `UnreadableMessage`."""
        with self._commands.in_hand.reading() as ours:
            row = await self._accepting.store.inbox.one(inbox_id)
        if row is None or row.state is not InboxState.NEW:
            return True  # its conversation may be gone, and the words of all that was said there
        if inbox_id in ours or self._accepting.coming(row.account, row.platform_key):
            return True
        inbound = inbox.decode(row.body)
        if isinstance(inbound, FromChat) and inbound.account not in self._members.accounts:
            return False
        self._begin(inbound, row.id, owner, row.received_at, row.arrival)
        return True
