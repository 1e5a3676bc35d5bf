"""In which language the gateway speaks to whom. Pure, but for what queues know.

In this order: what the person chose (``/language``, for the conversation), what the operator says of the chat, the account or everybody, what the
platform or the browser says of the person, and what they write, where its letters alone tell. Else English.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field

from adapters.contract.base import FromChat, Inbound
from adapters.contract.chat import ChatAddress, ChatOrigin
from agent_core.messages import text_of
from agent_core.records import dataclass
from agent_core.store.store import StorageUnavailable, Store
from agent_core.text.tongue import chosen, written_in
from gateway.queues.prefs import Prefs
from gateway.queues.queues import Queues

PAGE = "web"


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """What the configuration says: tags of languages, by whom they are spoken to."""

    everywhere: str = ""
    accounts: Mapping[str, str] = field(default_factory=dict[str, str])
    """By platform."""
    chats: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """By platform and chat."""

    def of(self, address: ChatAddress) -> str:
        """What counts in a chat; empty: nothing is said."""
        platform = address.platform
        return self.chats.get((platform, address.chat)) or self.accounts.get(platform) or self.everywhere


def language_for(inbound: Inbound, prefs: Prefs, rules: LanguageRules) -> str:
    """The language for whoever wrote a message; empty for English."""
    said = "\n".join(text_of(message.content) for message in inbound.input if message.role == "user")
    if isinstance(inbound, FromChat):
        told, theirs = rules.of(inbound.chat.address), inbound.chat.person.language
    else:
        told, theirs = rules.everywhere, inbound.language
        said = said if inbound.surface == PAGE else ""  # programs write in the names of many
    return chosen(prefs.language, told, theirs, "" if said.isascii() else written_in(said))


class Languages:
    """The same for whoever has a message, and not what its conversation has set for itself."""

    def __init__(self, rules: LanguageRules, queues: Queues, store: Store) -> None:
        self._rules = rules
        self._queues = queues
        self._store = store

    def at_once(self, inbound: Inbound) -> str:
        """As far as this process knows."""
        queue = self._queues.known(inbound.session.text())
        return language_for(inbound, queue.prefs if queue is not None else Prefs(), self._rules)

    def in_chat(self, origin: ChatOrigin) -> str:
        """Where nothing is known but where it was written, and by whom."""
        return chosen(self._rules.of(origin.address), origin.person.language)

    async def of(self, inbound: Inbound, session: str = "") -> str:
        """As it is stored; without a `session`, of a message whose conversation may not have begun. Raises `StorageUnavailable`."""
        queue = self._queues.known(inbound.session.text())
        if queue is not None and queue.prefs_loaded:
            return self.at_once(inbound)
        sessions = self._store.sessions
        found = await (sessions.one(session) if session else sessions.by_key(inbound.session.text()))
        return language_for(inbound, Prefs.decode(found.policy if found is not None else None), self._rules)

    async def as_known(self, inbound: Inbound, session: str = "") -> str:
        """The same, for what is said whatever the storage does: where that cannot be asked, as far as this process knows."""
        with suppress(StorageUnavailable):
            return await self.of(inbound, session)
        return self.at_once(inbound)
