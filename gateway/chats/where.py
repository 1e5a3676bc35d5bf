"""The chat that an operator's words name."""

from __future__ import annotations

import re

from adapters.contract.chat import ChatAddress
from adapters.platforms import platform_of
from gateway.chats.arrival import Arrivals
from gateway.delivery.outbox import Outbox


class NoSuchChat(LookupError):
    """The words name no chat; they say why."""


class Where:
    """Finds the chat that an operator's words name."""

    def __init__(self, arrivals: Arrivals, outbox: Outbox) -> None:
        self._arrivals = arrivals
        self._outbox = outbox

    async def find(self, to: str) -> ChatAddress:
        """The address of ``PLATFORM/CHAT[/THREAD]``, where CHAT is an id, or a person who is known, by id, name or @name.

        Raises `NoSuchChat` in words, and `CallFailed` if the platform does not give the chat with a person.
        """
        platform, _, rest = to.strip().partition("/")
        chat, _, thread = rest.partition("/")
        accounts = [name for name in self._arrivals.accounts if name.partition("/")[0] == platform.lower()]
        if not accounts:
            there = ", ".join(name.partition("/")[0] for name in self._arrivals.accounts) or "none"
            raise NoSuchChat(f"There is no platform {platform!r} here; configured: {there}.")
        if not chat:
            raise NoSuchChat(f"{to!r} names no chat. Write PLATFORM/CHAT or PLATFORM/CHAT/THREAD.")
        account = accounts[0]
        name, _, bot = account.partition("/")
        address = ChatAddress(name, bot, chat, thread)
        person = self._person(account, chat)
        if person:
            private = await self._outbox.port_of(address).private(person)
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
        known = [row for row in self._arrivals.people() if row.account == account]
        by_id = [row for row in known if row.person.casefold() == name]
        found = by_id or [row for row in known if row.name.casefold() == name]
        if len(found) > 1:
            ids = ", ".join(row.person for row in found)
            raise NoSuchChat(f"Several people are called {words!r}. Name one by id: {ids}.")
        if not found and words.startswith("@") and re.fullmatch(r"(?=\D*\d)[\w-]*", words[1:]):
            return words[1:]  # an id of somebody who is allowed by the configuration and never asked
        return found[0].person if found else ""
