"""How conversations are called in the console: by who talks in them and where, instead of by their keys.

Names of people and of places are no words that somebody wrote. A conversation's title comes from such words: it is shown on request, which is noted
(`gateway.console.reading`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field

from adapters.contract.base import FromChat, Inbound, SessionKey
from adapters.contract.callers import AT_TERMINAL, scope_of
from adapters.contract.chat import ChatKind
from adapters.platforms import platform_of
from agent_core.records import dataclass
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.overview import TurnSummary
from agent_core.store.store import Damaged, Store
from gateway.queues import inbox

KNOWN_MOST = 5_000
"""Of so many conversations it is remembered how they are called."""
AT_ONCE = 50
"""So many are looked up in one look; the others are called by their place until the next."""
BROWSER, BROWSER_SHOWN = "browser:", 6
"""How a page's person is called that is known by the browser alone, and so much of what stands for it tells two of them apart."""
_OURS: Mapping[str, str] = {"web": "Web page", "api": "API", "terminal": "Terminal"}


def title_of(platform: str) -> str:
    """What people call a platform. Pure."""
    known = platform_of(platform)
    return known.title if known is not None else _OURS.get(platform, platform)


def place_name(key: str) -> str:
    """Where a conversation is, or a surface, as far as its key says it. Pure."""
    try:
        at = SessionKey.of(key)
    except TypeError:  # of another version
        return key.rstrip("/")
    if (at.platform, at.account) == ("api", "gone"):  # `gateway.retention.forgetting.GONE`
        return "Deleted conversation"
    if at.platform in _OURS:
        return title_of(at.platform) if at.account == "once" else f"{title_of(at.platform)} {at.chat}"
    return f"{title_of(at.platform)} {at.chat}{f', thread {at.thread}' if at.thread else ''}"


def conversation_name(key: str, inbound: Inbound) -> str:
    """Who talks there, and where. Pure."""
    if isinstance(inbound, FromChat):
        title, person = title_of(inbound.chat.address.platform), inbound.chat.person.name
        if inbound.chat.kind is ChatKind.PRIVATE:
            return f"{person or inbound.chat.person.id}, {title}"
        return f"{place_name(key)}{f', last {person}' if person else ''}"
    terminal = inbound.memory_scope.removeprefix(scope_of(AT_TERMINAL))
    if terminal != inbound.memory_scope:
        return f"{title_of('terminal')} {terminal[:BROWSER_SHOWN]}"
    title, person = title_of(inbound.surface), inbound.session.person
    if inbound.key:
        return f"{title}, key {inbound.key}"
    return f"{title}, browser {person.removeprefix(BROWSER)[:BROWSER_SHOWN]}" if person.startswith(BROWSER) else title


@dataclass(slots=True)
class Names:
    """Remembers how conversations are called. A group is called by whoever wrote there last when it was first looked at."""

    store: Store
    _known: dict[str, str] = field(default_factory=dict[str, str])
    _people: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    async def learn(self, turns: Iterable[TurnSummary]) -> None:
        """Look up those that are not known yet, by the messages of a turn of each."""
        unknown = {one.session: one for one in turns if one.session not in self._known}
        asked = dict(list(unknown.items())[:AT_ONCE])
        if not asked:
            return
        try:
            rows = await self.store.inbox.inputs(*(one.turn for one in asked.values()))
        except Damaged:
            rows = []
        by_session = {row.session: row for row in rows}
        for session, turn in asked.items():
            self._known[session] = _named(turn.key, by_session.get(session))
        while len(self._known) > KNOWN_MOST:
            del self._known[next(iter(self._known))]

    async def meet(self, people: Collection[tuple[str, str]]) -> None:
        """Look up how people are called, where that is stored."""
        unknown = [one for one in people if one not in self._people]
        if unknown:
            named = {(row.account, row.person): row.name for row in await self.store.people.these(unknown)}
            self._people |= {one: named.get(one, "") for one in unknown}
        while len(self._people) > KNOWN_MOST:
            del self._people[next(iter(self._people))]

    def person(self, who: tuple[str, str]) -> str:
        """How somebody is called: by name, where it is known, and the platform."""
        account, person = who
        return f"{self._people.get(who) or person}, {title_of(account.partition('/')[0])}"

    def of(self, session: str, key: str) -> str:
        """How a conversation is called."""
        return self._known.get(session) or place_name(key)


def _named(key: str, row: InboxRow | None) -> str:
    if row is None:
        return place_name(key)
    try:
        return conversation_name(key, inbox.decode(row.body))
    except inbox.UnreadableMessage:
        return place_name(key)
