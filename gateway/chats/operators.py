"""The operators' chat: one line for what somebody who runs the gateway has to know."""

from __future__ import annotations

import structlog

from adapters.contract.chat import CallFailed
from adapters.contract.notaccepted import NotAccepted
from agent_core.store.store import Conflict, StoreError
from gateway.chats.arrival import Arrivals
from gateway.chats.routing import Command
from gateway.chats.where import NoSuchChat, Where
from gateway.commands.timed import Post, encode_post, post_inbound

log = structlog.get_logger("operators")


class OperatorsChat:
    """Says things in the chat that ``[operators] chat`` names, on the way of all messages: stored first, and once for each key."""

    def __init__(self, chat: str, where: Where, arrivals: Arrivals) -> None:
        self._chat = chat
        self._where = where
        self._arrivals = arrivals

    async def tell(self, key: str, words: str) -> bool:
        """Say it, if nothing was said under this key before. What goes wrong is logged, and false is the answer."""
        try:
            address = await self._where.find(self._chat)
            inbound = post_inbound(address, f"operators:{key}", key)
            await self._arrivals.take_command(inbound, Command("post", encode_post(Post(words, ()))))
        except (NoSuchChat, CallFailed, NotAccepted, StoreError, Conflict) as error:
            log.warning("operators.not_told", key=key, words=str(error))
            return False
        return True
