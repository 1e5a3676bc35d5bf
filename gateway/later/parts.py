"""What tools that work for later need of the gateway. They are made before it is whole, so they find it here when they are called."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from adapters.contract.base import Follower, FromApi, Inbound, StopOutcome, Ticket
from adapters.contract.chat import ChatAddress
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.store import Store
from agent_core.tools.base import NotPossible
from gateway.delivery.outbox import Outbox
from gateway.people.members import Members
from gateway.queues import inbox
from gateway.sessions.accepting import Accepting

NOT_YET = "The gateway is only just starting. Nothing was done; try it again."
NOBODYS = "This request belongs to no conversation that is kept, so nothing can be told later. Nothing was done."
PROGRAMS = "This conversation is a program's: nobody would see it here when the time comes. Nothing is set; say so."


@dataclass(frozen=True, slots=True)
class LaterParts:
    """The gateway, as far as they need it."""

    accepting: Accepting
    members: Members
    outbox: Outbox
    post: Callable[[ChatAddress, str, str], Awaitable[int]]
    """Says something in a chat; the same key is said once. Gives the message's number in the inbox."""
    post_on_page: Callable[[FromApi, str, str], Awaitable[int]]
    """The same in the conversation that a message of the web page belongs to."""
    alone: Callable[[str], AbstractAsyncContextManager[None]]
    """Nothing else changes what is set in the conversation with this key meanwhile."""
    follow: Callable[[Ticket], Follower]
    """Follows a message to its end."""
    stop: Callable[[Ticket], Awaitable[StopOutcome]]
    """Stops the turn of a message, or takes it out of the queue."""
    stored: Callable[[], None]
    """Schedules were stored."""
    find: Callable[[str], Awaitable[ChatAddress]]
    """The chat that a name of ``[send] allow`` stands for. Raises `LookupError` in words, or `CallFailed`."""


class Later:
    """`zone` is the gateway's time zone, `most` may be set in one conversation."""

    def __init__(self, store: Store, clock: Clock, zone: Callable[[], str], most: int) -> None:
        self.store = store
        self.clock = clock
        self.most = most
        self._zone = zone
        self._parts: LaterParts | None = None

    def open(self, parts: LaterParts) -> None:
        """From now on it works."""
        self._parts = parts

    @property
    def zone(self) -> str:
        return self._zone()

    @property
    def whole(self) -> LaterParts | None:
        """None before the gateway is whole."""
        return self._parts

    @property
    def parts(self) -> LaterParts:
        """Raises `NotPossible` before the gateway is whole."""
        if self._parts is None:
            raise NotPossible(NOT_YET)
        return self._parts

    async def asked_by(self, turn: str) -> Inbound:
        """The message that a turn answers. Raises `NotPossible` if it belongs to no conversation that is kept."""
        row = next(iter(await self.store.inbox.inputs(turn)), None)
        inbound = inbox.decode(row.body) if row is not None else None
        if inbound is None or inbound.stateless:
            raise NotPossible(NOBODYS)
        return inbound

    async def seen_by(self, turn: str) -> Inbound:
        """The same, where somebody sees what comes later: in a chat, or on the web page. Raises `NotPossible`."""
        inbound = await self.asked_by(turn)
        if isinstance(inbound, FromApi) and inbound.surface != PAGE:
            raise NotPossible(PROGRAMS)
        return inbound


PAGE = "web"
"""The surface of the web page."""
