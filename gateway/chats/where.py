"""The chat that an operator's words name; and the operators' own chat: one line for what somebody who runs the gateway has to know."""

from __future__ import annotations

import re
from collections.abc import Mapping

import structlog

from adapters.contract.chat import CallFailed, ChatAddress
from adapters.contract.notaccepted import NotAccepted
from adapters.platforms import platform_of
from agent_core.store.store import Conflict, StoreError
from gateway.chats.commandintake import CommandIntake
from gateway.commands.posts import Post, encode_post, post_inbound
from gateway.delivery.calls import called
from gateway.delivery.outbox import Outbox
from gateway.people.members import Members
from gateway.people.routing import Command

log = structlog.get_logger("operators")


class NoSuchChat(LookupError):
    """The words name no chat; they say why."""


class Where:
    """Finds the chat that an operator's words name."""

    def __init__(self, members: Members, outbox: Outbox, allowed: Mapping[str, str]) -> None:
        """`allowed` are the chats that agents may write to, as PLATFORM/CHAT by their names."""
        self._members = members
        self._outbox = outbox
        self._allowed = allowed

    async def find_allowed(self, to: str) -> ChatAddress:
        """The address of a chat that an agent names, ours or another one's: one of ``[send] allow``, by its name or as it stands there.

        Raises as `find` does.
        """
        words = to.strip()
        chat = self._allowed.get(words) or next((one for one in self._allowed.values() if one == words), None)
        if chat is None:
            there = ", ".join(self._allowed) or "none"
            raise NoSuchChat(f"{words!r} is no chat that agents may write to; [send] allow names: {there}.")
        return await self.find(chat)

    async def find(self, to: str) -> ChatAddress:
        """The address of ``PLATFORM/CHAT[/THREAD]``, where CHAT is an id, or a person who is known, by id, name or @name.

        Raises `NoSuchChat` in words, and `CallFailed` if the platform does not give the chat with a person.
        """
        platform, _, rest = to.strip().partition("/")
        chat, _, thread = rest.partition("/")
        accounts = [name for name in self._members.accounts if name.partition("/")[0] == platform.lower()]
        if not accounts:
            there = ", ".join(name.partition("/")[0] for name in self._members.accounts) or "none"
            raise NoSuchChat(f"There is no platform {platform!r} here; configured: {there}.")
        if not chat:
            raise NoSuchChat(f"{to!r} names no chat. Write PLATFORM/CHAT or PLATFORM/CHAT/THREAD.")
        account = accounts[0]
        name, _, bot = account.partition("/")
        address = ChatAddress(name, bot, chat, thread)
        person = self._person(account, chat)
        if person:
            private = await called(self._outbox.port_of(address).private(person), name.capitalize())
            return ChatAddress(name, bot, private, thread)
        known = platform_of(address.platform)
        if known is not None and not re.fullmatch(known.chat_id, chat):
            raise NoSuchChat(
                f"{chat!r} is no id of a chat on {address.platform}, and nobody is known by it. "
                "`outspoken access list` shows who is known."
            )
        return address

    def _person(self, account: str, words: str) -> str:
        """The id of the person whom the words name; empty if nobody is known by them. Raises `NoSuchChat` if several are."""
        name = words.removeprefix("@").casefold()
        known = [row for row in self._members.people() if row.account == account]
        by_id = [row for row in known if row.person.casefold() == name]
        found = by_id or [row for row in known if row.name.casefold() == name]
        if len(found) > 1:
            ids = ", ".join(row.person for row in found)
            raise NoSuchChat(f"Several people are called {words!r}. Name one by id: {ids}.")
        if not found and words.startswith("@") and re.fullmatch(r"(?=\D*\d)[\w-]*", words[1:]):
            return words[1:]  # an id of somebody who is allowed by the configuration and never asked
        return found[0].person if found else ""


class OperatorsChat:
    """Says things in the chat that ``[operators] chat`` names, on the way of all messages: stored first, and once for each key."""

    def __init__(self, chat: str, where: Where, commands: CommandIntake) -> None:
        self._chat = chat
        self._where = where
        self._commands = commands

    async def tell(self, key: str, words: str) -> bool:
        """Say it, if nothing was said under this key before. What goes wrong is logged, and false is the answer."""
        try:
            address = await self._where.find(self._chat)
            inbound = post_inbound(address, f"operators:{key}", key)
            await self._commands.take(inbound, Command("post", encode_post(Post(words, ()))))
        except (NoSuchChat, CallFailed, NotAccepted, StoreError, Conflict) as error:
            log.warning("operators.not_told", key=key, words=str(error))
            return False
        return True
