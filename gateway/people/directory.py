"""What is known of people with several accounts: their private chats, what goes on in them, and which accounts are joined.

Kept in memory as it is stored. Decisions are in `gateway.people.linking`; where the operator has not allowed it, every chat has its own
session and nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import structlog

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatKind, ChatOrigin
from agent_core.journal.rows import opened_of
from agent_core.messages import FILE_LINE, words_of
from agent_core.ports import Clock, Ids
from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, PlaceRow, Redeemed
from agent_core.store.sessions.rows import PlaceChange
from agent_core.store.store import Store
from agent_core.text.shown import shortened
from agent_core.turn.events import TurnOpened
from gateway.people.access import typed_code
from gateway.people.linking import (
    CODE_LIFE_MS,
    LISTED,
    MOST_ACCOUNTS,
    Account,
    Conversation,
    Counts,
    Tries,
    account_in,
    goes_on,
    joined,
    new_code,
    reach,
)

log = structlog.get_logger("people")
T = TypeVar("T")

SETTLE_SECONDS = 2.0
"""How long a message waits for a command before it that says where it belongs."""
KNOWN_TRIES = 10_000
"""Most accounts whose wrong codes are remembered."""


class PeopleDirectory:
    """`allowed`: the operator lets people join accounts. `counts`: whether a joined account may talk."""

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, counts: Counts, changed: Callable[[], None], *, allowed: bool
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._counts, self._changed = counts, changed
        self.allowed = allowed
        self._places: dict[str, PlaceRow] = {}
        self._links: list[LinkRow] = []
        self._tries: dict[Account, Tries] = {}
        self._listed: dict[str, tuple[str, ...]] = {}
        """By place: the conversations that were shown there last, as they were numbered."""
        self._changing: dict[str, asyncio.Task[None]] = {}
        self._changes = 0
        """How often something was stored otherwise by this gateway, as far as it is known here."""
        self.unread = False
        """Some conversations could not be read when they were listed last."""

    async def open(self) -> None:
        """Learn what is stored."""
        if self.allowed:
            places = await read_now(self._store.people.places, lambda: self._changes)
            self._places = {row.place: row for row in places}
            self._links = await read_now(self._store.people.links, lambda: self._changes)

    async def refresh(self) -> list[PlaceRow]:
        """Learn anew who is joined, after that was changed. Returns the places that had to let go of a conversation, as they were."""
        if not self.allowed:
            return []
        self._links = await read_now(self._store.people.links, lambda: self._changes)
        continuing = [row for row in self._places.values() if row.continues is not None]
        cut = [row for row in continuing if self._goes_on(row.place, (row.account, row.person)) == row.place]
        for row in cut:
            self._places[row.place] = replace(row, continues=None)
        return cut

    # ------------------------------------------------------------------ places

    def session_of(self, own: SessionKey, origin: ChatOrigin) -> SessionKey:
        """The session that goes on in a chat whose own is `own`."""
        if not self.allowed or origin.kind is not ChatKind.PRIVATE:
            return own
        place = own.text()
        found = self._goes_on(place, account_in(origin))
        return own if found == place else SessionKey.of(found)

    def _goes_on(self, place: str, me: Account) -> str:
        return goes_on(place, me, self._places, self._links, self._counts)

    async def meet(self, own: SessionKey, origin: ChatOrigin) -> None:
        """Somebody who may talk writes in a chat: if it is private, it is theirs from now on."""
        place = own.text()
        if not self.allowed or origin.kind is not ChatKind.PRIVATE or place in self._places:
            return
        account, person = account_in(origin)
        row = PlaceRow(place, account, person, at=self._clock.now_ms())
        await self._store.people.put_place(row)
        self._places.setdefault(place, row)
        self._stored()

    def owns(self, own: SessionKey, origin: ChatOrigin) -> bool:
        """The chat is this person's alone, as far as is known."""
        row = self._places.get(own.text())
        return row is not None and (row.account, row.person) == account_in(origin)

    def pointed(self, change: PlaceChange) -> None:
        """It was stored what goes on in a place."""
        row = self._places.get(change.place)
        if row is not None:
            self._places[change.place] = replace(row, continues=change.continues)
            self._stored()

    def _stored(self) -> None:
        """What is read from now on knows of it."""
        self._changes += 1
        self._changed()

    def changing(self, own: SessionKey, task: asyncio.Task[None]) -> None:
        """A command is under way that changes something in a place; messages behind it wait for it."""
        place = own.text()
        self._changing[place] = task

        def over(done: asyncio.Task[None]) -> None:
            if self._changing.get(place) is done:
                del self._changing[place]

        task.add_done_callback(over)

    async def settle(self, own: SessionKey) -> None:
        """Wait, not for long, until a place is as the commands before have it. One that takes longer is waited for once: what comes together would
        wait again for each, and a platform gives up."""
        task = self._changing.get(own.text())
        if task is not None:
            await asyncio.wait({task}, timeout=SETTLE_SECONDS)
            if self._changing.get(own.text()) is task:
                del self._changing[own.text()]

    async def conversations(self, own: SessionKey, origin: ChatOrigin) -> tuple[Conversation, ...]:
        """What the person can continue, the latest first; remembered as it is numbered."""
        mine = reach(self._links, account_in(origin), self._counts)
        places = [row.place for row in self._places.values() if (row.account, row.person) in mine]
        rows = await self._store.sessions.conversations(places, LISTED) if places else []
        self.unread = bool(places) and self._store.left_out("conversations")
        found = tuple(Conversation(row.key, row.at, first_words(opened_of(row.kind, row.body))) for row in rows)
        self._listed.pop(own.text(), None)
        self._listed[own.text()] = tuple(one.place for one in found)
        while len(self._listed) > KNOWN_TRIES:
            del self._listed[next(iter(self._listed))]
        return found

    async def chosen(self, number: int, own: SessionKey, origin: ChatOrigin) -> Conversation | None:
        """The conversation with this number, as it was shown last; None if there is none (any more)."""
        shown = self._listed.get(own.text())
        found = await self.conversations(own, origin)
        places = tuple(one.place for one in found) if shown is None else shown
        self._listed[own.text()] = places
        if not 1 <= number <= len(places):
            return None
        return next((one for one in found if one.place == places[number - 1]), None)

    # ------------------------------------------------------------------ links

    def joined(self, origin: ChatOrigin) -> Sequence[LinkRow]:
        """The accounts that are one person's with this one; empty if there are no others."""
        return joined(self._links, account_in(origin), self._counts)

    async def ask(self, origin: ChatOrigin) -> str:
        """A new code for this account."""
        account, person = account_in(origin)
        until = self._clock.now_ms() + CODE_LIFE_MS
        who = origin.person
        code = LinkCode(
            new_code(self._ids.seed()), account, person, who.name, who.username, origin.address.text(), until
        )
        await self._store.people.put_code(code)
        return code.code

    def wait_ms(self, origin: ChatOrigin) -> int:
        """How long no code is tried any more from this account."""
        return self._tries.get(account_in(origin), Tries()).wait_ms(round(self._clock.monotonic() * 1000))

    async def redeem(self, words: str, origin: ChatOrigin, message: str) -> Redeemed:
        """A code was typed in `message`."""
        me = account_in(origin)
        account, person = me
        by = LinkRow(account, person, self._ids.new("h"), origin.person.name, origin.person.username)
        found = await self._store.people.redeem(typed_code(words), by, f"{account} {message}", MOST_ACCOUNTS)
        log.info("people.code_typed", account=account, person=person, outcome=found.outcome.value)
        if found.outcome is LinkOutcome.UNKNOWN:
            tries = self._tries.pop(me, Tries())
            self._tries[me] = tries.wrong(round(self._clock.monotonic() * 1000))
            while len(self._tries) > KNOWN_TRIES:
                del self._tries[next(iter(self._tries))]
        if found.outcome is LinkOutcome.JOINED:
            self._stored()
            await self.refresh()
        return found

    async def unlink(self, account: str, person: str) -> list[PlaceRow]:
        """Take an account out. Returns the places that had to let go of a conversation, as they were."""
        await self._store.people.unlink(account, person)
        log.info("people.unlinked", account=account, person=person)
        self._stored()
        return await self.refresh()


async def read_now(read: Callable[[], Awaitable[T]], changes: Callable[[], int]) -> T:
    """What is read, once nothing has changed here while it was: else what is known would be older afterwards, and who was shut out just then be heard."""
    while True:
        before, found = changes(), await read()
        if changes() == before:
            return found


def first_words(opened: TurnOpened | None) -> str:
    """What a person said in it, shortened."""
    if opened is None:
        return "…"
    said = "\n".join(words_of(message.content) for message in opened.input if message.role == "user")
    # Files have no say in it, if there are words
    words = [line for line in said.split("\n") if not line.startswith(FILE_LINE)]
    return shortened(" ".join(words).strip() or said)
