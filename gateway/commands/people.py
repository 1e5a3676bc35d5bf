"""The commands of people with several accounts: ``/link``, ``/unlink``, ``/resume``, and ``/new`` in a chat that continues another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from adapters.contract.base import Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind
from agent_core.ports import Clock
from agent_core.store.people.rows import LinkOutcome, PlaceRow
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Store
from gateway.chats.people import (
    NOT_YOURS,
    OFF,
    ONLY_PRIVATE,
    account_in,
    accounts_words,
    ask_words,
    joined_there_words,
    list_words,
    platform_of,
    redeemed_words,
    resumed_words,
)
from gateway.chats.peoplebook import PeopleBook
from gateway.commands.carrying import LEAVE, NEW_WORDS, Handler, Reply, Request, drop_waiting
from gateway.commands.registry import shortened
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.sessions.hub import Hub

UNREAD = "What is missing here cannot be read just now, because the storage is damaged."
CUT_OFF = (
    "⚠️ Your message was not worked on: the conversation that it was meant for is not joined with this account any more. "
    "Send it again, and it begins in this chat's own."
)


class Submit(Protocol):
    """Takes in words that a command stands for."""

    async def submit(self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None) -> int: ...


class PeopleCommands:
    """Handlers for `gateway.commands.carrying.ChatCommands`."""

    def __init__(
        self, book: PeopleBook, hub: Hub, store: Store, outbox: Outbox, clock: Clock, arrivals: Submit
    ) -> None:
        self._book = book
        self._hub = hub
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._arrivals = arrivals

    def handlers(self) -> Mapping[str, Handler]:
        """By command."""
        return {"link": self._link, "unlink": self._unlink, "resume": self._resume, LEAVE: self._leave}

    def _objection(self, request: Request) -> str:
        """Why nothing of this can be done here; empty if it can."""
        if not self._book.allowed:
            return OFF
        if request.origin.kind is not ChatKind.PRIVATE:
            return ONLY_PRIVATE
        return "" if self._book.owns(request.own, request.origin) else NOT_YOURS

    # ------------------------------------------------------------------ accounts

    async def _link(self, request: Request) -> Reply:
        if objection := self._objection(request):
            return Reply(objection)
        me = account_in(request.origin)
        if not request.words.strip():
            told = accounts_words(self._book.joined(request.origin), me)
            return Reply(f"{told}\n{ask_words(await self._book.ask(request.origin))}")
        if wait := self._book.wait_ms(request.origin):
            return Reply(f"Too many wrong codes. Try again in {-(-wait // 60_000)} minutes.")
        found = await self._book.redeem(request.words, request.origin, request.inbound.platform_key)
        words = redeemed_words(found.outcome, found.code)
        if found.outcome is not LinkOutcome.JOINED or found.code is None:
            return Reply(words)
        there = joined_there_words(platform_of(me[0]), request.origin.person.name)
        return Reply(words, elsewhere=((ChatAddress.of(found.code.chat), there),))

    async def _unlink(self, request: Request) -> Reply:
        if objection := self._objection(request):
            return Reply(objection)
        me = account_in(request.origin)
        accounts = self._book.joined(request.origin)
        wished = request.words.strip().rstrip(".")
        if wished and not (wished.isdecimal() and 1 <= int(wished) <= len(accounts)):
            return Reply(f"{accounts_words(accounts, me)}\n“{shortened(wished, 20)}” is no number of this list.")
        chosen = accounts[int(wished) - 1] if wished else None
        out = (chosen.account, chosen.person) if chosen is not None else me
        await self.cut(await self._book.unlink(*out))
        left = accounts_words(self._book.joined(request.origin), me)
        gone = f"{platform_of(out[0])}, {chosen.name} is taken out.\n" if chosen is not None and out != me else ""
        return Reply(gone + left)

    async def cut(self, places: Sequence[PlaceRow]) -> None:
        """What was asked in these chats of conversations that they do not reach any more is stopped, and told."""
        for row in places:
            queue = self._hub.queues.known(row.continues or "")
            if queue is None:
                continue
            if queue.running is not None and _place_of(queue.running.messages[0].inbound) == row.place:
                await self._hub.stop(SessionKey.of(queue.key))
            for message in [one for one in queue.waiting if _place_of(one.inbound) == row.place]:
                await drop_waiting(self._hub, self._outbox, queue, message, CUT_OFF)

    # ------------------------------------------------------------------ conversations

    async def _resume(self, request: Request) -> Reply:
        if objection := self._objection(request):
            return Reply(objection)
        own, now = request.own.text(), self._clock.now_ms()
        wished = request.words.strip().rstrip(".")
        if not wished:
            found = await self._book.conversations(request.own, request.origin)
            unread = f"\n{UNREAD}" if self._book.unread else ""
            return Reply(f"{list_words(found, own, self._current(request), now)}{unread}")
        number = int(wished) if wished.isdecimal() and len(wished) < 4 else 0
        chosen = await self._book.chosen(number, request.own, request.origin)
        if chosen is None:
            return Reply("There is no conversation with this number. /resume lists those that can go on here.")
        if chosen.place == self._current(request):
            return Reply("That conversation goes on here already.")
        queue = self._hub.queues.known(chosen.place)
        busy = queue is not None and queue.running is not None
        change = PlaceChange(own, chosen.place if chosen.place != own else None)
        return Reply(resumed_words(chosen, own, now, busy=busy), SessionChange(place=change))

    def _current(self, request: Request) -> str:
        return self._book.session_of(request.own, request.origin).text()

    async def _leave(self, request: Request) -> Reply:
        """The chat goes back to a session of its own, and that begins anew. The other one stays as it is."""
        change = PlaceChange(request.own.text(), None)
        await self._store.sessions.change(request.owner.session, request.owner.epoch, SessionChange(place=change))
        self._book.pointed(change)
        queue = self._hub.queues.known(request.key)
        if queue is not None and queue.running is not None and queue.running.same_chat(request.inbound):
            await self._hub.stop(request.inbound.session)
        words, key = request.words.strip(), f"new:{request.inbound.platform_key}"
        if not words or await self._store.inbox.by_key(request.inbound.account, key) is None:
            await self._begin_anew(request.own)
        if not words:
            return Reply(f"{NEW_WORDS} The one that went on here stays where it came from; /resume finds it.")
        here = replace(request.inbound, session=request.own, memory_scope=request.own.text())
        await self._arrivals.submit(here, key, words, None)
        return Reply("")

    async def _begin_anew(self, own: SessionKey) -> None:
        await self._hub.stop(own)
        row = await self._store.sessions.by_key(own.text())
        if row is None:
            return
        queue = await self._hub.accepting.owned(row.key, row.session)
        await self._store.sessions.change(row.session, queue.epoch, SessionChange(forget=True))
        queue.memory_loaded = False
        self._hub.queues.release(queue)


def _place_of(inbound: Inbound) -> str:
    """The place where a message was written; empty if it is none."""
    if inbound.chat is None or inbound.chat.kind is not ChatKind.PRIVATE:
        return ""
    address = inbound.chat.address
    return SessionKey(address.platform, address.account, address.chat, address.thread).text()
