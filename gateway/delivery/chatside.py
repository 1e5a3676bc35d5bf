"""What turns and queues need of the chats: where a turn is shown, and what a chat is told of a message that is not answered.

A protocol, because messages of the API have none of it, and because chats are built upon the queues and not beneath them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from adapters.contract.base import FromChat, Inbound
from adapters.contract.chat import ChatOrigin
from agent_core.failures.notices import NotStarted
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.sessions.asides import Fresh
from agent_core.store.store import Store
from agent_core.store.turns.rows import OpenTurn
from agent_core.tools.base import Purse
from gateway.delivery.owners import Owner, Restoring
from gateway.delivery.turnoutlet import TurnOutlet

Dropping = Callable[[Sequence[DeliveryRow]], Awaitable[None]]
"""Stores that a message is not run, and parts of its session with that."""


def dropping(store: Store, inbox_id: int, reason: str, owner: Owner) -> Dropping:
    """Of a message that is new, or dropped already."""
    return partial(store.inbox.drop, inbox_id, reason, owner.session, owner.epoch)


class ChatSide(Restoring, Protocol):
    """Does nothing for messages that are no chat's."""

    def outlet(self, chat: ChatOrigin, turn: str, session: str, epoch: int) -> TurnOutlet | None:
        """Where a turn is shown that answers a message of this chat."""
        ...

    async def attached(
        self, inbound: Inbound, inbox_id: int, workspace: Callable[[], Path], owner: Owner, purse: Purse | None
    ) -> Inbound:
        """The message with what came with it, fetched into its workspace. `purse` pays for what is asked of others to read it."""
        ...

    def begun(self, inbound: Inbound, inbox_id: int) -> None:
        """The turn of a message has begun: nothing says any more that it waits."""
        ...

    async def not_run(
        self, inbound: Inbound, inbox_id: int, owner: Owner, why: NotStarted, drop: Dropping, detail: str = ""
    ) -> None:
        """A message will not be run; who wrote it is told why, in the commit of `drop`. Raises what that raises, and then nobody is told."""
        ...

    async def tell_anew(self, inbound: Inbound | None, inbox_id: int, fresh: Fresh, words: str) -> None:
        """A message, if it can be read, was lost with its conversation: told in the one that begins in its place."""
        ...

    def tell_unstored(self, chat: ChatOrigin, words: str) -> None:
        """The same of what cannot be stored: tried once."""
        ...


def outlet_for(chats: ChatSide, inbound: Inbound, turn: str, session: str, epoch: int) -> TurnOutlet | None:
    """Where a turn that answers this message is shown: in its chat. A background task shows in the chat that began it what it asks people, and
    nothing else."""
    if isinstance(inbound, FromChat):
        return chats.outlet(inbound.chat, turn, session, epoch)
    task = inbound.task
    outlet = chats.outlet(task.chat, turn, session, epoch) if task is not None and task.chat is not None else None
    if outlet is not None and task is not None:
        outlet.stand_beside(task.number, task.title)
    return outlet


class NoChats:
    """A gateway without chats."""

    # ruff: noqa: ARG002

    def outlet(self, chat: ChatOrigin, turn: str, session: str, epoch: int) -> TurnOutlet | None:
        return None

    async def attached(
        self, inbound: Inbound, inbox_id: int, workspace: Callable[[], Path], owner: Owner, purse: Purse | None
    ) -> Inbound:
        return inbound

    def begun(self, inbound: Inbound, inbox_id: int) -> None:
        pass

    async def not_run(
        self, inbound: Inbound, inbox_id: int, owner: Owner, why: NotStarted, drop: Dropping, detail: str = ""
    ) -> None:
        await drop(())

    async def tell_anew(self, inbound: Inbound | None, inbox_id: int, fresh: Fresh, words: str) -> None:
        pass

    def tell_unstored(self, chat: ChatOrigin, words: str) -> None:
        pass

    async def load(self, turns: Sequence[OpenTurn], begun: Sequence[int]) -> None:
        pass

    async def load_words(self, owner: Owner, waiting: Sequence[int]) -> None:
        pass
